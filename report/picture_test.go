package report

import (
	"fmt"
	"image/color"
	"math"
	"strings"
	"testing"
)

func TestPictureGray(t *testing.T) {
	p := Picture{Gray: [][]float64{{0, 1, 0.5}, {-1, 7, math.NaN()}}}
	rows, columns, err := p.size()
	if err != nil || rows != 2 || columns != 3 {
		t.Fatal(rows, columns, err)
	}
	img := p.image(rows, columns)
	for i, want := range []uint8{0, 255, 128, 0, 255, 0} {
		x, y := i%3*pictureDots+3, i/3*pictureDots+3
		if got := img.NRGBAAt(x, y); got != (color.NRGBA{R: want, G: want, B: want, A: 255}) {
			t.Errorf("cell %d is %v, want %d", i, got, want)
		}
	}
}

// TestPictureClasses counts cells and numbers: drawn, not embedded as an image, so that their edges are sharp.
func TestPictureClasses(t *testing.T) {
	f := NewFigure(Picture{Class: [][]int{{0, 1}, {-1, 11}}, Classes: 12, Key: "code"})
	html, err := f.HTML("codes")
	if err != nil {
		t.Fatal(err)
	}
	text := string(html)
	if strings.Contains(text, "no data") {
		t.Error("cells are no data")
	}
	if strings.Contains(text, "<image") {
		t.Error("classes are an image")
	}
	for k := range 12 {
		if want := fmt.Sprintf("> code %d<", k); !strings.Contains(text, want) {
			t.Errorf("the key lacks %s", want)
		}
	}
	for _, k := range []string{">0<", ">1<", ">11<"} {
		if strings.Count(text, k) != 1 {
			t.Errorf("%d cells are numbered %s", strings.Count(text, k), k)
		}
	}
	seen := map[string]bool{}
	for k := range 12 {
		seen[hex(classColor(k, 12))] = true
	}
	if len(seen) != 12 {
		t.Errorf("12 classes have %d colours", len(seen))
	}
}

func TestPictureFigure(t *testing.T) {
	f := Figure{Panels: [][]Panel{{Picture{Title: "a", Gray: [][]float64{{0, 1}, {1, 0}}}, Picture{Class: [][]int{{1}}, Classes: 8}}}}
	html, err := f.HTML("two pictures")
	if err != nil || !strings.Contains(string(html), "<image") {
		t.Errorf("%.200s, %v", html, err)
	}
	if png, _, err := f.encode(); err != nil || len(png) == 0 {
		t.Error(err)
	}
	for _, bad := range []Picture{{}, {Gray: [][]float64{{}}}, {Gray: [][]float64{{1}, {1, 2}}}, {Class: [][]int{{1, 2}, {1}}}} {
		if _, _, err := NewFigure(bad).encode(); err == nil {
			t.Errorf("%+v is drawn", bad)
		}
	}
}
