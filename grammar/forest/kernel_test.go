package forest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// outcome is one way that a move can go: what it undid, in the order in which it was undone, and what it made instead.
type outcome struct {
	undone, made   []closing
	to             int // the state it leads to
	b1, f1, f2, b2 float64
}

func (o outcome) String() string { return fmt.Sprint(o.undone, o.made) }

// logRatio is what the policies contribute to the logarithm of the acceptance ratio.
func (o outcome) logRatio() float64 { return o.b2 + o.f1 - o.b1 - o.f2 }

// outcomes lists all that can become of a move from a whole tree, so many steps back.
func (l *listing) outcomes(p gfn.Table, from, back int) (out []outcome) {
	labels := l.Env.(Env).Labels
	step := func(e gfn.Edge) closing { return closing{e.Action / labels, e.Action % labels} }
	extend := func(path []closing, e gfn.Edge) []closing { return append(path[:len(path):len(path)], step(e)) }
	var up func(at int, o outcome)
	up = func(at int, o outcome) {
		done := true
		for i, e := range l.Edges {
			if e.From == at {
				next := o
				next.made, next.f2, next.b2 = extend(o.made, e), o.f2+p.LogPF[i], o.b2+p.LogPB[i]
				up(e.To, next)
				done = false
			}
		}
		if done {
			o.to = at
			out = append(out, o)
		}
	}
	const initial = 0 // the state of bare words, which nothing can be undone of
	var down func(at, left int, o outcome)
	down = func(at, left int, o outcome) {
		if at == initial || left == 0 {
			up(at, o)
			return
		}
		for i, e := range l.Edges {
			if e.To == at {
				next := o
				next.undone, next.b1, next.f1 = extend(o.undone, e), o.b1+p.LogPB[i], o.f1+p.LogPF[i]
				down(e.From, left-1, next)
			}
		}
	}
	down(from, back, outcome{})
	return out
}

// kernel is where moves lead from the target: the distribution after one move, by object, and the fraction that was
// accepted.
func (l *listing) kernel(p gfn.Table, logR []float64, back int, ratio func(o outcome) float64) (next []float64, accepted float64) {
	number := map[int]int{}
	for i, s := range l.Objects {
		number[s] = i
	}
	pi := gfn.Normalise(logR)
	next = make([]float64, len(pi))
	for i, s := range l.Objects {
		stay := pi[i]
		for _, o := range l.outcomes(p, s, back) {
			j := number[o.to]
			w := pi[i] * math.Exp(o.b1+o.f2) * min(1, math.Exp(logR[j]-logR[i]+ratio(o)))
			next[j] += w
			stay -= w
		}
		next[i] += stay
		accepted += pi[i] - stay
	}
	return next, accepted
}

// table is the plain policy on all forests.
func (l *listing) table(t testing.TB, r *rig) gfn.Table {
	t.Helper()
	all, err := l.Tabulate(r.b, r.store, "/phi", Policy{r.Network}, observation(l.words))
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// temper scales what the policies read out.
func (r *rig) temper(t testing.TB, beta float64) {
	t.Helper()
	r.change(t, func(path string, x []float64) {
		if strings.Contains(path, "/readout/") && !strings.Contains(path, "/flow/") {
			for i := range x {
				x[i] *= beta
			}
		}
	})
}

// TestReferenceAcceptance checks how often moves between trees of the tiny grammar are accepted, with uniform policies.
func TestReferenceAcceptance(t *testing.T) {
	t.Parallel()
	l := list(t, 2, 0, 1, 2, 0)
	r := tinyRig(t, 1, l.words)
	r.flat(t)
	p := l.table(t, r)
	logR := l.rewards(tinyGrammar(grammar.CFG))
	for back, want := range map[int]float64{1: 0.8013, 2: 0.6122, 3: 0.5449, 7: 0.5449} {
		_, got := l.kernel(p, logR, back, outcome.logRatio)
		checkNumber(t, fmt.Sprintf("acceptance %d steps back", back), got, want, 0.51e-4)
	}
}

// TestKernelIsStationary sums over all ways that moves can go, with the probabilities of an arbitrary network: the
// target is kept, with and without a factor of the trees' shapes, tempered or not; and not if a term of the ratio is
// left out.
func TestKernelIsStationary(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	l := list(t, 2, 2, 0, 1, 1)
	random := rng.New(seed, "energies")
	energy := map[string]float64{}
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		logR := l.rewards(tinyGrammar(kind))
		withEnergy := slices.Clone(logR)
		for i, s := range l.Objects {
			shape := l.forest[s][0].shape()
			if _, ok := energy[shape]; !ok {
				energy[shape] = 2 * random.NormFloat64()
			}
			withEnergy[i] -= energy[shape]
		}
		for _, beta := range []float64{1, 1 / 1.1} {
			r := tinyRig(t, seed, l.words)
			r.temper(t, beta)
			p := l.table(t, r)
			for _, target := range [][]float64{logR, withEnergy} {
				for back := 1; back <= 3; back++ {
					pi := gfn.Normalise(target)
					next, _ := l.kernel(p, target, back, outcome.logRatio)
					checkNumber(t, fmt.Sprintf("%s, %d steps back: change of the target", kind, back), gfn.TotalVariation(pi, next), 0, 1e-12)
					for name, ratio := range map[string]func(o outcome) float64{
						"b2-b1": func(o outcome) float64 { return o.f1 - o.f2 },
						"f1-f2": func(o outcome) float64 { return o.b2 - o.b1 },
					} {
						next, _ := l.kernel(p, target, back, ratio)
						got := gfn.TotalVariation(pi, next)
						if trivial := name == "b2-b1" && back == 1; trivial { // the top of a tree is all there is to split
							checkNumber(t, "change of the target without "+name, got, 0, 1e-12)
						} else if got < 1e-5 {
							t.Errorf("%s, %d steps back: without %s the target changes by %g", kind, back, name, got)
						}
					}
				}
			}
		}
	}
}

// chiSquare returns how improbable it is that counts are so far from probabilities. Rare outcomes are taken together.
func chiSquare(counts map[string]int, p map[string]float64) float64 {
	total := 0
	for k, c := range counts {
		if total += c; p[k] == 0 {
			return 0
		}
	}
	var keys []string
	for k := range p {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if p[a] != p[b] {
			return int(math.Copysign(1, p[a]-p[b]))
		}
		return strings.Compare(a, b)
	})
	distance, groups, seen, want := 0.0, 0, 0.0, 0.0
	for _, k := range keys {
		seen, want = seen+float64(counts[k]), want+p[k]*float64(total)
		if want > 10 {
			distance += (seen - want) * (seen - want) / want
			groups, seen, want = groups+1, 0, 0
		}
	}
	return distuv.ChiSquared{K: float64(groups - 1)}.Survival(distance)
}

// alpha is the false-alarm rate of one statistical check; no test makes more than ten.
const alpha = 1e-5

// movable is what moves start from, each so many steps back and then forward or not.
type movable[T, F any] struct {
	Key, Words, Back, Rise T
	From                   F
}

// TestMoves compares tempered moves of the loop with what the plain policy says: the four probabilities that each
// reports, and how often it goes each of the ways there are.
func TestMoves(t *testing.T) {
	t.Parallel()
	const beta, rows = 0.5, 6000
	seed := testkit.Seed(t)
	l := list(t, 2, 2, 0, 1, 1)
	r := tinyRig(t, seed, slices.Repeat([][]int32{l.words}, rows)...)
	cold := tinyRig(t, seed, l.words)
	bare := l.table(t, cold)
	cold.temper(t, beta)
	policy := l.table(t, cold)

	// Half of the moves begin at one tree, with two ways to take it apart, and the others anywhere. Of these, some only
	// go back.
	balanced := slices.IndexFunc(l.Objects, func(s int) bool { return l.forest[s][0].shape() == "((0 1) (2 3))" })
	from, back, rise := make([]int, rows), make([]int32, rows), make([]bool, rows)
	for i := range from {
		from[i], back[i], rise[i] = balanced, int32(1+i%3), true
		if i >= rows/2 {
			from[i], rise[i] = i%len(l.Objects), i%5 > 0
		}
	}
	out := r.finish(t, 3, call[RolloutTensors](t, r, func(in movable[*Node, Forest]) Rollout {
		start := r.Embed(r.scope(), in.From, in.Words)
		return r.Rollout(start, rng.In(in.Key), in.Back, in.Rise, tempered(beta)(in.Key.Graph()))
	}, movable[*tensors.Tensor, ForestTensors]{
		rng.Key(seed, "move"), r.words, tensors.FromValue(back), tensors.FromValue(rise), l.objects(from),
	}))
	counts := map[int32]map[string]int{1: {}, 2: {}, 3: {}}
	for i, o := range l.taken(out, from) {
		if i < rows/2 {
			counts[back[i]][o.String()]++
		}
		if len(o.undone) != int(back[i]) || (len(o.made) > 0) != rise[i] {
			t.Fatalf("row %d, %d steps back, rises %v: %v", i, back[i], rise[i], o)
		}
		l.checkOutcome(t, fmt.Sprintf("row %d, %d steps back", i, back[i]), o, policy)
		if t.Failed() {
			t.FailNow()
		}
	}
	for back, counts := range counts {
		expect := func(p gfn.Table) map[string]float64 {
			want := map[string]float64{}
			for _, o := range l.outcomes(p, l.Objects[balanced], int(back)) {
				want[o.String()] = math.Exp(o.b1 + o.f2)
			}
			return want
		}
		if p := chiSquare(counts, expect(policy)); p < alpha {
			t.Errorf("%d steps back: what moves do has a p-value of %g", back, p)
		}
		if p := chiSquare(counts, expect(bare)); back == 3 && p > alpha {
			t.Errorf("tempered moves were not told from others, p-value %g", p)
		}
	}
}

// objects are the states of given objects.
func (l *listing) objects(which []int) ForestTensors {
	var out []*tensors.Tensor
	for _, all := range l.ObjectStates() {
		values := tensors.MustCopyFlatData[int32](all)
		width := len(values) / len(l.Objects)
		var flat []int32
		for _, k := range which {
			flat = append(flat, values[k*width:][:width]...)
		}
		dims := slices.Clone(all.Shape().Dimensions)
		dims[0] = len(which)
		out = append(out, tensors.FromFlatDataAndDimensions(flat, dims...))
	}
	return fromState(out)
}

// taken reads what walks from given objects did, with the probabilities that they report.
func (l *listing) taken(walk WalkTensors, from []int) (out []outcome) {
	gaps := len(l.words) - 1
	ints, floats := tensors.MustCopyFlatData[int32], tensors.MustCopyFlatData[float64]
	undone, made, label := ints(walk.Undone), ints(walk.Made), ints(walk.Forest.Label)
	b1, f1 := floats(walk.UndoneBack), floats(walk.UndoneForward)
	f2, b2 := floats(walk.MadeForward), floats(walk.MadeBack)
	ends := readForests(walk.Forest)
	for row, start := range from {
		was := map[int]int{}
		visit(l.forest[l.Objects[start]], func(v, _ *tree) { was[v.gap] = v.label })
		sorted := func(when []int32, label func(gap int) int) []closing {
			var steps []closing
			for at := range int32(gaps) {
				if gap := slices.Index(when[row*gaps:][:gaps], at); gap >= 0 {
					steps = append(steps, closing{gap, label(gap)})
				}
			}
			return steps
		}
		out = append(out, outcome{
			undone: sorted(undone, func(g int) int { return was[g] }),
			made:   sorted(made, func(g int) int { return int(label[row*gaps+g]) - 1 }),
			to:     l.index[key(ends[row], gaps+1)],
			b1:     b1[row], f1: f1[row], f2: f2[row], b2: b2[row],
		})
	}
	return out
}

// checkOutcome finds a move among forests, and adds up what a table says of its steps.
func (l *listing) checkOutcome(t *testing.T, what string, o outcome, p gfn.Table) {
	t.Helper()
	labels := l.Env.(Env).Labels
	follow := func(at int, steps []closing) (to int, forward, back float64) {
		for _, s := range steps {
			e, ok := l.edge[[2]int{at, s.gap*labels + s.label}]
			if !ok {
				t.Fatalf("%s: %v has a step that is not one", what, o)
			}
			forward, back, at = forward+p.LogPF[e], back+p.LogPB[e], l.Edges[e].To
		}
		return at, forward, back
	}
	again := slices.Clone(o.undone)
	slices.Reverse(again)
	// What both trees share is what was made and not undone, bottom-up in any order.
	shared := map[int]int{}
	visit(l.forest[o.to], func(v, _ *tree) { shared[v.gap] = v.label })
	for _, s := range o.made {
		delete(shared, s.gap)
	}
	middle := bareWords(len(l.words))
	for len(shared) > 0 {
		before := len(shared)
		visit(l.forest[o.to], func(v, _ *tree) {
			ready := func(c *tree) bool { _, open := shared[c.gap]; return c.left == nil || !open }
			if _, due := shared[v.gap]; due && ready(v.left) && ready(v.right) {
				middle = after(middle, closing{v.gap, v.label})
				delete(shared, v.gap)
			}
		})
		if len(shared) == before {
			t.Fatalf("%s: %v", what, o)
		}
	}
	at := l.index[key(middle, len(l.words))]
	_, f1, b1 := follow(at, again)
	to, f2, b2 := follow(at, o.made)
	if to != o.to {
		t.Fatalf("%s: %v does not lead where the walk is", what, o)
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{{"b1", o.b1, b1}, {"f1", o.f1, f1}, {"f2", o.f2, f2}, {"b2", o.b2, b2}} {
		checkNumber(t, what+": "+c.name, c.got, c.want, 1e-10)
	}
}
