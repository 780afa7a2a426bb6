package main

import (
	"bytes"
	"fmt"
	"html"
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
	step      = 12.0 // between bases
	margin    = 24.0
	blue, red = "#2166ac", "#d6604d"
)

// draw makes an SVG of arcs: the known pairs of a test sequence, and what methods say.
func (d dataset) draw(shown []panel) []byte {
	s := d.test.Strands[d.figured()]
	n, most := d.model.N, 0
	known := make(pairs, n*n)
	for i, j := range s.Partner {
		if int(j) > i {
			known[i*n+int(j)] = 1
		}
	}
	shown = append([]panel{{"known structure of " + s.Name, known}}, shown...)
	for _, p := range shown {
		for i, v := range p.pairs {
			if v > 0.02 {
				most = max(most, i%n-i/n)
			}
		}
	}
	height := step*float64(most)*0.4 + 3*margin
	wide := step*float64(len(s.Bases)) + 2*margin
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif">`+"\n", wide,
		height*float64(len(shown))+margin)
	fmt.Fprintln(&out, `<rect width="100%" height="100%" fill="white"/>`)
	for k, p := range shown {
		base := height*float64(k+1) - margin/2
		fmt.Fprintf(&out, `<text x="%.0f" y="%.0f" font-size="15">%s</text>`+"\n", margin, base-height+1.6*margin, html.EscapeString(p.title))
		for i := range s.Bases {
			for j := i + 1; j < len(s.Bases); j++ {
				v := p.pairs[i*n+j]
				if v <= 0.02 {
					continue
				}
				color := red
				if known[i*n+j] > 0 {
					color = blue
				}
				x, r := margin+step*(float64(i)+0.5), step*float64(j-i)/2
				fmt.Fprintf(&out, `<path d="M%.1f %.1f a%.1f %.1f 0 0 1 %.1f 0" fill="none" stroke="%s" stroke-width="2" opacity="%.2f"/>`+"\n",
					x, base-margin/2, r, r*0.8, 2*r, color, v)
			}
			fmt.Fprintf(&out, `<text x="%.1f" y="%.1f" font-size="11" text-anchor="middle">%c</text>`+"\n", margin+step*(float64(i)+0.5), base,
				letters[s.Bases[i]])
		}
	}
	fmt.Fprintf(&out, `<text x="%.0f" y="%.0f" font-size="12">blue: in the known structure; red: not; as opaque as probable</text>`+"\n</svg>\n",
		margin, height*float64(len(shown))+margin/2)
	return out.Bytes()
}
