package report

import (
	"image/color"
	"math"
	"strings"
	"testing"
)

func TestPicture(t *testing.T) {
	img, err := Picture{Gray: [][]float64{{0, 1, 0.5}, {-1, 7, math.NaN()}}}.image()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint8{0, 255, 128, 0, 255, 0} {
		x, y := i%3*pictureDots+3, i/3*pictureDots+3
		if got := img.NRGBAAt(x, y); got != (color.NRGBA{R: want, G: want, B: want, A: 255}) {
			t.Errorf("cell %d is %v, want %d", i, got, want)
		}
	}
	codes, err := Picture{Class: [][]int{{0, 1}, {-1, 11}}, Classes: 12}.image()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[color.NRGBA]bool{}
	for i := range 4 {
		seen[codes.NRGBAAt(i%2*pictureDots, i/2*pictureDots)] = true
	}
	if len(seen) != 4 {
		t.Errorf("four cells have the colours %v", seen)
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
