package envs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/gfn/envtest"
)

// lengths are observations that say nothing but their length.
func lengths(n ...int32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(n, len(n), 1) }

func lengthOf(x gfn.Batch) *Node { return Squeeze(x[0], 1) }

// choose is a binomial coefficient.
func choose(n, k int) int {
	c := 1
	for i := range k {
		c = c * (n - i) / (i + 1)
	}
	return c
}

// compositions counts the ways to write n as an ordered sum of numbers up to most.
func compositions(n, most int) int {
	if n == 0 {
		return 1
	}
	sum := 0
	for first := 1; first <= min(n, most); first++ {
		sum += compositions(n-first, most)
	}
	return sum
}

// TestSegmentation checks the laws and the counts for strings of all lengths, which observations say. Without a bound a
// string of n letters has a full binary tree of depth n-1.
func TestSegmentation(t *testing.T) {
	const most = 6
	for longest := range most + 2 {
		e := envs.Segmentation{Max: most, Longest: longest, Length: lengthOf}
		envtest.Run(t, e, lengths(3, 0, 6, 1, 2, 5, 4))
		for n := range int32(most + 1) {
			d, err := gfn.Enumerate(open(t), e, []*tensors.Tensor{lengths(n)}, 1000)
			if err != nil {
				t.Fatal(err)
			}
			bound := longest
			if longest == 0 {
				bound = most
			}
			if want := compositions(int(n), bound); len(d.Objects) != want || len(d.Edges) != d.Len()-1 {
				t.Errorf("%d letters, segments of at most %d: %d objects, %d edges, %d states; want %d objects of a tree",
					n, longest, len(d.Objects), len(d.Edges), d.Len(), want)
			}
			if full := 1<<max(n, 1) - 1; bound == most && d.Len() != full {
				t.Errorf("%d letters: %d states, want %d", n, d.Len(), full)
			}
		}
	}
	fixed := envs.Segmentation{Max: 4}
	envtest.Run(t, fixed)
	if d := enumerate(t, fixed); d.Len() != 15 || len(d.Objects) != 8 {
		t.Errorf("4 letters: %d states, %d objects", d.Len(), len(d.Objects))
	}
}

// TestSegments reads objects: the decisions, and the letters at which segments end.
func TestSegments(t *testing.T) {
	e := envs.Segmentation{Max: 5, Length: lengthOf}
	for _, c := range []struct {
		length int32
		want   string // the segments of all objects
	}{
		{0, "."}, {1, "a."}, {2, "ab. a|b."}, {3, "abc. ab|c. a|bc. a|b|c."},
	} {
		d, err := gfn.Enumerate(open(t), e, []*tensors.Tensor{lengths(c.length)}, 100)
		if err != nil {
			t.Fatal(err)
		}
		out, err := CallOnceN(open(t), func(in []*Node) []*Node {
			ends := e.Ends(in)
			cut := SliceAxis(ends, 1, AxisRange(0, 4)) // as Sample would draw it, true beyond the end of the string too
			beyond := GreaterOrEqual(Iota(in[0].Graph(), in[0].Shape(), 1), BroadcastToShape(InsertAxes(in[1], 1), in[0].Shape()))
			again := e.Of(LogicalOr(cut, beyond), in[1])
			return append([]*Node{ends}, again...)
		}, d.ObjectStates()[0], d.ObjectStates()[1])
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ends := range out[0].Value().([][]bool) {
			var b strings.Builder
			for i := range c.length {
				b.WriteByte(byte('a' + i))
				if ends[i] && i < c.length-1 {
					b.WriteByte('|')
				}
			}
			if n := slices.Index(ends, true); c.length > 0 && !ends[c.length-1] || c.length == 0 && n >= 0 {
				t.Errorf("%d letters: ends %v", c.length, ends)
			}
			got = append(got, b.String()+".")
		}
		slices.Sort(got)
		want := strings.Fields(c.want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%d letters: %v, want %v", c.length, got, want)
		}
		for i, z := range d.ObjectStates() {
			if fmt.Sprint(out[1+i].Value()) != fmt.Sprint(z.Value()) {
				t.Errorf("%d letters: tensor %d of Of is %v, want %v", c.length, i, out[1+i].Value(), z.Value())
			}
		}
	}
}

// TestSetCounts checks the laws and the counts: sets of k elements have n-k larger ones, and each is left by a stop.
func TestSetCounts(t *testing.T) {
	for _, c := range []struct{ items, most int }{{1, 0}, {4, 0}, {5, 2}, {5, 5}, {6, 1}} {
		e := envs.Set{Items: c.items, Most: c.most}
		envtest.Run(t, e)
		most := c.most
		if most == 0 {
			most = c.items
		}
		sets, edges := 0, 0
		for k := range most + 1 {
			n := choose(c.items, k)
			sets += n
			edges += n // the stops
			if k < most {
				edges += n * (c.items - k)
			}
		}
		if d := enumerate(t, e); d.Len() != 2*sets || len(d.Edges) != edges || len(d.Objects) != sets {
			t.Errorf("%+v: %d states, %d edges, %d objects; want %d, %d, %d", e, d.Len(), len(d.Edges), len(d.Objects), 2*sets, edges, sets)
		}
	}
	envtest.Run(t, envs.Set{Items: 40, Most: 9}) // by walks
}

// TestTokensCounts checks the laws and the counts: a tree, and a stop for each of its nodes.
func TestTokensCounts(t *testing.T) {
	for _, c := range []struct{ values, most int }{{1, 1}, {1, 4}, {3, 1}, {3, 4}, {2, 6}} {
		e := envs.Tokens{Values: c.values, Most: c.most}
		envtest.Run(t, e)
		all, power := 0, 1
		for range c.most + 1 {
			all += power
			power *= c.values
		}
		if d := enumerate(t, e); d.Len() != 2*all || len(d.Edges) != 2*all-1 || len(d.Objects) != all {
			t.Errorf("%+v: %d states, %d edges, %d objects; want %d, %d, %d", e, d.Len(), len(d.Edges), len(d.Objects), 2*all, 2*all-1, all)
		}
	}
	envtest.Run(t, envs.Tokens{Values: 7, Most: 20}) // by walks
}

// TestTokensOf checks that Of cuts rows at their lengths.
func TestTokensOf(t *testing.T) {
	out, err := CallOnceN(open(t), func(in []*Node) []*Node { return envs.Tokens{Values: 5, Most: 3}.Of(in[0], in[1]) },
		[][]int32{{1, 2, 3}, {4, 4, 4}, {0, 1, 2}}, []int32{2, 0, 3})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(out[0].Value(), out[1].Value()); got != "[[1 2 -1] [-1 -1 -1] [0 1 2]] [1 1 1]" {
		t.Errorf("got %s", got)
	}
}

// TestProduct checks the law of gfn.Product: the combinations of open choices are the objects, each of them once.
func TestProduct(t *testing.T) {
	b := open(t)
	for _, c := range []struct {
		env gfn.Product
		n   int32
	}{
		{envs.Sequence{Sizes: []int{2, 3, 2}}, 0},
		{envs.Set{Items: 4}, 0},
		{envs.Set{Items: 3, Most: 3}, 0},
		{envs.Segmentation{Max: 5}, 0},
		{envs.Segmentation{Max: 5, Longest: 5, Length: lengthOf}, 5},
		{envs.Segmentation{Max: 5, Length: lengthOf}, 3},
		{envs.Segmentation{Max: 5, Length: lengthOf}, 1},
	} {
		x := lengths(c.n)
		sizes, count := c.env.Choices(), 1
		for _, s := range sizes {
			count *= s
		}
		var values []int32
		for k := range count {
			for _, s := range sizes {
				values = append(values, int32(k%s))
				k /= s
			}
		}
		out, err := CallOnceN(b, func(in []*Node) []*Node {
			s := gfn.Initial(c.env, gfn.Batch{in[0]}).Repeat(count)
			z := c.env.Choose(s, in[1])
			return append([]*Node{c.env.Open(s), gfn.Terminal(c.env, z)}, z...)
		}, x, tensors.FromFlatDataAndDimensions(values, count, len(sizes)))
		if err != nil {
			t.Fatal(err)
		}
		isOpen, done := out[0].Value().([][]bool), out[1].Value().([]bool)
		times := 1 // that each object is listed
		for i, s := range sizes {
			if !isOpen[0][i] {
				times *= s
			}
		}
		seen := map[string]int{}
		for k := range count {
			if !done[k] {
				t.Errorf("%T: combination %d is not terminal", c.env, k)
			}
			seen[rowOf(out[2:], k)]++
		}
		d, err := gfn.Enumerate(b, c.env, []*tensors.Tensor{x}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) != len(d.Objects) {
			t.Errorf("%T: %d objects, want %d", c.env, len(seen), len(d.Objects))
		}
		for k := range d.Objects {
			if row := rowOf(d.ObjectStates(), k); seen[row] != times {
				t.Errorf("%T: object %s comes %d times, not %d", c.env, row, seen[row], times)
			}
		}
	}
	for _, e := range []gfn.Product{envs.Set{Items: 4, Most: 3}, envs.Segmentation{Max: 5, Longest: 4}} {
		if e.Choices() != nil {
			t.Errorf("%T with a bound is a product of %v", e, e.Choices())
		}
	}
}

// rowOf prints row i of tensors of whole numbers.
func rowOf(ts []*tensors.Tensor, i int) string {
	var b strings.Builder
	for _, t := range ts {
		flat := tensors.MustCopyFlatData[int32](t)
		width := len(flat) / t.Shape().Dim(0)
		fmt.Fprint(&b, flat[i*width:(i+1)*width])
	}
	return b.String()
}

// Settings that cannot be meant are errors of the program that is built.
func TestSettings(t *testing.T) {
	for want, e := range map[string]gfn.Env{
		"a Segmentation of at most 1 letters":                  envs.Segmentation{Max: 1},
		"into segments of at most -1":                          envs.Segmentation{Max: 3, Longest: -1},
		"Segmentation.Length is (Int32)[1, 1], not (Int32)[1]": envs.Segmentation{Max: 3, Length: func(x gfn.Batch) *Node { return x[0] }},
		"a Set of at most 4 out of 3 elements":                 envs.Set{Items: 3, Most: 4},
		"a Set of at most 0 out of 0 elements":                 envs.Set{},
		"Tokens of 0 values":                                   envs.Tokens{Most: 3},
		"at most 0":                                            envs.Tokens{Values: 3},
	} {
		_, err := gfn.Enumerate(open(t), e, []*tensors.Tensor{lengths(2)}, 100)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
