package optim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/google/go-cmp/cmp"

	"github.com/gfnem/gfnem/internal/program"
)

func newBackend(t *testing.T) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig("go")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// newStore makes a store with the given float64 values as variables of a dtype.
func newStore(dtype dtypes.DType, values map[string][]float64) *model.Store {
	store := model.NewStore()
	for _, path := range sortedKeys(values) {
		store.VariableWithValue(path, tensorOf(dtype, values[path]))
	}
	return store
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func tensorOf(dtype dtypes.DType, v []float64) *tensors.Tensor {
	if dtype == dtypes.Float64 {
		return tensors.FromValue(v)
	}
	narrow := make([]float32, len(v))
	for i := range v {
		narrow[i] = float32(v[i])
	}
	return tensors.FromValue(narrow)
}

// read returns the values of all variables of a store, by path.
func read(t *testing.T, store *model.Store) map[string][]float64 {
	t.Helper()
	out := map[string][]float64{}
	for v := range store.IterVariables() {
		out[v.Path()] = flat(t, v.MustValue())
	}
	return out
}

func flat(t *testing.T, v *tensors.Tensor) []float64 {
	t.Helper()
	switch v.DType() {
	case dtypes.Float64:
		return tensors.MustCopyFlatData[float64](v)
	case dtypes.Float32:
		var out []float64
		for _, x := range tensors.MustCopyFlatData[float32](v) {
			out = append(out, float64(x))
		}
		return out
	default:
		t.Fatalf("unexpected dtype %s", v.DType())
		return nil
	}
}

// pull is a loss whose gradient is given: the sum over variables, by path, of variable times push.
func pull(store *model.Store, push map[string]*Node) *Node {
	var loss *Node
	for _, path := range sortedKeys(push) {
		term := ReduceAllSum(Mul(store.GetVariable(path).NodeValue(push[path]), push[path]))
		if loss == nil {
			loss = term
		} else {
			loss = Add(loss, ConvertDType(term, loss.DType()))
		}
	}
	return loss
}

// pulls are rates and a gradient for each variable.
type pulls[R, T any] struct {
	Rates R
	Grads []T
}

// pulled is the norm of gradients, and whether the update was made.
type pulled[N, B any] struct {
	Norm N
	OK   B
}

// puller is a program that moves variables along given gradients.
type puller struct {
	store *model.Store
	move  *program.Program[pulls[[]float32, *tensors.Tensor], pulled[float64, bool]]
	opt   Optimizer
	paths []string
	step  uint64
}

func newPuller(t *testing.T, b compute.Backend, store *model.Store, opt Optimizer, paths ...string) *puller {
	t.Helper()
	set := program.NewSet(b, store)
	t.Cleanup(set.Close)
	move := program.New[pulls[[]float32, *tensors.Tensor], pulled[float64, bool]](set, "pull",
		func(in pulls[*Node, *Node]) pulled[*Node, *Node] {
			push := map[string]*Node{}
			for i, path := range paths {
				push[path] = in.Grads[i]
			}
			r := opt.Minimize(store, pull(store, push), in.Rates)
			return pulled[*Node, *Node]{r.GradNorm, r.OK}
		})
	return &puller{store: store, move: move, opt: opt, paths: paths}
}

// pull makes one update and returns the gradient norm and whether it was made.
func (p *puller) pull(t *testing.T, grads map[string][]float64) (norm float64, ok bool) {
	t.Helper()
	in := pulls[[]float32, *tensors.Tensor]{Rates: p.opt.Rates(p.step)}
	for _, path := range p.paths {
		in.Grads = append(in.Grads, tensorOf(p.store.GetVariable(path).DType(), grads[path]))
	}
	out, err := p.move.Call(in)
	if err != nil {
		t.Fatal(err)
	}
	p.step++
	return out.Norm, out.OK
}

// slowAdam is Adam (Kingma and Ba, 2015, algorithm 1) written out for one variable.
type slowAdam struct {
	b1, b2, eps float64
	m, v        []float64
	t           float64
}

func (a *slowAdam) update(w, g []float64, rate float64) {
	if a.m == nil {
		a.m, a.v = make([]float64, len(w)), make([]float64, len(w))
	}
	a.t++
	for i := range w {
		a.m[i] = a.b1*a.m[i] + (1-a.b1)*g[i]
		a.v[i] = a.b2*a.v[i] + (1-a.b2)*g[i]*g[i]
		w[i] -= rate * a.m[i] / (1 - math.Pow(a.b1, a.t)) / (math.Sqrt(a.v[i]/(1-math.Pow(a.b2, a.t))) + a.eps)
	}
}

func near(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol) {
			t.Fatalf("%s: number %d is %.15g, want %.15g", what, i, got[i], want[i])
		}
	}
}

func TestAdam(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	b := newBackend(t)
	for _, rule := range []Adam{{}, {Beta1: 0.75, Beta2: 0.99, Eps: 1e-3}} {
		for dtype, tol := range map[dtypes.DType]float64{dtypes.Float32: 1e-6, dtypes.Float64: 1e-12} {
			t.Run(fmt.Sprintf("%v/%s", rule, dtype), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 1))
				w := []float64{0.5, -0.25, 0, 0.125}
				store := newStore(dtype, map[string][]float64{"/phi/w": w})
				opt := Optimizer{Groups: []Group{{Scope: "/phi", Rule: rule, Rate: Rate{Base: 1.0 / 64, Warmup: 4}}}}
				p := newPuller(t, b, store, opt, "/phi/w")
				slow := slowAdam{b1: or(rule.Beta1, 0.9), b2: or(rule.Beta2, 0.999), eps: or(rule.Eps, 1e-8)}
				for step := range uint64(40) {
					g := make([]float64, len(w))
					for i := range g {
						g[i] = float64(float32(r.NormFloat64() * math.Pow(10, float64(i-2)))) // 0.01 to 10
					}
					norm, ok := p.pull(t, map[string][]float64{"/phi/w": g})
					if !ok {
						t.Fatal("a finite update was refused")
					}
					near(t, "gradient norm", []float64{norm}, []float64{length(g)}, 1e-5)
					slow.update(w, g, opt.Groups[0].Rate.At(step))
					near(t, fmt.Sprintf("w after update %d", step), read(t, store)["/phi/w"], w, tol)
				}
			})
		}
	}
}

func length(vs ...[]float64) float64 {
	var sum float64
	for _, v := range vs {
		for _, x := range v {
			sum += x * x
		}
	}
	return math.Sqrt(sum)
}

// The first step of Adam has size rate whatever the gradient, to the precision of the dtype: its bias corrections
// 1-beta^t must not lose digits.
func TestAdamFirstStep(t *testing.T) {
	b := newBackend(t)
	store := newStore(dtypes.Float32, map[string][]float64{"/phi/w": {0, 0}})
	p := newPuller(t, b, store, Optimizer{Groups: []Group{{Scope: "/phi", Rate: Rate{Base: 1}}}}, "/phi/w")
	p.pull(t, map[string][]float64{"/phi/w": {3, -0.01}})
	near(t, "first step", read(t, store)["/phi/w"], []float64{-1, 1}, 2e-6)
}

func TestSGD(t *testing.T) {
	b := newBackend(t)
	store := newStore(dtypes.Float64, map[string][]float64{"/phi/w": {1, 2}})
	p := newPuller(t, b, store, Optimizer{Groups: []Group{{Scope: "/phi", Rule: SGD{}, Rate: Rate{Base: 0.5}}}}, "/phi/w")
	p.pull(t, map[string][]float64{"/phi/w": {0.25, -4}})
	p.pull(t, map[string][]float64{"/phi/w": {1, 1}})
	want := map[string][]float64{"/phi/w": {0.375, 3.5}, "/optim/phi/step": {2}}
	if d := cmp.Diff(want, read(t, store)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A variable belongs to the group with the longest path above it; paths end at slashes.
func TestOwnership(t *testing.T) {
	o := Optimizer{Groups: []Group{{Scope: "/phi"}, {Scope: "/phi/flow/"}, {Scope: "/phi/flow/out"}, {Scope: "/theta"}}}
	for path, want := range map[string]int{
		"/phi/w": 0, "/phi/deep/er/w": 0, "/phi/flow2/w": 0, "/phi/flow/w": 1, "/phi/flow/outer/w": 1,
		"/phi/flow/out/w": 2, "/phi2/w": -1, "/phi2": -1, "/w": -1, "/theta/w": 3, "/optim/phi/w/m1": -1, "/a/phi/w": -1,
	} {
		if got := o.group(path); got != want {
			t.Errorf("%s belongs to group %d, want %d", path, got, want)
		}
	}
	if got := (Optimizer{Groups: []Group{{Scope: "/"}}}).group("/any/w"); got != 0 {
		t.Errorf("the root scope does not own /any/w: %d", got)
	}
}

// Groups have their own rules, rates and counters, and what no group owns stays.
func TestGroups(t *testing.T) {
	b := newBackend(t)
	start := map[string][]float64{
		"/phi/w": {1}, "/phi/flow/w": {1}, "/phi2/w": {1}, "/theta/w": {1}, "/phi/frozen": {1}, "/phi/unused": {1},
	}
	store := newStore(dtypes.Float64, start)
	store.GetVariable("/phi/frozen").SetTrainable(false)
	opt := Optimizer{Groups: []Group{
		{Scope: "/phi", Rule: SGD{}, Rate: Rate{Base: 0.5}},
		{Scope: "/phi/flow", Rate: Rate{Base: 0.25}},
		{Scope: "/nothing", Rate: Rate{Base: 1}},
		{Scope: "/phi2/", Rule: SGD{}, Rate: Rate{Base: 0.125, Drops: []Drop{{Step: 1, Factor: 0}}}},
	}}
	p := newPuller(t, b, store, opt, "/phi/w", "/phi/flow/w", "/phi2/w", "/theta/w", "/phi/frozen")
	slow, w := slowAdam{b1: 0.9, b2: 0.999, eps: 1e-8}, []float64{1}
	for range 2 {
		norm, _ := p.pull(t, map[string][]float64{
			"/phi/w": {2}, "/phi/flow/w": {3}, "/phi2/w": {6}, "/theta/w": {100}, "/phi/frozen": {100},
		})
		if norm != 7 {
			t.Errorf("norm %g, want 7: that of the three owned gradients", norm)
		}
		slow.update(w, []float64{3}, 0.25)
	}
	got := read(t, store)
	near(t, "/phi/flow/w", got["/phi/flow/w"], w, 1e-12)
	delete(got, "/phi/flow/w")
	near(t, "first moment", got["/optim/phi/flow/w/m1"], slow.m, 1e-12)
	near(t, "second moment", got["/optim/phi/flow/w/m2"], slow.v, 1e-12)
	delete(got, "/optim/phi/flow/w/m1")
	delete(got, "/optim/phi/flow/w/m2")
	want := map[string][]float64{
		"/phi/w": {-1}, "/phi2/w": {0.25}, "/theta/w": {1}, "/phi/frozen": {1}, "/phi/unused": {1},
		"/optim/phi/step": {2}, "/optim/phi/flow/step": {2}, "/optim/phi2/step": {2},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestClipNorm(t *testing.T) {
	b := newBackend(t)
	groups := []Group{
		{Scope: "/a", Rule: SGD{}, Rate: Rate{Base: 1}},
		{Scope: "/b", Rule: SGD{}, Rate: Rate{Base: 1}},
	}
	grads := map[string][]float64{"/a/w": {0.3, -1.7}, "/b/w": {0.1, 2.9}} // joint norm 3.3764
	step := func(clip float64, scale float64) (moved map[string][]float64, norm float64) {
		store := newStore(dtypes.Float32, map[string][]float64{"/a/w": {0, 0}, "/b/w": {0, 0}})
		p := newPuller(t, b, store, Optimizer{Groups: groups, ClipNorm: clip}, "/a/w", "/b/w")
		scaled := map[string][]float64{}
		for path, g := range grads {
			for _, v := range g {
				scaled[path] = append(scaled[path], v*scale)
			}
		}
		norm, ok := p.pull(t, scaled)
		if !ok {
			t.Fatal("refused")
		}
		return read(t, store), norm
	}

	free, norm := step(0, 1)
	if want := length(grads["/a/w"], grads["/b/w"]); !(math.Abs(norm-want) <= 1e-6) {
		t.Fatalf("norm %g, want %g", norm, want)
	}
	for _, limit := range []float64{norm, 3.4, 3.3765, 100} {
		if got, _ := step(limit, 1); !cmp.Equal(got, free) {
			t.Errorf("limit %g: a gradient of norm %.9g was changed:\n%s", limit, norm, cmp.Diff(free, got))
		}
	}
	for _, scale := range []float64{1, 7, 1e10} { // limits that neither group exceeds alone are joint ones
		const limit = 3
		got, norm := step(limit, scale)
		if !(math.Abs(norm/(scale*length(grads["/a/w"], grads["/b/w"]))-1) <= 1e-6) {
			t.Errorf("norm %g is not that before clipping", norm)
		}
		if after := length(got["/a/w"], got["/b/w"]); !(math.Abs(after-limit) <= 1e-6) {
			t.Errorf("norm %g after clipping to %d", after, limit)
		}
		for path, v := range got {
			if !strings.HasSuffix(path, "/w") {
				continue
			}
			for i := range v {
				if want := -grads[path][i] * limit / length(grads["/a/w"], grads["/b/w"]); !(math.Abs(v[i]-want) <= 1e-6) {
					t.Errorf("%s[%d] moved by %g, want %g: the direction has changed", path, i, v[i], want)
				}
			}
		}
	}
}

// An update that is not finite anywhere changes nothing at all.
func TestNotFinite(t *testing.T) {
	b := newBackend(t)
	store := newStore(dtypes.Float32, map[string][]float64{"/phi/a": {1, 2, 3}, "/phi/flow/b": {4}})
	opt := Optimizer{ClipNorm: 1, Groups: []Group{
		{Scope: "/phi", Rate: Rate{Base: 1e-2}},
		{Scope: "/phi/flow", Rule: SGD{}, Rate: Rate{Base: 1e-2}},
	}}
	exec, err := model.NewExec(b, store, func(_ *model.Scope, rates, pushA, pushB, extra *Node) *Node {
		a, b := store.GetVariable("/phi/a").NodeValue(rates), store.GetVariable("/phi/flow/b").NodeValue(rates)
		loss := Add(ReduceAllSum(Mul(a, pushA)), ReduceAllSum(Mul(b, pushB)))
		loss = Add(loss, extra) // may spoil the loss but no gradient
		r := opt.Minimize(store, loss, rates)
		return ConvertDType(r.OK, dtypes.Float64)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	call := func(rates, a, b []float32, extra float32) bool {
		t.Helper()
		ok, err := exec.Call1(rates, a, b, extra)
		if err != nil {
			t.Fatal(err)
		}
		return tensors.ToScalar[float64](ok) == 1
	}
	good := []float32{1, -1, 2}
	rates := opt.Rates(0)
	if !call(rates, good, []float32{1}, 0) {
		t.Fatal("a finite update was refused")
	}
	before := read(t, store)
	if len(before) != 6 { // two variables, two counters, two moments
		t.Fatalf("unexpected variables %v", sortedKeys(before))
	}

	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, c := range map[string]struct {
		rates, a, b []float32
		extra       float32
	}{
		"NaN loss":               {rates, good, []float32{1}, nan},
		"infinite loss":          {rates, good, []float32{1}, inf},
		"minus infinite loss":    {rates, good, []float32{1}, -inf},
		"first gradient NaN":     {rates, []float32{nan, 1, 1}, []float32{1}, 0},
		"last gradient NaN":      {rates, []float32{1, 1, nan}, []float32{1}, 0},
		"infinite gradient":      {rates, []float32{1, inf, 1}, []float32{1}, 0},
		"norm overflows":         {rates, []float32{1e30, 1, 1}, []float32{1}, 0},
		"other group's gradient": {rates, good, []float32{nan}, 0},
		"infinite new value":     {[]float32{inf, 1e-2}, good, []float32{1}, 0},
		"NaN rate":               {[]float32{1e-2, nan}, good, []float32{1}, 0},
	} {
		if call(c.rates, c.a, c.b, c.extra) {
			t.Errorf("%s: OK", name)
		}
		if d := cmp.Diff(before, read(t, store)); d != "" {
			t.Errorf("%s: changed (-before +after)\n%s", name, d)
		}
	}
	if !call(rates, good, []float32{1}, 0) {
		t.Error("no recovery")
	}
	for path, v := range read(t, store) {
		if cmp.Equal(v, before[path]) {
			t.Errorf("the good update after the bad ones did not change %s", path)
		}
	}
}

// Assignments that go with a gradient step are made with it or not at all, and spoil it if they are not finite.
func TestMinimizeWithAssignments(t *testing.T) {
	start := map[string][]float64{"/theta/a": {1, 2}, "/other": {5}}
	store := newStore(dtypes.Float32, start)
	opt := Optimizer{Groups: []Group{{Scope: "/theta", Rule: SGD{}, Rate: Rate{Base: 0.5}}}}
	exec, err := model.NewExec(newBackend(t), store, func(_ *model.Scope, rates, value, scale *Node) *Node {
		loss := Mul(scale, ReduceAllSum(store.GetVariable("/theta/a").NodeValue(rates)))
		r := opt.Minimize(store, loss, rates, Assignment{Variable: store.GetVariable("/other"), Value: value})
		return ConvertDType(r.OK, dtypes.Float64)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	nan := float32(math.NaN())
	for _, c := range []struct {
		value, scale float32
		ok           float64
		want         map[string][]float64
	}{
		{nan, 1, 0, start}, {7, nan, 0, start}, {7, 1, 1, map[string][]float64{"/theta/a": {0.5, 1.5}, "/other": {7}}},
	} {
		out, err := exec.Call1(opt.Rates(0), []float32{c.value}, c.scale)
		if err != nil {
			t.Fatal(err)
		}
		if ok := tensors.ToScalar[float64](out); ok != c.ok {
			t.Errorf("value %g, scale %g: ok %g", c.value, c.scale, ok)
		}
		for path, want := range c.want {
			if got := read(t, store)[path]; !cmp.Equal(got, want) {
				t.Errorf("value %g, scale %g: %s is %v, want %v", c.value, c.scale, path, got, want)
			}
		}
	}
}

// Rows are replaced, of any dtype, and the others stay; if anything is not finite, all stay.
func TestAssignRows(t *testing.T) {
	const n = 6
	for _, dtype := range []dtypes.DType{dtypes.Float64, dtypes.Int32, dtypes.Bool, dtypes.Uint8} {
		store := model.NewStore()
		store.VariableWithValue("/theta/a", 1.0)
		b := newBackend(t)
		as := func(x *Node) *Node {
			if dtype == dtypes.Bool {
				return GreaterThan(x, ZerosLike(x))
			}
			return ConvertDType(x, dtype)
		}
		store.VariableWithValue("/rows", tensors.FromShape(shapes.Make(dtype, n, 2)))
		opt := Optimizer{Groups: []Group{{Scope: "/theta", Rule: SGD{}, Rate: Rate{Base: 0.5}}}}
		exec, err := model.NewExec(b, store, func(_ *model.Scope, rates, rows, value, scale *Node) *Node {
			loss := Mul(scale, store.GetVariable("/theta/a").NodeValue(rates))
			r := opt.Minimize(store, loss, rates, Assignment{Variable: store.GetVariable("/rows"), Value: as(value), Rows: rows})
			return ConvertDType(r.OK, dtypes.Float64)
		})
		if err != nil {
			t.Fatal(err)
		}
		twin := make([][2]float64, n)
		r := rand.New(rand.NewPCG(5, 0))
		for step := range 12 {
			rows := r.Perm(n)[:1+r.IntN(n)]
			numbers, value, scale := make([]int32, len(rows)), make([][]float64, len(rows)), 1.0
			if step%3 == 2 {
				scale = math.NaN()
			}
			for i, k := range rows {
				numbers[i] = int32(k)
				value[i] = []float64{float64(r.IntN(2)), float64(r.IntN(2))}
				if scale == 1 {
					twin[k] = [2]float64(value[i])
				}
			}
			if _, err := exec.Call1(opt.Rates(0), numbers, value, scale); err != nil {
				t.Fatal(err)
			}
			have := fmt.Sprint(MustExecOnce(b, func(x *Node) *Node {
				return ConvertDType(x, dtypes.Float64)
			}, store.GetVariable("/rows").MustValue()).Value())
			if want := fmt.Sprint(twin); have != want {
				t.Fatalf("%s, step %d, rows %v: %s, want %s", dtype, step, rows, have, want)
			}
		}
		exec.Finalize()
	}
}

func TestAssign(t *testing.T) {
	b := newBackend(t)
	start := map[string][]float64{"/theta/a": {1, 2, 3}, "/theta/b": {4}, "/theta/c": {5}}
	store := newStore(dtypes.Float32, start)
	exec, err := model.NewExec(b, store, func(_ *model.Scope, in []*Node) *Node {
		ok := Assign([]*model.Variable{store.GetVariable("/theta/a"), store.GetVariable("/theta/b")}, in)
		return ConvertDType(ok, dtypes.Float64)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		a, b []float32
		ok   float64
		want map[string][]float64
	}{
		{[]float32{nan, 1, 1}, []float32{1}, 0, start},
		{[]float32{1, nan, 1}, []float32{1}, 0, start},
		{[]float32{1, 1, nan}, []float32{1}, 0, start},
		{[]float32{1, -inf, 1}, []float32{1}, 0, start},
		{[]float32{1, 1, 1}, []float32{inf}, 0, start},
		{[]float32{7, 8, 9}, []float32{10}, 1, map[string][]float64{"/theta/a": {7, 8, 9}, "/theta/b": {10}, "/theta/c": {5}}},
	} {
		out, err := exec.Call1(c.a, c.b)
		if err != nil {
			t.Fatal(err)
		}
		if got := tensors.ToScalar[float64](out); got != c.ok {
			t.Errorf("assign %v, %v: ok is %g", c.a, c.b, got)
		}
		if d := cmp.Diff(c.want, read(t, store)); d != "" {
			t.Errorf("assign %v, %v (-want +got)\n%s", c.a, c.b, d)
		}
	}
}

// Declare makes what Minimize would make, at the same values.
func TestDeclare(t *testing.T) {
	b := newBackend(t)
	opt := Optimizer{Groups: []Group{
		{Scope: "/phi", Rate: Rate{Base: 1e-2}},
		{Scope: "/", Rule: SGD{}, Rate: Rate{Base: 0.1}},
		{Scope: "/other", Rate: Rate{Base: 1}},
	}}
	values := map[string][]float64{"/phi/w": {1, 2}, "/u": {3, 4}, "/fixed": {5}}
	grads := map[string][]float64{"/phi/w": {0.5, -2}, "/u": {1, 1}}
	var stores [2]*model.Store
	for i, declares := range []bool{false, true} {
		stores[i] = newStore(dtypes.Float32, values)
		stores[i].GetVariable("/fixed").SetTrainable(false)
		if declares {
			opt.Declare(stores[i])
			opt.Declare(stores[i])
			want := []string{"/fixed", "/optim/phi/step", "/optim/phi/w/m1", "/optim/phi/w/m2", "/optim/step", "/phi/w", "/u"}
			made := read(t, stores[i])
			if got := sortedKeys(made); !slices.Equal(got, want) || !cmp.Equal(made["/optim/phi/w/m2"], []float64{0, 0}) {
				t.Errorf("declared %v", made)
			}
		}
		p := newPuller(t, b, stores[i], opt, "/phi/w", "/u")
		p.pull(t, grads)
		p.pull(t, grads)
	}
	if d := cmp.Diff(read(t, stores[0]), read(t, stores[1])); d != "" {
		t.Errorf("(-made by Minimize +declared)\n%s", d)
	}
	for v := range stores[1].IterVariables() {
		if want := v.Path() == "/phi/w" || v.Path() == "/u"; v.Trainable != want {
			t.Errorf("%s is trainable: %t", v.Path(), v.Trainable)
		}
	}
}

func TestNoVariable(t *testing.T) {
	b := newBackend(t)
	store := newStore(dtypes.Float32, map[string][]float64{"/phi/w": {1}, "/theta/w": {1}})
	store.GetVariable("/theta/w").SetTrainable(false)
	rate := Rate{Base: 1}
	opt := Optimizer{Groups: []Group{{Scope: "/theta", Rate: rate}, {Scope: "/psi", Rate: rate}}}
	exec, err := model.NewExec(b, store, func(_ *model.Scope, rates *Node) *Node {
		w := func(path string) *Node { return store.GetVariable(path).NodeValue(rates) }
		loss := ReduceAllSum(Add(w("/phi/w"), w("/theta/w")))
		return opt.Minimize(store, loss, rates).GradNorm
	})
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	_, err = exec.Call(opt.Rates(0))
	if err == nil || !strings.Contains(err.Error(), "the loss uses no trainable variable below [/theta /psi]") {
		t.Errorf("got error %v", err)
	}
}

// An optimiser goes on where a copy of its variables left off, whatever their trainable flags are in the copy.
func TestContinue(t *testing.T) {
	b := newBackend(t)
	opt := Optimizer{Groups: []Group{{Scope: "/phi", Rate: Rate{Base: 1e-2}}, {Scope: "/", Rule: SGD{}, Rate: Rate{Base: 0.1}}}}
	grads := map[string][]float64{"/phi/w": {0.5, -2}, "/u": {1, 1}}
	store := newStore(dtypes.Float32, map[string][]float64{"/phi/w": {1, 2}, "/u": {3, 4}})
	whole := newPuller(t, b, store, opt, "/phi/w", "/u")
	whole.pull(t, grads)
	second := model.NewStore()
	for v := range store.IterVariables() {
		c, err := v.MustValue().Clone()
		if err != nil {
			t.Fatal(err)
		}
		second.VariableWithValue(v.Path(), c)
	}
	rest := newPuller(t, b, second, opt, "/phi/w", "/u")
	for range 3 {
		whole.pull(t, grads)
		rest.pull(t, grads)
	}
	if d := cmp.Diff(read(t, store), read(t, second)); d != "" {
		t.Errorf("(-whole +continued)\n%s", d)
	}
}

// The order in which variables were made does not change a bit.
func TestOrder(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	b := newBackend(t)
	r := rand.New(rand.NewPCG(seed, 0))
	values, grads, paths := map[string][]float64{}, map[string][]float64{}, []string{}
	for i := range 12 {
		path := fmt.Sprintf("/phi/%c", 'a'+i)
		paths = append(paths, path)
		values[path], grads[path] = []float64{0}, []float64{r.NormFloat64()}
	}
	opt := Optimizer{ClipNorm: 0.1, Groups: []Group{{Scope: "/phi", Rule: SGD{}, Rate: Rate{Base: 1}}}}
	var want map[string][]float64
	for range 10 {
		store := model.NewStore()
		for _, i := range r.Perm(len(paths)) {
			store.VariableWithValue(paths[i], tensorOf(dtypes.Float32, values[paths[i]]))
		}
		newPuller(t, b, store, opt, paths...).pull(t, grads)
		got := read(t, store)
		if want == nil {
			want = got
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("(-one order +another)\n%s", d)
		}
	}
}
