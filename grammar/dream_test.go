package grammar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// dream is one row of Dreams, on the host.
type dream struct {
	left, right, label []int // by gap, as they are
	leaves             []int // as they are
	length             int
	complete           bool
}

// asleep is tables and a key.
type asleep[G, T any] struct {
	Tables G
	Key    T
}

type asleepTensors = asleep[LogProbTensors, *tensors.Tensor]

// dreamTensors are Dreams on the host.
type dreamTensors struct {
	TreeTensors
	Leaves, Lengths, Complete *tensors.Tensor
}

type dreamMaker = *program.Program[asleepTensors, dreamTensors]

func dreamProgram(b compute.Backend, rows, leaves int) dreamMaker {
	set := program.NewSet(b, nil)
	return program.New[asleepTensors, dreamTensors](set, "dream", func(in asleep[LogProbs, *Node]) Dreams {
		return in.Tables.Dream(rng.In(in.Key), rows, leaves)
	})
}

func dreams(t testing.TB, p dreamMaker, g *Grammar, dtype dtypes.DType, key *tensors.Tensor) (all []dream) {
	t.Helper()
	out := call(t, p, asleepTensors{g.LogProbs(dtype), key})
	row := func(x *tensors.Tensor, b int) (all []int) {
		size := x.Shape().Dim(1)
		for _, v := range tensors.MustCopyFlatData[int32](x)[b*size:][:size] {
			all = append(all, int(v))
		}
		return all
	}
	complete := tensors.MustCopyFlatData[bool](out.Complete)
	for b, length := range tensors.MustCopyFlatData[int32](out.Lengths) {
		all = append(all, dream{
			row(out.Left, b), row(out.Right, b), row(out.Label, b), row(out.Leaves, b), int(length), complete[b],
		})
	}
	return all
}

// tree turns gaps into merges in order, and checks the numbering on the way.
func (d dream) tree() (*Tree, error) {
	n, k := len(d.leaves), d.length
	if k < 2 || k > n {
		return nil, fmt.Errorf("%d leaves of up to %d", k, n)
	}
	for i := range n {
		if i >= k && d.leaves[i] != 0 || i >= k-1 && i < n-1 && (d.left[i] != 0 || d.right[i] != 0 || d.label[i] != 0) {
			return nil, fmt.Errorf("no zeros behind %d leaves: %+v", k, d)
		}
	}
	isTop := slices.Repeat([]bool{true}, k-1)
	for g := range k - 1 {
		for _, c := range []int{d.left[g], d.right[g]} {
			if c >= n && c < n+k-1 {
				isTop[c-n] = false
			}
		}
	}
	t := &Tree{}
	var add func(node, depth int) (int, int, int, error)
	add = func(node, depth int) (name, from, to int, err error) {
		switch {
		case depth > k || node < 0 || node >= n+k-1 || node >= k && node < n:
			return 0, 0, 0, fmt.Errorf("node %d at depth %d in %+v", node, depth, d)
		case node < k:
			return node, node, node, nil
		}
		g := node - n
		l, from, end, err := add(d.left[g], depth+1)
		if err != nil {
			return 0, 0, 0, err
		}
		r, begin, to, err := add(d.right[g], depth+1)
		if err == nil && (end != g || begin != g+1) {
			err = fmt.Errorf("inner node %d splits after leaf %d and before %d in %+v", node, end, begin, d)
		}
		t.Left, t.Right, t.Label = append(t.Left, l), append(t.Right, r), append(t.Label, d.label[g])
		return k + len(t.Left) - 1, from, to, err
	}
	if _, _, _, err := add(n+slices.Index(isTop, true), 0); err != nil {
		return nil, err
	}
	return t, t.Check()
}

// text writes the tree with its leaves, such as "1(w2 0(w0 t1))".
func (d dream) text(g *Grammar) (string, error) {
	t, err := d.tree()
	if err != nil {
		return "", err
	}
	v, nt := len(g.Words), len(g.Nonterminals)
	var names []string
	for _, x := range d.leaves[:d.length] {
		switch {
		case x < v:
			names = append(names, fmt.Sprint("w", x))
		case x > v && x < v+1+nt:
			names = append(names, fmt.Sprint("x", x-v-1))
		case x >= v+1+nt && x < v+1+g.symbols():
			names = append(names, fmt.Sprint("t", x-v-1-nt))
		default:
			return "", fmt.Errorf("leaf %d is no word and no symbol", x)
		}
	}
	for m := range t.Left {
		names = append(names, fmt.Sprintf("%d(%s %s)", t.Label[m], names[t.Left[m]], names[t.Right[m]]))
	}
	if words := !strings.ContainsAny(names[len(names)-1], "xt"); words != d.complete {
		return "", fmt.Errorf("complete is %v of %s", d.complete, names[len(names)-1])
	}
	return names[len(names)-1], nil
}

// Every dream is a tree by gaps whose rules and words are all possible, on both backends that are always there. A key
// decides all of it.
func TestDreamLaws(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	plain, err := backend.Open("go")
	if err != nil {
		t.Fatal(err)
	}
	complete, total := 0, 0
	for _, c := range []struct {
		kind                        Kind
		nt, pt, words, rows, leaves int
		dtype                       dtypes.DType
	}{
		{CFG, 5, 7, 50, 40, 12, dtypes.Float32},
		{NCFG, 5, 7, 50, 40, 12, dtypes.Float32},
		{CFG, 6, 6, 10, 7, 40, dtypes.Float64},
		{NCFG, 6, 6, 10, 7, 40, dtypes.Float64},
		{CFG, 1, 1, 1, 30, 3, dtypes.Float32},
		{NCFG, 2, 1, 2, 9, 2, dtypes.Float32},
		{CFG, 3, 4, 9, 1, 5, dtypes.Float32},
	} {
		g := someGrammar(r, c.kind, c.nt, c.pt, c.words)
		for _, b := range []compute.Backend{newBackend(), plain} {
			exec := dreamProgram(b, c.rows, c.leaves)
			for i := range 10 {
				some := dreams(t, exec, g, c.dtype, rng.Key(seed, "laws", uint64(i)))
				for _, d := range some {
					if _, err := d.text(g); err != nil {
						t.Fatal(err)
					}
					if d.complete != (d.length < c.leaves) {
						t.Errorf("complete is %v at %d leaves of %d", d.complete, d.length, c.leaves)
					}
					if err := d.possible(g); err != nil {
						t.Error(err)
					}
					if total++; d.complete {
						complete++
					}
				}
				if i == 0 {
					again := dreams(t, exec, g, c.dtype, rng.Key(seed, "laws", 0))
					other := dreams(t, exec, g, c.dtype, rng.Key(seed, "laws", 99))
					if fmt.Sprint(again) != fmt.Sprint(some) || c.words > 2 && c.rows > 1 && fmt.Sprint(other) == fmt.Sprint(some) {
						t.Errorf("a key gave %v, then %v, and another %v", some, again, other)
					}
				}
			}
		}
	}
	if complete == 0 || complete == total {
		t.Errorf("%d of %d dreams are complete; the test saw only one sort", complete, total)
	}
}

// someGrammar draws a grammar in which everything can be expanded, but half of the ways to do so are missing.
func someGrammar(r *rand.Rand, kind Kind, nt, pt, words int) *Grammar {
	for {
		g := randomGrammar(r, kind, nt, pt, words, 0.5)
		total := 0.0
		for _, p := range slices.Concat(g.Root, g.Rules, g.Emit) {
			total += p
		}
		if rows := 1 + nt*g.parents() + pt*g.hosts(); math.Abs(total-float64(rows)) < 1e-9 {
			return g
		}
	}
}

// possible says whether all rules and words of a dream have positive probability.
func (d dream) possible(g *Grammar) error {
	n, v, nt := len(d.leaves), len(g.Words), len(g.Nonterminals)
	parent := make([]int, n-1) // of the inner nodes
	for m := range d.length - 1 {
		for _, c := range []int{d.left[m], d.right[m]} {
			if c >= n {
				parent[c-n] = d.label[m] + 1
			}
		}
	}
	for m := range d.length - 1 {
		x := d.label[m]
		symbols := func(c int) (out []int) { // that a child may have been
			switch {
			case c >= n:
				return []int{d.label[c-n]}
			case d.leaves[c] > v:
				return []int{d.leaves[c] - v - 1}
			}
			for t := range g.Preterminals {
				if g.EmitRow(t, x)[d.leaves[c]] > 0 {
					out = append(out, nt+t)
				}
			}
			return out
		}
		best := 0.0
		for _, l := range symbols(d.left[m]) {
			for _, r := range symbols(d.right[m]) {
				best = max(best, g.RuleRow(x, parent[m])[l*g.symbols()+r])
			}
		}
		if best == 0 || parent[m] == 0 && g.Root[x] == 0 {
			return fmt.Errorf("inner node %d cannot be in %+v", n+m, d)
		}
	}
	return nil
}

// Words of large vocabularies have their probabilities, wherever blocks of words end. The false-alarm rate is alpha for
// each of sixteen checks.
func TestDreamWords(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	const rows, calls = 4000, 5
	for _, kind := range []Kind{CFG, NCFG} {
		for _, words := range []int{2, 3, 16, 150} {
			g := randomGrammar(r, kind, 1, 2, words, 0)
			for i := range g.Emit {
				switch {
				case i%words == 0:
					g.Emit[i] += 2 // the likeliest word, so that the twin differs whatever was drawn
				case i%3 == 0:
					g.Emit[i] = 0
				}
			}
			normalise(g.Emit, words)
			clear(g.Rules)
			for p := range g.parents() {
				copy(g.RuleRow(0, p), []float64{0, 0, 0, 0, 0.1, 0.3, 0, 0.4, 0.2})
			}
			exec := dreamProgram(newBackend(), rows, 3)
			var counts, want, wrong [2]map[string]float64
			for side := range 2 {
				counts[side], want[side], wrong[side] = map[string]float64{}, map[string]float64{}, map[string]float64{}
				first := [2][2]float64{{0.4, 0.6}, {0.5, 0.5}}[side] // probabilities of tags
				for w := range words {
					p := first[0]*g.EmitRow(0, 0)[w] + first[1]*g.EmitRow(1, 0)[w]
					want[side][fmt.Sprint(w)] = p
					wrong[side][fmt.Sprint((w+1)%words)] = p
				}
			}
			for i := range calls {
				for _, d := range dreams(t, exec, g, dtypes.Float32, rng.Key(seed, "words", uint64(i))) {
					counts[0][fmt.Sprint(d.leaves[0])]++
					counts[1][fmt.Sprint(d.leaves[1])]++
				}
			}
			for side := range 2 {
				if q := chi2(counts[side], want[side], rows*calls); q < alpha {
					t.Errorf("%s, %d words: p-value %g on side %d", kind, words, q, side)
				}
				if q := chi2(counts[side], wrong[side], rows*calls); q > alpha {
					t.Errorf("%s, %d words: words moved by one pass with p-value %g", kind, words, q)
				}
			}
		}
	}
}

// The gradient of what is computed from a dream does not pass through it.
func TestDreamGradient(t *testing.T) {
	seed := testkit.Seed(t)
	g := randomGrammar(rand.New(rand.NewPCG(seed, 3)), NCFG, 2, 2, 3, 0)
	tables := g.LogProbs(dtypes.Float32)
	out, err := CallOnceN(newBackend(), func(root, rules, emit, key *Node) []*Node {
		tables := LogProbs{root, rules, emit}
		d := tables.Dream(rng.In(key), 6, 4)
		loss := ReduceAllSum(Gather(tables.Root, InsertAxes(d.Label, -1)))
		return Gradient(loss, tables.Root, tables.Rules, tables.Emit)
	}, tables.Root, tables.Rules, tables.Emit, rng.Key(seed, "gradient"))
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for i, x := range out {
		for _, v := range tensors.MustCopyFlatData[float32](x) {
			if total += float64(v); i > 0 && v != 0 {
				t.Errorf("a gradient of %g flows through a dream", v)
			}
		}
	}
	if total != 6*3 {
		t.Errorf("the root has a gradient of %g in all, want 18", total)
	}
}

// Sizes that make no sense are errors, not something drawn.
func TestDreamSizes(t *testing.T) {
	g := randomGrammar(rand.New(rand.NewPCG(testkit.Seed(t), 4)), CFG, 2, 2, 3, 0)
	tables := g.LogProbs(dtypes.Float32)
	for _, c := range []struct {
		rows, leaves int
		emit         *tensors.Tensor
	}{{0, 5, tables.Emit}, {3, 1, tables.Emit}, {3, 5, tables.Root}} {
		_, err := CallOnce(newBackend(), func(root, rules, emit, key *Node) *Node {
			return LogProbs{root, rules, emit}.Dream(rng.In(key), c.rows, c.leaves).Leaves
		}, tables.Root, tables.Rules, c.emit, rng.Key(1, "sizes"))
		if err == nil || !strings.Contains(err.Error(), "grammar: ") {
			t.Errorf("%d rows, %d leaves, emissions %s: error %v", c.rows, c.leaves, c.emit.Shape(), err)
		}
	}
}

func BenchmarkDream(b *testing.B) {
	for _, c := range []struct {
		kind                Kind
		nt, pt, words, rows int
	}{{CFG, 20, 40, 150, 16}, {NCFG, 20, 40, 150, 16}, {CFG, 29, 60, 9672, 32}, {NCFG, 29, 60, 9672, 32}} {
		b.Run(fmt.Sprintf("%s/%d-%d-%d", c.kind, c.nt, c.pt, c.words), func(b *testing.B) {
			s := c.nt + c.pt
			r := rand.New(rand.NewPCG(1, 1))
			ruleDims, emitDims := []int{c.nt, s, s}, []int{c.words, c.pt}
			if c.kind == NCFG {
				ruleDims, emitDims = []int{c.nt, c.nt + 1, s, s}, []int{c.words, c.pt, c.nt}
			}
			exec := dreamProgram(newBackend(), c.rows, 40)
			tables := LogProbTensors{normal(r, 0, c.nt), normal(r, -9, ruleDims...), normal(r, -9, emitDims...)}
			in := asleepTensors{tables, rng.Key(1, "bench")}
			begin := time.Now()
			call(b, exec, in)
			first, least := time.Since(begin), time.Hour
			for b.Loop() {
				begin = time.Now()
				call(b, exec, in)
				least = min(least, time.Since(begin))
			}
			b.ReportMetric(1e3*least.Seconds(), "ms-least")
			b.ReportMetric(first.Seconds(), "s-first")
		})
	}
}
