package grammar

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/nn"
)

// slowXavier is the model in loops, from the variables of a store.
type slowXavier struct{ slow }

// linear is x W + b, or without b.
func (s slowXavier) linear(path string, x []float64, bias bool) []float64 {
	w := s.param(path + "/weights")
	to := len(w) / len(x)
	y := make([]float64, to)
	for j := range y {
		for i := range x {
			y[j] += x[i] * w[i*to+j]
		}
	}
	if bias {
		y = add(y, s.param(path+"/bias"))
	}
	return y
}

func (s slowXavier) residual(path string, e []float64) []float64 {
	x := s.linear(path+"/in", e, true)
	for _, block := range []string{"/0", "/1"} {
		y := x
		for _, layer := range []string{"/0", "/1"} {
			y = s.linear(path+block+layer, y, true)
			for i := range y {
				y[i] = max(y[i], 0)
			}
		}
		x = add(x, y)
	}
	return x
}

func logSoftmax(x []float64) []float64 {
	total := logSumExp(x)
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] - total
	}
	return out
}

func TestXavierAgainstLoops(t *testing.T) {
	for _, kind := range []Kind{CFG, NCFG} {
		m := Neural{Kind: kind, Nonterminals: 3, Preterminals: 2, Width: 6, Words: 7, Specials: 2, DType: dtypes.Float64,
			ParentScale: 1, Init: Xavier}
		store := nn.NewStore(testkit.Seed(t))
		root, rules, emit := neuralTables(t, store, m)
		s := slowXavier{slow{m, t, store}}
		d, n, pt := m.Width, 3, 2
		parents, hosts, above := make([]float64, (n+1)*d), 1, 1
		if kind == NCFG {
			parents, hosts, above = s.param("parents"), n, n+1
		}
		row := func(table []float64, i int) []float64 { return table[i*d:][:d] }
		same(t, "root", root, logSoftmax(s.linear("root/out", s.residual("root", add(s.param("root/symbol"), row(parents, 0))), true)))
		var want []float64
		for x := range n {
			for p := range above {
				logits := s.linear("binary/out", row(s.param("binary/symbols"), x), true)
				want = append(want, logSoftmax(add(logits, s.linear("binary/out", row(parents, p), false)))...)
			}
		}
		same(t, "rules", rules, want)
		for tag := range pt {
			for x := range hosts {
				host := x + 1
				if kind == CFG {
					host = 0
				}
				e := add(row(s.param("words/symbols"), tag), row(parents, host))
				want := logSoftmax(s.linear("words/out", s.residual("words", e), true))
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

// uniformity says what is wrong with values that are to be uniform within a bound; "" if nothing is. The mean of n of
// them deviates by bound/sqrt(3n), and the mean of their squares, bound²/3, by bound² sqrt(4/45n). Sums of uniform
// values, and of their squares, have lighter tails than normal ones, of which one in 1.7 million is 5 deviations off: a
// test of 30 variables fails by chance once in 25,000 times at most.
func uniformity(values []float64, bound float64) string {
	n, mean, square := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		if !(math.Abs(v) <= bound) {
			return "out of bounds"
		}
		mean, square = mean+v/n, square+v*v/n
	}
	switch {
	case !(math.Abs(mean) <= 5*bound/math.Sqrt(3*n)):
		return "the mean is off"
	case !(math.Abs(square-bound*bound/3) <= 5*bound*bound*math.Sqrt(4/(45*n))):
		return "the variance is off"
	}
	return ""
}

// All matrices are uniform within Glorot's bound at the start, embeddings too, and biases within that of their layer.
// The broken twins are the published model, whose embeddings are normal, and bounds that are wrong by a tenth.
func TestXavierStart(t *testing.T) {
	seed := testkit.Seed(t)
	complaints := func(m Neural, stretch float64) (out []string) {
		store := nn.NewStore(seed)
		neuralTables(t, store, m)
		for v := range store.IterVariables() {
			dims := v.Shape().Dimensions
			bound := 1 / math.Sqrt(float64(m.Width))
			switch {
			case strings.HasSuffix(v.Path(), "/parents"):
				bound = m.ParentScale * math.Sqrt(6/float64(dims[0]+dims[1]))
			case len(dims) == 2:
				bound = math.Sqrt(6 / float64(dims[0]+dims[1]))
			}
			if problem := uniformity(variable(t, store, v.Path()), bound*stretch); problem != "" {
				out = append(out, v.Path()+": "+problem)
			}
		}
		return out
	}
	m := Neural{Kind: NCFG, Nonterminals: 20, Preterminals: 30, Width: 64, Words: 500, DType: dtypes.Float64, ParentScale: 0.5,
		Init: Xavier}
	if got := complaints(m, 1); got != nil {
		t.Error(strings.Join(got, "; "))
	}
	const variables = 1 + 1 + 1 + 1 + 2*(2+8) + 3*2 // embeddings, networks of roots and words, last layers
	if got := len(complaints(m, 0.9)); got != variables {
		t.Errorf("with narrower bounds %d of %d variables are found", got, variables)
	}
	if got := complaints(m, 1.1); len(got) < 12 { // rows of few values do not show it
		t.Errorf("with wider bounds %d variables are found", len(got))
	}
	m.Init = Published
	if got := strings.Join(complaints(m, 1), "; "); !strings.Contains(got, "/symbols: out of bounds") {
		t.Errorf("embeddings of the published model pass: %s", got)
	}
}

// Both models have variables of their own: no network is shared between roots and words.
func TestXavierShapes(t *testing.T) {
	store := nn.NewStore(1)
	neuralTables(t, store, Neural{Kind: NCFG, Nonterminals: 3, Preterminals: 2, Width: 6, Words: 7, Specials: 2, DType: dtypes.Float64,
		ParentScale: 1, Init: Xavier})
	want := map[string][]int{
		"parents": {4, 6}, "root/symbol": {1, 6}, "binary/symbols": {3, 6}, "words/symbols": {2, 6},
		"root/out/weights": {6, 3}, "root/out/bias": {3}, "words/out/weights": {6, 5}, "words/out/bias": {5},
		"binary/out/weights": {6, 25}, "binary/out/bias": {25},
	}
	for _, network := range []string{"root", "words"} {
		for _, layer := range []string{"in", "0/0", "0/1", "1/0", "1/1"} {
			want[network+"/"+layer+"/weights"], want[network+"/"+layer+"/bias"] = []int{6, 6}, []int{6}
		}
	}
	count := 0
	for v := range store.IterVariables() {
		count++
		if dims, ok := want[strings.TrimPrefix(v.Path(), "/theta/")]; !ok || !slices.Equal(dims, v.Shape().Dimensions) {
			t.Errorf("%s is %v, want %v", v.Path(), v.Shape().Dimensions, dims)
		}
	}
	if count != len(want) {
		t.Errorf("%d variables, want %d", count, len(want))
	}
}
