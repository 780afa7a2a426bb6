package em

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/nn"
)

// everything calls all that a posterior can do, and prints it.
func everything(t *testing.T, p *Posterior, x ...*tensors.Tensor) string {
	t.Helper()
	s, err := p.Sample(7, x...)
	if err != nil {
		t.Fatal(err)
	}
	z, err := p.Greedy(x...)
	if err != nil {
		t.Fatal(err)
	}
	logQ, err := p.LogProb(z, x...)
	if err != nil {
		t.Fatal(err)
	}
	logP, err := p.LogLikelihood(9, x...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Calibrate(Calibrate{Pairs: 20})
	if err != nil {
		t.Fatal(err)
	}
	tokens := tensors.MustCopyFlatData[int32]
	return fmt.Sprint(tokens(s.Z[0]), s.LogWeights, s.LogJoint, tokens(z[0]), logQ, logP, c.Ranks)
}

// Equal calls give equal results and other seeds others; nothing in the store changes, nor does the training that goes on.
func TestPosteriorChangesNothing(t *testing.T) {
	b, m := newBackend(t), newToy(3, dtypes.Float32)
	spec := toySpec(m)
	spec.Sleep = Sleep{Weight: 1, Batch: 8}
	used, unused := newLearner(t, b, spec), newLearner(t, b, spec)
	steps(t, used, 5)
	steps(t, unused, 5)
	p, err := used.Posterior()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Seed != spec.Seed {
		t.Errorf("seed %d, not that of the spec", p.Seed)
	}
	first := everything(t, p, m.all())
	if everything(t, p, m.all()) != first {
		t.Error("equal calls differ")
	}
	p.Seed++
	if everything(t, p, m.all()) == first {
		t.Error("another seed gives the same")
	}
	p.Seed--
	if moved := changed(snapshot(t, unused.Store()), snapshot(t, used.Store())); moved != nil {
		t.Errorf("the posterior moved %v", moved)
	}
	steps(t, used, 5)
	steps(t, unused, 5)
	if moved := changed(snapshot(t, unused.Store()), snapshot(t, used.Store())); moved != nil {
		t.Errorf("training with a posterior ends elsewhere: %v", moved)
	}
	if everything(t, p, m.all()) == first {
		t.Error("the posterior does not follow the learner")
	}
	again, err := NewPosterior(b, unused.Store(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if everything(t, again, m.all()) != everything(t, p, m.all()) {
		t.Error("two posteriors of the same variables differ")
	}
}

// The most probable actions are those of the tables.
func TestPosteriorGreedy(t *testing.T) {
	m := newToy(testkit.Seed(t), dtypes.Float64)
	p, l := newPosterior(t, m, 20)
	p.Rows = 3 // batches of 2
	z, err := p.Greedy(m.all())
	if err != nil {
		t.Fatal(err)
	}
	q := tablePolicy{m}.posterior(t, l.Store())
	got := tensors.MustCopyFlatData[int32](z[0])
	for x := range q {
		first := [2]float64{q[x][0] + q[x][2] + q[x][4], q[x][1] + q[x][3] + q[x][5]}
		a := 0
		if first[1] > first[0] {
			a = 1
		}
		second := []float64{q[x][a], q[x][a+2], q[x][a+4]}
		if best := slices.Index(second, slices.Max(second)); int(got[2*x]) != a || int(got[2*x+1]) != best {
			t.Errorf("observation %d: %v, want [%d %d]", x, got[2*x:2*x+2], a, best)
		}
	}
}

// tallied is a toy that sees of x, [B,L], only how many entries are 1; -1 is padding, of any length.
type tallied struct {
	toy
	widths map[int]bool // of the observations that a program has seen
}

func (m tallied) count(x gfn.Batch) gfn.Batch {
	m.widths[x[0].Shape().Dim(1)] = true
	ones := ReduceSum(ConvertDType(Equal(x[0], OnesLike(x[0])), dtypes.Float32), 1) // [B]
	at := func(n float64) *Node { return GreaterOrEqual(ones, MulScalar(OnesLike(ones), n)) }
	return gfn.Batch{ConvertDType(Stack([]*Node{at(1), at(2), at(3)}, 1), dtypes.Float32)}
}

func (m tallied) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	return m.toy.LogJoint(theta, m.count(x), z)
}

func (m tallied) Encode(_ *model.Scope, x gfn.Batch) gfn.Batch { return m.count(x) }

func (m tallied) Heads(phi *model.Scope, u gfn.Batch, s gfn.State, k int) gfn.Heads {
	return tablePolicy{m.toy}.Heads(phi, u, s, k)
}

func cut(x []*tensors.Tensor, size int) []*tensors.Tensor {
	rows := tensors.MustCopyFlatData[float32](x[0])
	width := x[0].Shape().Dim(1)
	var out []float32
	for row := range slices.Chunk(rows, width) {
		out = append(out, row[:size]...)
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(out, len(rows)/width, size)}
}

func lengths(x []*tensors.Tensor) (out []int) {
	for row := range slices.Chunk(tensors.MustCopyFlatData[float32](x[0]), x[0].Shape().Dim(1)) {
		n := 0
		for n < len(row) && row[n] != -1 {
			n++
		}
		out = append(out, n)
	}
	return out
}

// In buckets, probabilities of latents and of observations are what they are without, and programs see short observations.
func TestPosteriorBuckets(t *testing.T) {
	seed := testkit.Seed(t)
	m := tallied{newToy(seed, dtypes.Float64), map[int]bool{}}
	_, l := newPosterior(t, m.toy, 20)
	p, err := NewPosterior(l.programs.Backend, l.Store(), Spec{Model: m, Env: m.env(), Policy: m})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var flat []float32
	words := []string{"1", "", "01101", "0", "11", "1010101010", "10", "0110", "111111111", "100"}
	for _, w := range words {
		for i := range 10 {
			if i < len(w) {
				flat = append(flat, float32(w[i]-'0'))
			} else {
				flat = append(flat, -1)
			}
		}
	}
	x := tensors.FromFlatDataAndDimensions(flat, len(words), 10)
	logQ := tablePolicy{m.toy}.posterior(t, l.Store())
	logP := m.learned(t, l.Store())
	for _, buckets := range []*Buckets{nil, {Sizes: []int{2, 4, 10}, Length: lengths, Cut: cut}} {
		clear(m.widths)
		p.Close() // so that programs are built again
		p.Buckets = buckets
		s, err := p.Sample(30, x)
		if err != nil {
			t.Fatal(err)
		}
		z, err := p.LogProb(s.Z, x)
		if err != nil {
			t.Fatal(err)
		}
		tokens := tensors.MustCopyFlatData[int32](s.Z[0])
		for i, w := range words {
			number := 1<<min(strings.Count(w, "1"), 3) - 1
			for k := range 30 {
				row := i*30 + k
				latent := tokens[2*row] + 2*tokens[2*row+1]
				want := math.Log(logQ[number][latent])
				if !(math.Abs(z[row]-want) < 1e-12) || !(math.Abs(s.LogWeights[i][k]-logP[number][latent]+want) < 1e-12) {
					t.Fatalf("%q, sample %d: log q %g, want %g; log-weight %g", w, k, z[row], want, s.LogWeights[i][k])
				}
			}
		}
		want := map[int]bool{10: true}
		if buckets != nil {
			want = map[int]bool{2: true, 4: true, 10: true}
		}
		if !maps.Equal(m.widths, want) {
			t.Errorf("programs saw observations of widths %v, want %v", m.widths, want)
		}
	}
}

// Data that is to be prepared is, before it is taken apart.
func TestPosteriorPrepare(t *testing.T) {
	m := newToy(testkit.Seed(t), dtypes.Float64)
	_, l := newPosterior(t, m, 20)
	spec := toySpec(m)
	spec.Prepare = func(data []*Node) gfn.Batch { return gfn.Batch{Gather(data[0], InsertAxes(data[1], 1))} } // a table, and rows of it
	p, err := NewPosterior(l.programs.Backend, l.Store(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := p.Sample(5, m.all(), tensors.FromValue([]int32{6, 1, 1}))
	if err != nil {
		t.Fatal(err)
	}
	logP, tokens := m.learned(t, l.Store()), tensors.MustCopyFlatData[int32](s.Z[0])
	for i, x := range []int{6, 1, 1} {
		for k, got := range s.LogJoint[i] {
			if at := 2 * (5*i + k); !(math.Abs(got-logP[x][tokens[at]+2*tokens[at+1]]) < 1e-12) {
				t.Errorf("observation %d, sample %d: log p(x,z) is %g", i, k, got)
			}
		}
	}
}

// spoilt is a toy policy whose logits are not finite.
type spoilt struct{ tablePolicy }

func (p spoilt) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	h := p.tablePolicy.Heads(phi, x, s, k)
	h.Forward = MulScalar(h.Forward, math.NaN())
	return h
}

// hasty ends before its sequences do.
type hasty struct{ envs.Sequence }

func (hasty) Steps() int { return 1 }

// What is wrong is said in one line that names it.
func TestPosteriorErrors(t *testing.T) {
	m := newToy(3, dtypes.Float64)
	l := newLearner(t, newBackend(t), toySpec(m))
	steps(t, l, 1)
	sample := func(n int, x ...*tensors.Tensor) func(*Posterior) error {
		return func(p *Posterior) error { _, err := p.Sample(n, x...); return err }
	}
	logProb := func(z []*tensors.Tensor, x ...*tensors.Tensor) func(*Posterior) error {
		return func(p *Posterior) error { _, err := p.LogProb(z, x...); return err }
	}
	spoil := tensors.FromValue([]float64{0, 0, math.NaN()})
	some := m.rows(1, 2, 3)
	none := func(*Spec) {}
	buckets := func(b Buckets) func(*Posterior) error {
		return func(p *Posterior) error {
			p.Buckets = &b
			_, err := p.LogLikelihood(2, some)
			return err
		}
	}
	of := func(n ...int) func([]*tensors.Tensor) []int { return func([]*tensors.Tensor) []int { return n } }
	cutTo := func(x ...*tensors.Tensor) Buckets {
		return Buckets{[]int{2, 3}, of(1, 1, 1), func([]*tensors.Tensor, int) []*tensors.Tensor { return x }}
	}
	for _, c := range []struct {
		set  func(*Spec)
		call func(*Posterior) error
		want string
	}{
		{none, sample(0, some), "0 draws of an observation"},
		{none, sample(2), "x has no tensor"},
		{none, sample(2, some, tensors.FromValue([]float64{1})), "tensor 1 of x has 1 rows, tensor 0 has 3"},
		{none, sample(2, tensors.FromValue(float32(1))), "tensor 0 of x has no rows"},
		{none, sample(1<<44, some), "of memory"},
		{none, sample(2, some, spoil), "LogJoint is NaN for a latent of observation 2"},
		{func(s *Spec) { s.Policy = spoilt{tablePolicy{m}} }, sample(2, some), "Heads gives a trajectory of observation 0 the log-probability NaN"},
		{func(s *Spec) { s.Env = hasty{m.env()} }, sample(2, some), "Steps is 1, and 8 drawn latents are not terminal"},
		{none, logProb([]*tensors.Tensor{tensors.FromValue([][]int32{{1, 2}, {0, -1}, {0, 0}})}, some), "latent 1 is no terminal state of envs.Sequence"},
		{none, logProb([]*tensors.Tensor{tensors.FromValue([][]int32{{1, 2}, {0, 0}, {0, 3}})}, some), "latent 2 cannot be built from the initial state that envs.Sequence has"},
		{none, logProb([]*tensors.Tensor{tensors.FromValue([][]int32{{1, 2}, {0, 1}})}, some), "2 latents do not belong to 3 observations"},
		{none, logProb([]*tensors.Tensor{tensors.FromValue([][]int32{{1}, {0}, {0}})}, some), "the list of latents has (Int32)[4, 1] as tensor 0, not (Int32)[4, 2]"},
		{none, logProb(nil, some), "z has no tensor"},
		{none, buckets(Buckets{}), "Buckets needs Sizes"},
		{none, buckets(Buckets{Sizes: []int{0, 2}}), "Buckets.Sizes are [0 2]"},
		{none, buckets(Buckets{Sizes: []int{2, 2}}), "Buckets.Sizes are [2 2]"},
		{none, buckets(Buckets{Sizes: []int{3, 2}}), "Buckets.Sizes are [3 2]"},
		{none, buckets(Buckets{Sizes: []int{2}}), "Buckets needs Length"},
		{none, buckets(Buckets{Sizes: []int{2, 3}, Length: of()}), "Buckets needs Cut"},
		{none, buckets(Buckets{Sizes: []int{2}, Length: of(1, 1)}), "Buckets.Length returns 2 lengths of 3 observations"},
		{none, buckets(Buckets{Sizes: []int{2}, Length: of(1, 1, -4)}), "Buckets.Length is -4 for observation 2"},
		{none, buckets(cutTo()), "Buckets.Cut returns 0 tensors of 1"},
		{none, buckets(cutTo(nil)), "Buckets.Cut makes nil of tensor 0, which is (Float32)[1, 3]"},
		{none, buckets(cutTo(some)), "Buckets.Cut makes (Float32)[3, 3] of tensor 0, which is (Float32)[1, 3]"},
		{none, buckets(cutTo(tensors.FromValue([][]int32{{1, 2}}))), "Buckets.Cut makes (Int32)[1, 2] of tensor 0"},
	} {
		spec := toySpec(m)
		c.set(&spec)
		p, err := NewPosterior(l.programs.Backend, l.Store(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.call(p); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got  %v\nwant %s", err, c.want)
		} else if !strings.Contains(err.Error(), "_test.go:") && c.want != "of memory" {
			t.Errorf("no place in %v", err)
		}
		p.Close()
	}
	if _, err := NewPosterior(l.programs.Backend, l.Store(), Spec{}); err == nil || !strings.Contains(err.Error(), "needs a Model") {
		t.Errorf("a posterior of nothing: %v", err)
	}
	store := nn.NewStore(1)
	p, err := NewPosterior(l.programs.Backend, store, toySpec(m))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := sample(2, some)(p); err == nil || !strings.Contains(err.Error(), "the store has no variable /") || store.NumVariables() != 0 {
		t.Errorf("a store without variables: %v, and then %d variables", err, store.NumVariables())
	}
}
