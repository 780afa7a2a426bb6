package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// pictures makes PNG files in a folder, each with a bright bar on noise that is dark: how many, how wide and how high.
func pictures(dir string, args []string) error {
	var n [3]int
	for i := range n {
		v, err := strconv.Atoi(args[i])
		if err != nil {
			return err
		}
		n[i] = v
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(1, uint64(len(dir))))
	for i := range n[0] {
		p := image.NewRGBA(image.Rect(0, 0, n[1], n[2]))
		bar := r.IntN(n[1])
		for y := range n[2] {
			for x := range n[1] {
				gray := uint8(r.IntN(100))
				if x == bar {
					gray = 250
				}
				p.Set(x, y, color.RGBA{gray, gray, gray, 255})
			}
		}
		var b bytes.Buffer
		if err := png.Encode(&b, p); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.png", i)), b.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return nil
}
