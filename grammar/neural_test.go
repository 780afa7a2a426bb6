package grammar

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/nn"
)

func neuralTables(t testing.TB, store *model.Store, m Neural) (root, rules, emit []float64) {
	t.Helper()
	type graphAlone struct{ *Graph }
	out, err := program.Once[struct{}, LogProbTensors](newBackend(), store, "tables", func(in graphAlone) LogProbs {
		return m.LogProbs(store.Scope("/theta"), in.Graph)
	}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return floats(out.Root), floats(out.Rules), floats(out.Emit)
}

// variable reads a variable of the model.
func variable(t testing.TB, store *model.Store, path string) []float64 {
	t.Helper()
	v := store.GetVariable(path)
	if v == nil {
		t.Fatalf("no variable %s", path)
	}
	return tensors.MustCopyFlatData[float64](v.MustValue())
}

// Sizes at the paper's setting: what is used, without the rows that nothing can use.
func TestParameters(t *testing.T) {
	cfg, ncfg := Paper(CFG, 9672, 2), Paper(NCFG, 9672, 2)
	const symbols, blocks = 90 * 256, 526_336
	want := symbols + blocks + (9670+29)*257 + 89*89*257
	if got := cfg.Parameters(); got != want {
		t.Errorf("CFG has %d parameters, want %d", got, want)
	}
	if got := ncfg.Parameters(); got != want+7680 {
		t.Errorf("NCFG has %d parameters, want %d", got, want+7680)
	}
	for _, m := range []Neural{
		{CFG, 3, 2, 8, 5, 2, dtypes.Float64, 0, Published}, {NCFG, 3, 2, 8, 5, 0, dtypes.Float64, 1, ""},
		{CFG, 3, 2, 8, 5, 2, dtypes.Float64, 0, Xavier}, {NCFG, 3, 2, 8, 5, 0, dtypes.Float64, 1, Xavier}, Paper(CFG, 100, 2),
	} {
		store := nn.NewStore(1)
		neuralTables(t, store, m)
		size := 0
		for v := range store.IterVariables() {
			size += v.Shape().Size()
		}
		if size != m.Parameters() {
			t.Errorf("%+v: variables have %d values, Parameters says %d", m, size, m.Parameters())
		}
	}
}

// slow is the model in loops, from the variables of a store.
type slow struct {
	Neural
	t     testing.TB
	store *model.Store
}

func (s slow) param(path string) []float64 { return variable(s.t, s.store, "/theta/"+path) }

func (s slow) features(name string, e []float64) []float64 {
	d := s.Width
	layer := func(path string, x []float64) []float64 {
		w, b := s.param(path+"/weights"), s.param(path+"/bias")
		y := make([]float64, d)
		for j := range y {
			y[j] = b[j]
			for i := range x {
				y[j] += x[i] * w[i*d+j]
			}
			y[j] = max(y[j], 0)
		}
		return y
	}
	block := func(path string, x []float64) []float64 { return layer(path+"/1", layer(path+"/0", x)) }
	return add(e, block(name+"/1", add(e, block(name+"/0", e))))
}

func add(x, y []float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] + y[i]
	}
	return out
}

// logits are rows [from,to) of a readout.
func (s slow) logits(name string, h []float64, from, to int) []float64 {
	w, b := s.param(name+"/weights"), s.param(name+"/bias")
	out := make([]float64, to-from)
	for r := range out {
		for i := range h {
			out[r] += w[(from+r)*s.Width+i] * h[i] / (float64(s.Width) / 128)
		}
		out[r] += b[from+r]
	}
	total := logSumExp(out)
	for r := range out {
		out[r] -= total
	}
	return out
}

func TestNeuralAgainstLoops(t *testing.T) {
	for _, kind := range []Kind{CFG, NCFG} {
		m := Neural{Kind: kind, Nonterminals: 3, Preterminals: 2, Width: 6, Words: 7, Specials: 2, DType: dtypes.Float64, ParentScale: 1}
		store := nn.NewStore(testkit.Seed(t))
		root, rules, emit := neuralTables(t, store, m)
		s := slow{m, t, store}
		d, n, pt := m.Width, 3, 2
		symbols := s.param("symbols")
		parents := make([]float64, (n+1)*d)
		hosts, above := 1, 1
		if kind == NCFG {
			parents, hosts, above = s.param("parents"), n, n+1
		}
		row := func(table []float64, i int) []float64 { return table[i*d:][:d] }
		same(t, "root", root, s.logits("unary", s.features("root", add(row(symbols, 0), row(parents, 0))), 0, n))
		var wantRules []float64
		for x := range n {
			for p := range above {
				wantRules = append(wantRules, s.logits("binary", add(row(symbols, 1+x), row(parents, p)), 0, 25)...)
			}
		}
		same(t, "rules", rules, wantRules)
		for tag := range pt {
			for x := range hosts {
				host := x + 1
				if kind == CFG {
					host = 0
				}
				want := s.logits("unary", s.features("tags", add(row(symbols, 1+n+tag), row(parents, host))), n, n+5)
				for w := range 7 {
					got := emit[(w*pt+tag)*hosts+x]
					if w < 2 {
						if !math.IsInf(got, -1) {
							t.Errorf("special word %d has log-probability %v", w, got)
						}
					} else if !near(got, want[w-2]) {
						t.Errorf("%s: log p(%d|%d,%d) = %v, want %v", kind, w, tag, x, got, want[w-2])
					}
				}
			}
		}
	}
}

// With parents' embeddings of zero, as they can be at the start, the non-context-free model is the context-free one.
func TestNoParents(t *testing.T) {
	for _, init := range []string{Published, Xavier} {
		t.Run(init, func(t *testing.T) { checkNoParents(t, init) })
	}
}

func checkNoParents(t *testing.T, init string) {
	m := Neural{Kind: NCFG, Nonterminals: 3, Preterminals: 2, Width: 6, Words: 4, DType: dtypes.Float64, Init: init}
	store := nn.NewStore(testkit.Seed(t))
	root, rules, emit := neuralTables(t, store, m)
	m.Kind = CFG
	root0, rules0, emit0 := neuralTables(t, store, m)
	same(t, "root", root, root0)
	for x := range 3 {
		for p := range 4 {
			same(t, "rules", rules[(x*4+p)*25:][:25], rules0[x*25:][:25])
		}
	}
	for i, v := range emit {
		if !near(v, emit0[i/3]) {
			t.Errorf("emission %d is %v, want %v", i, v, emit0[i/3])
		}
	}
}

// At the paper's size, logits of rules deviate by 0.41 at the start. With 230,000 of them the estimate
// is good to 0.005 or so; embeddings vary it by another 0.004.
func TestInitialScale(t *testing.T) {
	store := nn.NewStore(testkit.Seed(t))
	_, rules, _ := neuralTables(t, store, Paper(CFG, 10, 0))
	const row = 89 * 89
	sum := 0.0
	for x := range 29 {
		mean, square := 0.0, 0.0
		for _, v := range rules[x*row:][:row] {
			mean, square = mean+v/row, square+v*v/row
		}
		sum += (square - mean*mean) / 29
	}
	if d := math.Sqrt(sum); !(math.Abs(d-0.411) <= 0.02) {
		t.Errorf("deviation of rule logits is %v, want 0.411", d)
	}
}

// The gradient of the likelihood to the variables is the slope along a random direction.
func TestNeuralGradient(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, c := range []struct {
		kind Kind
		init string
	}{{CFG, Published}, {NCFG, Published}, {CFG, Xavier}, {NCFG, Xavier}} {
		m := Neural{Kind: c.kind, Nonterminals: 2, Preterminals: 3, Width: 4, Words: 5, Specials: 1, DType: dtypes.Float64, ParentScale: 1, Init: c.init}
		store := nn.NewStore(1)
		words := tensors.FromValue([][]int32{{1, 2, 3, 4}, {4, 4, 0, 0}, {2, 1, 3, 0}})
		lengths := tensors.FromValue([]int32{4, 2, 3})
		var vars []*model.Variable
		exec := model.MustNewExec(newBackend(), store, func(scope *model.Scope, w, l *Node) []*Node {
			loss := ReduceAllSum(LogLikelihood(m.LogProbs(scope.At("theta"), w.Graph()).For(w, l)))
			out := []*Node{loss}
			vars = nil
			var values []*Node
			for v := range scope.IterVariables() {
				vars, values = append(vars, v), append(values, v.NodeValue(w.Graph()))
			}
			return append(out, Gradient(loss, values...)...)
		})
		out := exec.MustCall(words, lengths)
		slope := 0.0
		start, along := make([][]float64, len(vars)), make([][]float64, len(vars))
		for i, v := range vars {
			start[i] = tensors.MustCopyFlatData[float64](v.MustValue())
			for _, g := range tensors.MustCopyFlatData[float64](out[1+i]) {
				d := r.NormFloat64()
				along[i] = append(along[i], d)
				slope += g * d
			}
		}
		const eps = 1e-6
		at := func(h float64) float64 {
			for i, v := range vars {
				moved := make([]float64, len(start[i]))
				for j := range moved {
					moved[j] = start[i][j] + h*along[i][j]
				}
				if err := v.SetValue(tensors.FromFlatDataAndDimensions(moved, v.Shape().Dimensions...)); err != nil {
					t.Fatal(err)
				}
			}
			return tensors.MustCopyFlatData[float64](exec.MustCall(words, lengths)[0])[0]
		}
		// The error of central differences is eps² of the third derivative, which is large for so narrow a network (m =
		// 1/32), and 1e-15/eps of rounding.
		if got := (at(eps) - at(-eps)) / (2 * eps); !(math.Abs(got-slope) <= 1e-6*math.Abs(slope)) || slope == 0 {
			t.Errorf("%s %s: slope %v, gradient says %v", c.kind, c.init, got, slope)
		}
	}
}
