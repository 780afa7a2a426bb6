package main

import (
	"bytes"
	"image/color"
	"io"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/gfnem/gfnem/badinput"
)

// figured is the number of the test sequence that is drawn: the first one, or the first with a pseudoknot if there are some.
func (d dataset) figured() int {
	for k, s := range d.test.Strands {
		for i, j := range s.Partner {
			for a := i + 1; a < int(j); a++ {
				if s.Partner[a] > j {
					return k
				}
			}
		}
	}
	return 0
}

const (
	step    = vg.Length(9) // between bases
	margin  = vg.Length(18)
	flat    = 0.25 // height of an arc by its width
	visible = 0.05
)

// draw shows arcs below each other: the known pairs of a test sequence, with its bases, and what methods say.
func (d dataset) draw(c vg.Canvas, shown []panel, high vg.Length) {
	s, n := d.test.Strands[d.figured()], d.model.N
	known := s.pairs(n)
	text := func(x, y vg.Length, size float64, s string, center bool) {
		face := font.DefaultCache.Lookup(plot.DefaultFont, vg.Length(size))
		if c.SetColor(color.Black); center {
			x -= face.Width(s) / 2
		}
		c.FillString(face, vg.Point{X: x, Y: y}, s)
	}
	for k, p := range shown {
		low := high * vg.Length(len(shown)-1-k)
		text(margin, low+high-margin, 12, p.title, false)
		for i := range s.Bases {
			x, y := margin+step*(vg.Length(i)+0.5), low+1.1*margin
			if k == 0 {
				text(x, low+margin/2, 8, string(letters[s.Bases[i]]), true)
			}
			for j := i + 1; j < len(s.Bases); j++ {
				v := p.pairs[i*n+j]
				if v <= visible {
					continue
				}
				hue := color.NRGBA{214, 96, 77, uint8(255 * v)} // red
				if known[i*n+j] > 0 {
					hue = color.NRGBA{33, 102, 172, uint8(255 * v)} // blue
				}
				c.SetColor(hue)
				c.SetLineWidth(1.6)
				wide := step * vg.Length(j-i)
				top := y + wide*flat*4/3 // of the points that pull a curve three quarters of the way up
				var path vg.Path
				path.Move(vg.Point{X: x, Y: y})
				path.CubeTo(vg.Point{X: x, Y: top}, vg.Point{X: x + wide, Y: top}, vg.Point{X: x + wide, Y: y})
				c.Stroke(path)
			}
		}
	}
}

// pairs are those of a known structure.
func (s strand) pairs(n int) pairs {
	known := make(pairs, n*n)
	for i, j := range s.Partner {
		if int(j) > i {
			known[i*n+int(j)] = 1
		}
	}
	return known
}

// save writes the figure as name.svg and name.png.
func (d dataset) save(name string, shown []panel) error {
	s, n, widest := d.test.Strands[d.figured()], d.model.N, 0
	shown = append([]panel{{"known structure of " + s.Name, s.pairs(n)}}, shown...)
	for _, p := range shown {
		for i, v := range p.pairs {
			if v > visible {
				widest = max(widest, i%n-i/n)
			}
		}
	}
	high := step*flat*vg.Length(widest) + 3*margin
	w, h := step*vg.Length(len(s.Bases))+2*margin, high*vg.Length(len(shown))
	svg, png := vgsvg.New(w, h), vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(144), vgimg.UseBackgroundColor(color.White))
	d.draw(svg, shown, high)
	d.draw(png, shown, high)
	for _, f := range []struct {
		suffix string
		io.WriterTo
	}{{".svg", svg}, {".png", vgimg.PngCanvas{Canvas: png}}} {
		var out bytes.Buffer
		if _, err := f.WriteTo(&out); err != nil {
			return err
		}
		if err := os.WriteFile(name+f.suffix, out.Bytes(), 0o666); err != nil {
			return badinput.Errorf("%w", err)
		}
	}
	return nil
}
