package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

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

// Constituent is a part of a sentence, from its first to its last word, both inclusive and counted from 0. Of two with the
// same words, the later one stands above the other.
type Constituent struct {
	First, Last int
	Label       string // none if empty
	Mark        bool   // drawn in colour
}

// Sizes of a tree in points, before it is made to fit its panel.
const (
	treeWord   = 9.5 // height of words
	treeLabel  = 8.5 // height of labels, tags and the caption
	treeLevel  = 17  // from one level of constituents to the next
	treeColumn = 9   // free room between words
)

var (
	treeGray  = gray(0x77)
	treeColor = okabeIto[0]
)

func (t Tree) chart() (*chart, error) {
	nodes, err := t.nodes()
	if err != nil {
		return nil, err
	}
	s := t.sketch(nodes, 1)
	ch := &chart{
		title: t.Title, noTicks: true, bare: true, x: scale{hi: 1}, y: scale{hi: 1},
		width: s.width, height: s.height, marks: 2*len(t.Words) + 4*len(nodes),
		draw: func(p plane) {
			// The panel may be smaller than the tree would like, or larger than it if others beside it are.
			wide, high := (p.Max.X-p.Min.X)/s.width, (p.Max.Y-p.Min.Y)/s.height
			t.sketch(nodes, min(wide, high)).draw(p.Canvas)
		},
	}
	if t.Marked != "" {
		ch.legend = append(ch.legend, lineEntry(t.Marked, draw.LineStyle{Color: treeColor, Width: 1.4}))
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

// treeSketch is a tree with every place decided, from its lower left corner.
type treeSketch struct {
	Tree
	nodes            []treeNode
	unit             vg.Length // what a point became
	word, tag, label ink
	width, height    vg.Length
	x                []vg.Length // of words
	wordY, tagY      vg.Length   // baselines
	level0           vg.Length   // where lines from words begin
}

// sketch lays a tree out at a scale.
func (t Tree) sketch(nodes []treeNode, scale vg.Length) *treeSketch {
	s := &treeSketch{
		Tree: t, nodes: nodes, unit: scale,
		word: newInk(treeWord*scale, false, gray(0x1a)), tag: newInk(treeLabel*scale, false, gray(0x66)),
		label: newInk(treeLabel*scale, false, gray(0x33)),
	}
	narrowest := vg.Length(0) // so that the label of two words leaves some of their bar to be seen
	levels := 0
	for _, n := range nodes {
		narrowest = max(narrowest, 0.8*s.label.width(n.Label))
		levels = max(levels, n.level)
	}
	for i, w := range t.Words {
		column := max(s.word.width(w), narrowest)
		if t.Tags != nil {
			column = max(column, s.tag.width(t.Tags[i]))
		}
		column += treeColumn * scale
		s.x = append(s.x, s.width+column/2)
		s.width += column
	}
	y := 3 * scale
	if t.Caption != "" {
		y += treeLabel * scale * 1.7
		s.width = max(s.width, s.tag.width(t.Caption)+treeColumn*scale)
	}
	s.wordY = y
	y += treeWord * scale * 1.1
	if t.Tags != nil {
		s.tagY = y + scale
		y += treeLabel * scale * 1.2
	}
	s.level0 = y
	s.height = y + vg.Length(levels)*treeLevel*scale + treeLabel*scale*0.7
	return s
}

func (s *treeSketch) draw(c draw.Canvas) {
	at := func(x, y vg.Length) vg.Point { return vg.Point{X: c.Min.X + x, Y: c.Min.Y + y} }
	xs := make([]vg.Length, len(s.nodes))
	place := func(part int) (x, y vg.Length) {
		if part < 0 {
			return s.x[^part], s.level0
		}
		return xs[part], s.y(part)
	}
	for i, n := range s.nodes {
		first, _ := place(n.parts[0])
		last, _ := place(n.parts[len(n.parts)-1])
		xs[i] = (first + last) / 2
		line := draw.LineStyle{Color: treeGray, Width: 0.9 * s.unit}
		if n.Mark {
			line = draw.LineStyle{Color: treeColor, Width: 1.4 * s.unit}
		}
		y := s.y(i)
		for k, part := range n.parts {
			x, from := place(part)
			stem := []vg.Point{at(x, from), at(x, y)}
			if len(n.parts) > 1 && k == 0 {
				stem = append(stem, at(last, y)) // with the bar, so that their corner is closed
			}
			c.StrokeLines(line, stem)
		}
	}
	for i, n := range s.nodes {
		s.drawLabel(c, at(xs[i], s.y(i)), n)
	}
	for i, w := range s.Words {
		p := at(s.x[i], s.wordY)
		s.word.line(c, p.X, p.Y, 0.5, w)
		if s.Tags != nil {
			s.tag.line(c, p.X, at(0, s.tagY).Y, 0.5, s.Tags[i])
		}
	}
	s.tag.line(c, c.Min.X+treeColumn*s.unit/2, c.Min.Y+3*s.unit, 0, s.Caption)
}

// y is the height of the bar of a node.
func (s *treeSketch) y(node int) vg.Length {
	return s.level0 + vg.Length(s.nodes[node].level)*treeLevel*s.unit
}

// drawLabel writes a label over the bar, on a ground of its own.
func (s *treeSketch) drawLabel(c draw.Canvas, mid vg.Point, n treeNode) {
	if n.Label == "" {
		return
	}
	half := vg.Point{X: s.label.width(n.Label)/2 + 1.5*s.unit, Y: 0.55 * treeLabel * s.unit}
	c.SetColor(gray(0xff))
	c.Fill(vg.Rectangle{Min: mid.Sub(half), Max: mid.Add(half)}.Path())
	k := s.label
	if n.Mark {
		k.color = treeColor
	}
	k.middle(c, mid.X, mid.Y, 0.5, n.Label)
}
