package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Tree is a panel that shows constituents over a sentence: words at the bottom, and above them a bar for each
// constituent that joins its parts. Constituents may have any number of parts, and words may be left without any.
type Tree struct {
	Title        string
	Words        []string
	Tags         []string // written above the words; none if nil
	Constituents []Constituent
	Caption      string // written below the words, such as a log-probability
	Marked       string // what it means that a constituent is marked, for the legend; none if empty
}

// Constituent is a part of a sentence, from its first to its last word, both inclusive and counted from 0. Of two with
// the same words, the later one stands above the other.
type Constituent struct {
	First, Last int
	Label       string // none if empty
	Mark        bool   // drawn in colour
}

// Sizes of a tree in points.
const (
	treeLevel  = 17 // from one level of constituents to the next
	treeColumn = 9  // free room between words
)

var (
	wordInk  = ink(font.Font{Size: 9.5}, 0x1a)
	treeLine = draw.LineStyle{Color: gray(0x77), Width: 0.9}
	markLine = draw.LineStyle{Color: okabeIto[0], Width: 1.4}
)

func (t Tree) chart() (*chart, error) {
	nodes, err := t.nodes()
	if err != nil {
		return nil, err
	}
	places, width := t.places(nodes)
	levels := 0
	for _, n := range nodes {
		levels = max(levels, n.level)
	}
	axes := Axes{Title: t.Title, X: Axis{Label: t.Caption}, NoTicks: true}
	ch := newChart(axes, width, treeLevel*(vg.Length(levels)+0.5))
	ch.rigid, ch.marks = true, 2*len(t.Words)+4*len(nodes)
	var words plot.ConstantTicks
	for i, w := range t.Words {
		label := printable(w)
		if t.Tags != nil {
			label = printable(t.Tags[i]) + "\n" + label
		}
		words = append(words, plot.Tick{Value: float64(places[i]), Label: label})
	}
	ch.HideAxes()
	ch.X.Tick.Marker, ch.X.Tick.Label.Font, ch.X.Tick.Label.Color = words, wordInk.Font, wordInk.Color
	ch.X.Min, ch.X.Max, ch.Y.Min, ch.Y.Max = 0, float64(width), 0, float64(levels)+0.5
	ch.Add(drawing(func(c draw.Canvas, p *plot.Plot) { drawTree(c, p, nodes, places) }))
	if t.Marked != "" {
		ch.legend = append(ch.legend, entry{t.Marked, &plotter.Line{LineStyle: markLine}})
	}
	return ch, nil
}

// treeNode is a constituent with what is below it: nodes by their number, words i as ^i.
type treeNode struct {
	Constituent
	parts []int
	level int // 1 above words alone
}

// nodes are the constituents, parts before wholes.
func (t Tree) nodes() ([]treeNode, error) {
	n := len(t.Words)
	if n == 0 {
		return nil, errors.New("tree: no words")
	}
	if t.Tags != nil && len(t.Tags) != n {
		return nil, fmt.Errorf("tree: %d tags for %d words", len(t.Tags), n)
	}
	sorted := slices.Clone(t.Constituents)
	slices.SortStableFunc(sorted, func(a, b Constituent) int { return cmp.Compare(a.Last-a.First, b.Last-b.First) })
	over := make([]int, n) // the largest node so far over each word, or the word itself
	for i := range over {
		over[i] = ^i
	}
	var nodes []treeNode
	for _, c := range sorted {
		if c.First < 0 || c.Last < c.First || c.Last >= n {
			return nil, fmt.Errorf("tree: constituent %d to %d of %d words", c.First, c.Last, n)
		}
		node := treeNode{Constituent: c, level: 1}
		for i := c.First; i <= c.Last; i++ {
			part := over[i]
			if part >= 0 {
				if p := nodes[part]; p.First < c.First || p.Last > c.Last {
					return nil, fmt.Errorf("tree: constituents %d to %d and %d to %d cross", p.First, p.Last, c.First, c.Last)
				}
				node.level = max(node.level, nodes[part].level+1)
				i = nodes[part].Last
			}
			node.parts = append(node.parts, part)
		}
		for i := c.First; i <= c.Last; i++ {
			over[i] = len(nodes)
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// places are the middles of words, so far apart that neither words nor the labels of two of them touch, and the width
// of all.
func (t Tree) places(nodes []treeNode) (middles []vg.Length, width vg.Length) {
	narrowest := vg.Length(0)
	for _, n := range nodes {
		narrowest = max(narrowest, tickInk.Width(printable(n.Label)))
	}
	for i, w := range t.Words {
		column := max(wordInk.Width(printable(w)), narrowest)
		if t.Tags != nil {
			column = max(column, wordInk.Width(printable(t.Tags[i])))
		}
		column += treeColumn
		middles = append(middles, width+column/2)
		width += column
	}
	return middles, width
}

// drawTree draws lines, and labels over them on a ground of their own.
func drawTree(c draw.Canvas, p *plot.Plot, nodes []treeNode, words []vg.Length) {
	tops := make([]vg.Point, len(nodes))
	top := func(part int) vg.Point {
		if part < 0 {
			return vg.Point{X: c.X(p.X.Norm(float64(words[^part]))), Y: c.Min.Y}
		}
		return tops[part]
	}
	for i, n := range nodes {
		first, last := top(n.parts[0]).X, top(n.parts[len(n.parts)-1]).X
		y := c.Y(p.Y.Norm(float64(n.level)))
		tops[i] = vg.Point{X: (first + last) / 2, Y: y}
		line := treeLine
		if n.Mark {
			line = markLine
		}
		for k, part := range n.parts {
			from := top(part)
			stem := []vg.Point{from, {X: from.X, Y: y}}
			if len(n.parts) > 1 && k == 0 {
				stem = append(stem, vg.Point{X: last, Y: y}) // with the bar, so that their corner is closed
			}
			c.StrokeLines(line, stem)
		}
	}
	for i, n := range nodes {
		if n.Label == "" {
			continue
		}
		label := tickInk
		label.XAlign, label.YAlign = draw.XCenter, draw.YCenter
		if n.Mark {
			label.Color = markLine.Color
		}
		half := vg.Point{X: label.Width(printable(n.Label))/2 + 1.5, Y: 4.7}
		c.SetColor(gray(0xff))
		c.Fill(vg.Rectangle{Min: tops[i].Sub(half), Max: tops[i].Add(half)}.Path())
		c.FillText(label, tops[i].Add(vg.Point{Y: 1}), printable(n.Label))
	}
}
