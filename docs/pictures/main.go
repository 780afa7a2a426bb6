// Command pictures draws the figure of docs/tutorial-mixture.md that no report has: one point, its exact posterior, that
// of mean field, and how a GFlowNet makes the exact one of two choices. All numbers are computed.
//
//	go run ./docs/pictures > docs/tutorial-posterior.svg
package main

import (
	"fmt"
	"io"
	"log"
	"math"
	"os"

	"github.com/gfnem/gfnem/mixture"
)

// Two superclusters each have a petal near the point.
var (
	point = mixture.Point{-0.70, 0.74}
	means = mixture.Means{{-1.5, 0.05}, {0.05, 0.2}, {1.6, -1.2}, {-1.5, -1.5}}
)

const clusters, petals = 4, 4

var arrows = [petals]string{"↗", "↖", "↙", "↘"}

func main() {
	if err := draw(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// meanField is the product q(i) q(j) nearest to a posterior by KL(q||p), found by turns from uniform q(j) with a little
// more on one petal.
func meanField(p []float64) []float64 {
	qi, qj := make([]float64, clusters), []float64{0.25, 0.25, 0.25, 0.25}
	qj[0] += 0.01
	logP := func(k int) float64 { return math.Log(p[k] + 1e-300) }
	for range 100 {
		for i := range qi {
			qi[i] = 0
			for j, q := range qj {
				qi[i] += q * logP(i*petals+j)
			}
		}
		softmax(qi)
		for j := range qj {
			qj[j] = 0
			for i, q := range qi {
				qj[j] += q * logP(i*petals+j)
			}
		}
		softmax(qj)
	}
	product := make([]float64, len(p))
	for k := range product {
		product[k] = qi[k/petals] * qj[k%petals]
	}
	return product
}

func softmax(x []float64) {
	highest, sum := math.Inf(-1), 0.0
	for _, v := range x {
		highest = max(highest, v)
	}
	for i, v := range x {
		x[i] = math.Exp(v - highest)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

// canvas is an SVG; errors are kept to the end.
type canvas struct {
	w   io.Writer
	err error
}

func (c *canvas) printf(format string, args ...any) {
	if c.err == nil {
		_, c.err = fmt.Fprintf(c.w, format, args...)
	}
}

func (c *canvas) text(x, y float64, class, s string) {
	c.printf("<text x=\"%.0f\" y=\"%.0f\" class=\"%s\">%s</text>\n", x, y, class, s)
}

func (c *canvas) line(x1, y1, x2, y2, width float64) {
	c.printf("<line x1=\"%.0f\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\" stroke=\"#444\" stroke-width=\"%.1f\"/>\n",
		x1, y1, x2, y2, width)
}

// draw writes the figure.
func draw(w io.Writer) error {
	exact := mixture.Problem{}.Posterior([]mixture.Point{point}, means, math.Inf(-1)).Row(0)
	c := &canvas{w: w}
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1120 310" font-family="sans-serif" font-size="14">
<style>text{fill:#333;text-anchor:middle}.title{font-weight:bold;font-size:16px}.left{text-anchor:start}.light{fill:#fff}</style>
<rect width="1120" height="310" fill="#fff"/>
`)
	c.plane(150, 165, 46)
	c.table(330, "exact posterior", exact)
	c.table(590, "mean field", meanField(exact))
	c.tree(845, exact)
	c.printf("</svg>\n")
	return c.err
}

// plane shows the point and the petals around a centre, at a scale.
func (c *canvas) plane(x, y, scale float64) {
	c.text(x, 28, "title", "one point ★")
	at := func(p mixture.Point) (float64, float64) { return x + p[0]*scale, y - p[1]*scale }
	for _, centre := range (mixture.Problem{}).Centres(means) {
		cx, cy := at(centre)
		c.printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"#0072b2\" opacity=\"0.25\"/>\n", cx, cy, 0.35*scale)
	}
	for i, m := range means {
		cx, cy := at(m)
		c.printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"11\" fill=\"#333\"/>\n", cx, cy)
		c.text(cx, cy+5, "light", fmt.Sprint(i+1))
	}
	cx, cy := at(point)
	c.printf("<text x=\"%.1f\" y=\"%.1f\" font-size=\"22\" style=\"fill:#d55e00\">★</text>\n", cx, cy+8)
}

// table shows probabilities of all pairs, with those of each part beside them.
func (c *canvas) table(x float64, title string, p []float64) {
	const side, top = 42, 66
	c.text(x+2*side, 28, "title", title)
	for j, arrow := range arrows {
		c.text(x+side*(float64(j)+0.5), top-9, "", arrow)
	}
	for i := range clusters {
		c.text(x-14, top+side*(float64(i)+0.5)+5, "", fmt.Sprint(i+1))
		for j := range petals {
			v := p[i*petals+j]
			left, above := x+float64(side*j), top+float64(side*i)
			c.printf("<rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" fill=\"#0072b2\" fill-opacity=\"%.3f\" ",
				left, above, side, side, v)
			c.printf("stroke=\"#bbb\"/>\n")
			if v >= 0.005 {
				class := ""
				if v > 0.45 {
					class = "light"
				}
				c.text(left+side/2, above+side/2+5, class, fmt.Sprintf("%.2f", v))
			}
		}
	}
	c.text(x+2*side, top+4*side+24, "", "rows: supercluster, columns: petal")
}

// tree shows the choices of a GFlowNet whose probabilities are those of the posterior.
func (c *canvas) tree(x float64, p []float64) {
	c.text(x+130, 28, "title", "GFlowNet: two choices")
	c.text(x+8, 155, "title", "x")
	for i := range clusters {
		y, share, best := 75+float64(i)*52, 0.0, 0
		for j := range petals {
			share += p[i*petals+j]
			if p[i*petals+j] > p[i*petals+best] {
				best = j
			}
		}
		c.line(x+20, 150, x+100, y, 0.5+5*share)
		c.printf("<circle cx=\"%.0f\" cy=\"%.0f\" r=\"13\" fill=\"#333\"/>\n", x+112, y)
		c.text(x+112, y+5, "light", fmt.Sprint(i+1))
		if share < 0.005 {
			continue
		}
		if i == 0 { // above its line; others below
			c.text(x+44, (150+y)/2-8, "", fmt.Sprintf("%.2f", share))
		} else {
			c.text(x+70, (150+y)/2+18, "", fmt.Sprintf("%.2f", share))
		}
		for j := range petals {
			v, end := p[i*petals+j]/share, y+float64(j-best)*14
			if v >= 0.005 {
				c.line(x+126, y, x+190, end, 0.5+5*v*share)
				c.text(x+204, end+5, "", arrows[j])
				c.text(x+158, end-7, "", fmt.Sprintf("%.2f", v))
				c.text(x+245, end+5, "", fmt.Sprintf("%.2f", v*share))
			}
		}
	}
	c.text(x+130, 258, "", "supercluster, then petal")
}
