package report

import "gonum.org/v1/plot/vg/draw"

var (
	gridLine  = draw.LineStyle{Color: gray(0xe8), Width: 0.6}
	frameLine = draw.LineStyle{Color: gray(0xa8), Width: 0.6}
)

// drawOn draws the chart: grid, data, frame and, where asked for, labels.
func (ch *chart) drawOn(c draw.Canvas, showX, showY bool) {
	xs, ys := ch.ticks(c.Max.X-c.Min.X, c.Max.Y-c.Min.Y)
	p := plane{Canvas: c, x: ch.x, y: ch.y}
	for _, t := range xs {
		x := c.X(ch.x.at(t.value))
		c.StrokeLine2(gridLine, x, c.Min.Y, x, c.Max.Y)
	}
	if ch.y.names == nil {
		for _, t := range ys {
			y := c.Y(ch.y.at(t.value))
			c.StrokeLine2(gridLine, c.Min.X, y, c.Max.X, y)
		}
	}
	if ch.empty {
		labelInk.middle(c, c.Center().X, c.Center().Y, 0.5, "no data")
	} else {
		ch.draw(p)
	}
	if ch.bare {
		headInk.line(c, c.Min.X, c.Max.Y+headGap, 0, ch.title)
	} else {
		c.SetLineStyle(frameLine)
		c.Stroke(c.Rectangle.Path())
		headInk.line(c, c.Center().X, c.Max.Y+headGap, 0.5, ch.title)
	}
	if showX {
		ch.labelX(c, xs)
	}
	if showY {
		ch.labelY(c, ys)
	}
}

func (ch *chart) labelX(c draw.Canvas, ts []tick) {
	for _, t := range ts {
		tickInk.line(c, c.X(ch.x.at(t.value)), c.Min.Y-tickGap-tickInk.size()+1.5, 0.5, t.label)
	}
	y := c.Min.Y - underX(ts)
	labelInk.line(c, c.Center().X, y-labelGap-labelInk.size()+2, 0.5, ch.x.label)
}

func (ch *chart) labelY(c draw.Canvas, ts []tick) {
	x := c.Min.X
	if len(ts) > 0 {
		x -= tickGap
	}
	for _, t := range ts {
		tickInk.middle(c, x, c.Y(ch.y.at(t.value)), 1, t.label)
	}
	labelInk.upward(c, x-widest(ts)-labelGap, c.Center().Y, ch.y.label)
}
