package em

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// Where an object has one path, log q(z|x) is exact, and what brute force says.
func TestLogProbExact(t *testing.T) {
	seed := testkit.Seed(t)
	m := newToy(seed, dtypes.Float64)
	p, l := newPosterior(t, m, 20)
	q := tablePolicy{m}.posterior(t, l.Store())
	var tokens []int32
	for range q {
		for z := range int32(6) {
			tokens = append(tokens, z%2, z/2)
		}
	}
	z := []*tensors.Tensor{tensors.FromFlatDataAndDimensions(tokens, len(q)*6, 2)}
	all, err := p.LogProbs(z, m.all())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := p.LogProb(z, m.all())
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range all {
		if want := math.Log(q[i/6][i%6]); !got.Exact || got.StdErr != 0 || got.Paths != 1 || !(math.Abs(got.LogQ-want) < 1e-12) {
			t.Errorf("latent %d: %+v, want %g", i, got, want)
		}
		if plain[i] != got.LogQ {
			t.Errorf("latent %d: LogProb %g, LogProbs %g", i, plain[i], got.LogQ)
		}
	}
}

// additive has log p(x,z) = sum_i (i/4 + 1/2) z_i, of states of one tensor, whatever x is. It cannot be sampled.
type additive struct{}

func (additive) LogJoint(_ *model.Scope, _ gfn.Batch, z gfn.State) *Node {
	v := ConvertDType(z[0], dtypes.Float64)
	return ReduceSum(Mul(v, AddScalar(MulScalar(Iota(v.Graph(), v.Shape(), 1), 0.25), 0.5)), 1)
}

func (additive) Sample(*model.Scope, *rng.Stream, int) (gfn.Batch, gfn.State) { panic("not sampled") }

// manyPaths returns the posterior of a policy with a free table, and all states.
func manyPaths(t *testing.T, env gfn.Env, set func(d *gfn.DAG, logits [][]float64, edge func(i int) *float64)) (*Posterior, *gfn.DAG, []*tensors.Tensor) {
	t.Helper()
	b, x := newBackend(t), []*tensors.Tensor{tensors.FromValue([]float64{0})}
	d, err := gfn.Enumerate(b, env, x, 1000)
	if err != nil {
		t.Fatal(err)
	}
	logits := make([][]float64, d.Len())
	for i := range logits {
		logits[i] = make([]float64, env.Actions())
	}
	set(d, logits, func(i int) *float64 { return &logits[d.Edges[i].From][d.Edges[i].Action] })
	store := nn.NewStore(1)
	if _, err := store.CreateVariable(Phi+"/forward", tensors.FromValue(logits)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateVariable(Phi+"/flow", tensors.FromValue(make([]float64, d.Len()))); err != nil {
		t.Fatal(err)
	}
	p, err := NewPosterior(b, store, Spec{Model: additive{}, Env: env, Policy: gfn.Tabular{DAG: d, DType: dtypes.Float64}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, d, x
}

// Where objects have several paths, of one length or of many, log q(z|x) is estimated: within 5 standard errors, which one
// of 19 objects leaves once in 90,000 times. P_F of a path alone would be far off.
func TestLogProbEstimated(t *testing.T) {
	seed := testkit.Seed(t)
	for name, env := range map[string]gfn.Env{"subset": envs.Subset{Items: 5, Size: 3}, "grid": envs.Hypergrid{Side: 3, Dims: 2}} {
		t.Run(name, func(t *testing.T) {
			r := rng.New(seed, "logits")
			p, d, x := manyPaths(t, env, func(_ *gfn.DAG, logits [][]float64, _ func(int) *float64) {
				for _, row := range logits {
					for a := range row {
						row[a] = r.NormFloat64()
					}
				}
			})
			tables, err := d.Tabulate(p.programs.Backend, p.g.store, Phi, p.g.Policy, x)
			if err != nil {
				t.Fatal(err)
			}
			p.Paths, p.Rows = 3000, 1100
			got, err := p.LogProbs(d.ObjectStates(), x...)
			if err != nil {
				t.Fatal(err)
			}
			single, exact := 0, d.Terminating(tables[0])
			for i, q := range exact {
				g := got[i]
				if g.Exact {
					single++
				} else if g.Paths != 3000 || g.StdErr == 0 {
					t.Errorf("object %d: %+v", i, g)
				}
				if off := math.Abs(g.LogQ - math.Log(q)); !(off <= 5*g.StdErr+1e-12) {
					t.Errorf("object %d: %+v, want %g", i, g, math.Log(q))
				}
			}
			if want := map[string]int{"subset": 0, "grid": 5}[name]; single != want { // the cells of two sides have one path
				t.Errorf("%d objects have a single path, not %d", single, want)
			}
			p.Paths = 1
			alone, err := p.LogProb(d.ObjectStates(), x...)
			if err != nil {
				t.Fatal(err)
			}
			far := 0
			for i, q := range exact {
				if math.Abs(alone[i]-math.Log(q)) > 5*got[i].StdErr+1e-12 {
					far++
				}
			}
			if far == 0 {
				t.Error("a single path would do")
			}
		})
	}
}

// A policy that solves for the reward and the uniform backward policy gives all latents the same weight, by whatever path.
func TestPosteriorSolved(t *testing.T) {
	for name, env := range map[string]gfn.Env{"subset": envs.Subset{Items: 5, Size: 3}, "grid": envs.Hypergrid{Side: 3, Dims: 2}} {
		t.Run(name, func(t *testing.T) {
			var logR []float64
			p, d, x := manyPaths(t, env, func(d *gfn.DAG, _ [][]float64, edge func(int) *float64) {
				flat := tensors.MustCopyFlatData[int32](d.ObjectStates()[0])
				width := len(flat) / len(d.Objects)
				for i := range d.Objects {
					sum := 0.0
					for k, v := range flat[i*width : (i+1)*width] {
						sum += float64(v) * (0.25*float64(k) + 0.5)
					}
					logR = append(logR, sum)
				}
				_, logPF := d.Solve(logR, d.UniformBack())
				for i, v := range logPF {
					*edge(i) = v
				}
			})
			s, err := p.Sample(200, x...)
			if err != nil {
				t.Fatal(err)
			}
			logX := gfn.LogSumExp(logR)
			for _, w := range s.LogWeights[0] {
				if !(math.Abs(w-logX) < 1e-9) {
					t.Fatalf("a log-weight of %g, log p(x) is %g", w, logX)
				}
			}
			got, err := p.LogProb(d.ObjectStates(), x...)
			if err != nil {
				t.Fatal(err)
			}
			for i, l := range got {
				if want := logR[i] - logX; !(math.Abs(l-want) < 1e-9) {
					t.Errorf("object %d: log q is %g, want %g", i, l, want)
				}
			}
		})
	}
}
