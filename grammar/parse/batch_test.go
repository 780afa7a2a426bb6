package parse

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/treebank"
)

// Batches hold all sentences once, in their order, in as many rows as fit into the area, and at least one.
func TestArea(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	sentences := make([]treebank.Sentence, 100)
	for i := range sentences {
		sentences[i].Words = make([]int32, 2+r.IntN(40))
	}
	for _, b := range []Batches{{Rows: 8, Bucket: 5}, {Rows: 8, Bucket: 5, Area: 8 * 20 * 20}, {Rows: 8, Bucket: 1, Area: 1}} {
		var seen []int
		err := b.each(sentences, false, func(number int, at []int, x Padded) error {
			rows, n := x.Words.Shape().Dim(0), x.Room()
			want := 8
			if b.Area > 0 {
				want = max(1, min(8, b.Area/(n*n)))
			}
			if rows != want || len(at) > rows || len(x.LengthOf) != rows || len(x.Sentences) != len(at) {
				t.Errorf("%+v: batch %d has %d rows for %d sentences, room for %d words, want %d rows", b, number, rows, len(at), n, want)
			}
			full := len(at) == rows || len(seen)+len(at) == len(sentences)
			if next := len(seen) + len(at); !full && len(sentences[next].Words) <= n {
				t.Errorf("%+v: batch %d leaves out a sentence that fits", b, number)
			}
			seen = append(seen, at...)
			return nil
		})
		if err != nil || len(seen) != len(sentences) || !slices.IsSorted(seen) {
			t.Errorf("%+v: sentences %v, error %v", b, seen, err)
		}
	}
}
