package gfn_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// twisted is an environment and a policy whose answers a test changes.
type twisted struct {
	gfn.Env
	steps, actions, back int
	twist                map[string]func(*Node) *Node
	heads                func(*gfn.Heads)
}

func (w twisted) of(method string, x *Node) *Node {
	if f := w.twist[method]; f != nil {
		return f(x)
	}
	return x
}

func (w twisted) ofState(method string, s gfn.State) gfn.State {
	if x := w.of(method, s[0]); x != nil {
		return gfn.State{x}
	}
	return nil
}

func (w twisted) Steps() int                             { return w.Env.Steps() + w.steps }
func (w twisted) Actions() int                           { return w.Env.Actions() + w.actions }
func (w twisted) BackActions() int                       { return w.Env.BackActions() + w.back }
func (w twisted) Initial(x gfn.Batch) gfn.State          { return w.ofState("Initial", w.Env.Initial(x)) }
func (w twisted) Legal(s gfn.State) *Node                { return w.of("Legal", w.Env.Legal(s)) }
func (w twisted) LegalBack(s gfn.State) *Node            { return w.of("LegalBack", w.Env.LegalBack(s)) }
func (w twisted) Step(s gfn.State, a *Node) gfn.State    { return w.ofState("Step", w.Env.Step(s, a)) }
func (w twisted) Undo(s gfn.State, b *Node) gfn.State    { return w.ofState("Undo", w.Env.Undo(s, b)) }
func (w twisted) Back(s gfn.State, a *Node) *Node        { return w.of("Back", w.Env.Back(s, a)) }
func (w twisted) Redo(s gfn.State, b *Node) *Node        { return w.of("Redo", w.Env.Redo(s, b)) }
func (w twisted) LogZ(_ *model.Scope, x gfn.Batch) *Node { return w.of("LogZ", Squeeze(x[0], 1)) }

func (w twisted) Heads(_ *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	legal := ConvertDType(w.Env.Legal(s), dtypes.Float32)
	h := gfn.Heads{Forward: legal, Backward: ConvertDType(w.Env.LegalBack(s), dtypes.Float32), Flow: ReduceSum(legal, 1)}
	if w.heads != nil {
		w.heads(&h)
	}
	return h
}

// What an environment, a policy or a reward returns is not broadcast, and the error names the method that is wrong.
func TestShapes(t *testing.T) {
	first := func(x *Node) *Node { return SliceAxis(x, 0, AxisRange(0, 1)) }
	widen := func(x *Node) *Node { return InsertAxes(x, 1) }
	deepen := func(x *Node) *Node { return InsertAxes(x, -1) }
	number := func(x *Node) *Node { return ConvertDType(x, dtypes.Float32) }
	total := func(x *Node) *Node { return ReduceAllSum(x) }
	none := func(*Node) *Node { return nil }
	for _, c := range []struct {
		method string
		twist  func(*Node) *Node
		want   string
	}{
		{"Initial", first, "Initial has (Int32)[1, 4] as tensor 0, not 3 rows"},
		{"Initial", none, "Initial has no tensor"},
		{"Legal", first, "Legal is (Bool)[1, 4], not (Bool)[3, 4]"},
		{"Legal", number, "Legal is (Float32)[3, 4], not (Bool)[3, 4]"},
		{"Legal", none, "Legal is nil"},
		{"Step", first, "Step has (Int32)[1, 4] as tensor 0, not (Int32)[3, 4]"},
		{"Step", none, "Step has 0 tensors, not 1"},
		{"Step", number, "Step has (Float32)[3, 4]"},
		{"Back", widen, "Back is (Int32)[3, 1], not (Int32)[3]"},
		{"Undo", first, "Undo has (Int32)[1, 4]"},
		{"Redo", total, "Redo is (Int32), not (Int32)[3]"},
		{"LegalBack", first, "LegalBack is (Bool)[1, 4]"},
		{"LogZ", total, "LogZ is (Float32), not (Float32)[3]"},
		{"LogZ", widen, "LogZ is (Float32)[3, 1]"},
	} {
		fails(t, c.want, func(w *twisted) { w.twist = map[string]func(*Node) *Node{c.method: c.twist} })
	}
	as := func(x **Node, dtype dtypes.DType) { *x = ConvertDType(*x, dtype) }
	for want, heads := range map[string]func(*gfn.Heads){
		"Heads.Forward is nil, not (floats)[3, 4]":                  func(h *gfn.Heads) { h.Forward = nil },
		"Heads.Forward is (Float32)[1, 4], not (floats)[3, 4]":      func(h *gfn.Heads) { h.Forward = first(h.Forward) },
		"Heads.Forward is (Int32)[3, 4], not (floats)[3, 4]":        func(h *gfn.Heads) { as(&h.Forward, dtypes.Int32) },
		"Heads.Backward is (Float32)[3, 4, 1], not (Float32)[3, 4]": func(h *gfn.Heads) { h.Backward = deepen(h.Backward) },
		"Heads.Backward is (Float64)[3, 4], not (Float32)[3, 4]":    func(h *gfn.Heads) { as(&h.Backward, dtypes.Float64) },
		"Heads.Flow is (Float32), not (Float32)[3]":                 func(h *gfn.Heads) { h.Flow = total(h.Flow) },
		"Heads.Flow is (Float32)[3, 1], not (Float32)[3]":           func(h *gfn.Heads) { h.Flow = widen(h.Flow) },
	} {
		fails(t, want, func(w *twisted) { w.heads = heads })
	}
	fails(t, "Heads returns a backward head or a flow for some states only", func(w *twisted) {
		asked := 0
		w.heads = func(h *gfn.Heads) {
			if asked++; asked == 2 {
				h.Flow = nil
			}
		}
	})
	fails(t, "Steps is 0, not 1 or more", func(w *twisted) { w.steps = -2 })
	fails(t, "Actions is -1", func(w *twisted) { w.actions = -5 })
	fails(t, "BackActions is 0", func(w *twisted) { w.back = -4 })
	fails(t, "Heads.Forward is (Float32)[3, 4], not (floats)[3, 5]", func(w *twisted) {
		w.actions = 1
		more := func(x *Node) *Node { return Concatenate([]*Node{x, SliceAxis(x, 1, AxisRange(0, 1))}, 1) }
		w.twist = map[string]func(*Node) *Node{"Legal": more}
	})
}

// fails samples and scores with something wrong.
func fails(t *testing.T, want string, spoil func(*twisted)) {
	t.Helper()
	w := &twisted{Env: envs.Subset{Items: 4, Size: 2}}
	spoil(w)
	err := walks(func(net gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
		tr := net.Rollout(r, x, nil, gfn.Behaviour{})
		back := net.Backtrack(r, x, tr.Last(), nil, gfn.Behaviour{})
		logR := Squeeze(x[0], 1)
		loss := gfn.TB{}.Loss(net.Path(tr, net.ScoreSampled(tr, gfn.Behaviour{}), logR, nil))
		return Add(loss, net.Score(back, gfn.Behaviour{}).LogPF)
	}, *w)
	named(t, err, want)
}

// walks calls a program of a net and of three observations.
func walks(f func(gfn.Net, *rng.Stream, gfn.Batch) *Node, w twisted) error {
	type in[T any] struct{ X, Key T }
	type inNodes = in[*Node]
	type inTensors = in[*tensors.Tensor]
	type out[T any] struct{ Loss T }
	net := gfn.Net{Env: w, Policy: w, Scope: model.NewStore().RootScope()}
	walk := func(in inNodes) out[*Node] { return out[*Node]{f(net, rng.In(in.Key), gfn.Batch{in.X})} }
	_, err := program.Once[inTensors, out[*tensors.Tensor]](
		backend(), nil, "walk", walk, inTensors{blank(3), rng.Key(1, "shapes")})
	return err
}

// named checks an error that names this file.
func named(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "check_test.go:") || !strings.Contains(err.Error(), ": "+want) {
		t.Errorf("error %v, want one at a line of check_test.go with %q", err, want)
	}
}

// So it is with what a caller gives.
func TestArguments(t *testing.T) {
	path := func(net gfn.Net, r *rng.Stream, x gfn.Batch, logR, partial *Node) gfn.Path {
		tr := net.Rollout(r, x, nil, gfn.Behaviour{})
		return net.Path(tr, net.Score(tr, gfn.Behaviour{}), logR, partial)
	}
	type walk = func(gfn.Net, *rng.Stream, gfn.Batch) *Node
	for want, f := range map[string]walk{
		"gfn: the log-reward is (Float32), not (floats)[3]": func(n gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
			return gfn.TB{}.Loss(path(n, r, x, ReduceAllSum(x[0]), nil))
		},
		"gfn: the partial log-reward is (Float32)[3, 1], not (floats)[3, 3]": func(
			n gfn.Net, r *rng.Stream, x gfn.Batch,
		) *Node {
			return gfn.SubTB{}.Loss(path(n, r, x, Squeeze(x[0], 1), x[0]))
		},
		"the partial log-reward is (Float32)[3, 3], not (floats)[9]": func(n gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
			tr := n.Rollout(r, x, nil, gfn.Behaviour{})
			return n.Partials(tr, func(x gfn.Batch, s gfn.State, k int) *Node { return BroadcastToDims(x[0], 3, 3) })
		},
		"the log-reward is (Float32)[3, 1], not (Float32)[3]": func(n gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
			z := n.Rollout(r, x, nil, gfn.Behaviour{}).Last()
			return gfn.BackForth{}.Apply(n, r, x, z, Squeeze(x[0], 1), func(gfn.Batch, gfn.State) *Node { return x[0] }).LogR
		},
		"gfn: BackForth.MaxSteps is -1": func(n gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
			return gfn.BackForth{MaxSteps: -1}.Apply(n, r, x, n.Env.Initial(x), Squeeze(x[0], 1), nil).LogR
		},
		"gfn: 1 states do not belong to 3 observations": func(n gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
			s := n.Env.Initial(x)
			return n.Rollout(r, x, gfn.State{SliceAxis(s[0], 0, AxisRange(0, 1))}, gfn.Behaviour{}).Action[0]
		},
		"gfn: SubTB.Lambda is -1": func(n gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
			return gfn.SubTB{Lambda: -1}.Loss(path(n, r, x, Squeeze(x[0], 1), nil))
		},
		"gfn: SubTB.Lambda is NaN": func(n gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
			return gfn.SubTB{Lambda: math.NaN()}.Loss(path(n, r, x, Squeeze(x[0], 1), nil))
		},
		"gfn: Samples is -3": func(n gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
			return gfn.HVI{Samples: -3}.Loss(path(n, r, x, Squeeze(x[0], 1), nil))
		},
		"gfn: Tabular has states like (Int32)[11, 4] as tensor 0, and is asked about (Int32)[3, 1]": func(
			n gfn.Net, _ *rng.Stream, x gfn.Batch,
		) *Node {
			table := gfn.Tabular{DAG: enumerate(t, envs.Subset{Items: 4, Size: 2})}
			return table.Heads(n.Scope, x, gfn.State{ConvertDType(x[0], dtypes.Int32)}, 1).Flow
		},
		"envs: the sizes [2 0] of a Sequence": func(n gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
			return envs.Sequence{Sizes: []int{2, 0}}.Initial(x)[0]
		},
		"envs: a Subset of 5 out of 4": func(n gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
			return envs.Subset{Items: 4, Size: 5}.Initial(x)[0]
		},
		"envs: a Hypergrid of side 0 in 2": func(n gfn.Net, r *rng.Stream, x gfn.Batch) *Node {
			return envs.Hypergrid{Side: 0, Dims: 2}.Initial(x)[0]
		},
	} {
		named(t, walks(f, twisted{Env: envs.Subset{Items: 4, Size: 2}}), want)
	}
}

// Exact answers are not made from numbers of other things.
func TestExactArguments(t *testing.T) {
	d := enumerate(t, envs.Subset{Items: 4, Size: 2}) // 11 states, 16 edges, 6 objects
	edges, objects, states := make([]float64, 16), make([]float64, 6), make([]float64, 11)
	table := gfn.Table{LogPF: edges, LogPB: edges}
	for want, f := range map[string]func(){
		"gfn: there are 11 numbers by object, not 6": func() { d.Solve(states, edges) },
		"gfn: there are 11 numbers by edge, not 16":  func() { d.Solve(objects, states) },
		"gfn: there are 6 numbers by edge, not 16":   func() { d.Terminating(gfn.Table{LogPF: objects, LogPB: edges}) },
		"gfn: there are 16 numbers by object, not 6": func() { d.ELBO(table, edges) },
		"gfn: there are 11 numbers in the second":    func() { gfn.TotalVariation(objects, states) },
	} {
		func() {
			defer func() {
				err, _ := recover().(error)
				named(t, err, want)
			}()
			f()
		}()
	}

	w := twisted{Env: envs.Subset{Items: 4, Size: 2}, twist: map[string]func(*Node) *Node{
		"Back": func(x *Node) *Node { return AddScalar(x, 2) },
	}}
	wrong, err := gfn.Enumerate(backend(), w, []*tensors.Tensor{blank(1)}, 100)
	if err != nil {
		t.Fatal(err)
	}
	_, err = wrong.Tabulate(backend(), model.NewStore(), "policy", gfn.Tabular{DAG: d}, []*tensors.Tensor{blank(1)})
	if err == nil || !strings.Contains(err.Error(), "check_test.go:") || !strings.Contains(err.Error(), "Back is ") {
		t.Errorf("a backward action that is none gave %v", err)
	}
	w.twist = map[string]func(*Node) *Node{"Step": func(x *Node) *Node { return InsertAxes(x, 1) }}
	if _, err = gfn.Enumerate(backend(), w, []*tensors.Tensor{blank(1)}, 100); err == nil {
		t.Error("states of another shape were enumerated")
	} else {
		named(t, err, "Step has (Int32)[512, 1, 4]")
	}
}
