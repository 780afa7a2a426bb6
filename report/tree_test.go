package report

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"
)

// twentyWords is a tree of two kinds of constituents over as many words as grammars are learned from.
func twentyWords() Tree {
	t := Tree{
		Title: "viterbi", Words: strings.Fields("the chairman of the board said that a plan to sell its oldest mills would be announced before next summer"),
		Caption: "log p = −84.21", Marked: "also in the gold tree",
	}
	for i := range t.Words {
		t.Tags = append(t.Tags, "T"+string(rune('0'+i%10)))
	}
	t.Constituents = []Constituent{
		{First: 0, Last: 19, Label: "N1"}, {First: 0, Last: 4, Label: "N24", Mark: true}, {First: 2, Last: 4, Label: "N7", Mark: true},
		{First: 3, Last: 4, Label: "N11", Mark: true}, {First: 0, Last: 1, Label: "N11", Mark: true}, {First: 5, Last: 19, Label: "N15"},
	}
	for first := 6; first < 19; first++ {
		t.Constituents = append(t.Constituents, Constituent{First: first, Last: 19, Label: "N28"})
	}
	return t
}

func flatTree() Tree {
	return Tree{Title: "gold", Words: strings.Fields("old men and women sleep"), Constituents: []Constituent{
		{First: 0, Last: 3}, {First: 2, Last: 2, Label: "CC"}, {First: 0, Last: 4, Label: "S"}, {First: 0, Last: 4, Label: "TOP"},
	}}
}

func TestTreeNodes(t *testing.T) {
	nodes, err := flatTree().nodes()
	if err != nil {
		t.Fatal(err)
	}
	type node struct {
		Label string
		Parts []int
		Level int
	}
	var got []node
	for _, n := range nodes {
		got = append(got, node{n.Label, n.parts, n.level})
	}
	want := []node{{"CC", []int{^2}, 1}, {"", []int{^0, ^1, 0, ^3}, 2}, {"S", []int{1, ^4}, 3}, {"TOP", []int{2}, 4}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTreeErrors(t *testing.T) {
	two := []string{"a", "b", "c"}
	for want, tree := range map[string]Tree{
		"no words":               {},
		"1 tags for 3 words":     {Words: two, Tags: []string{"t"}},
		"constituent 1 to 3":     {Words: two, Constituents: []Constituent{{First: 1, Last: 3}}},
		"constituent 2 to 1":     {Words: two, Constituents: []Constituent{{First: 2, Last: 1}}},
		"constituent -1 to 1":    {Words: two, Constituents: []Constituent{{First: -1, Last: 1}}},
		"1 to 2 and 0 to 1 cros": {Words: two, Constituents: []Constituent{{First: 1, Last: 2}, {First: 0, Last: 1}}},
	} {
		if _, _, err := NewFigure(tree).encode(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// Words never overlap, whatever they are, and a tree keeps the room that it needs.
func TestTreeFits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 2 + r.IntN(25)
		tree := Tree{Caption: strings.Repeat("c", r.IntN(40))}
		for range n {
			tree.Words = append(tree.Words, strings.Repeat("w", r.IntN(12)))
		}
		for first := range n - 1 {
			tree.Constituents = append(tree.Constituents, Constituent{First: first, Last: n - 1, Label: strings.Repeat("N", 1+r.IntN(5))})
		}
		slices.Reverse(tree.Constituents)
		nodes, err := tree.nodes()
		if err != nil {
			t.Fatal(err)
		}
		if top := nodes[len(nodes)-1]; top.First != 0 || top.Last != n-1 || top.level != n-1 {
			t.Fatalf("the top is %+v", top)
		}
		places, width := tree.places(nodes)
		for i := 1; i < n; i++ {
			words := (wordInk.Width(tree.Words[i-1]) + wordInk.Width(tree.Words[i])) / 2
			if gap := places[i] - places[i-1] - words; gap < treeColumn-1e-9 {
				t.Errorf("words %d and %d are %g apart", i-1, i, gap)
			}
		}
		l, err := Figure{Panels: [][]Panel{{tree, tree, tree}}}.lay()
		if err != nil {
			t.Fatal(err)
		}
		if need := 3 * width; l.width < need || l.height < treeLevel*vg.Length(n) {
			t.Errorf("three trees %g wide and %d levels high have %g by %g", width, n-1, l.width, l.height)
		}
	}
}
