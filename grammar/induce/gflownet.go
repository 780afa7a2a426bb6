package induce

import (
	"fmt"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// phi is the scope of the GFlowNet's variables.
const phi = "/phi"

// gflownet is the network and the compiled programs of E-steps, whose tensors stay on the device: the host sees a few numbers of each update.
type gflownet struct {
	*Config
	backend   compute.Backend
	store     *model.Store
	tables    func(g *Graph) grammar.Tables // of the grammar whose posterior is learned
	net       forest.Network
	optimizer optim.Optimizer

	// onCPU says that a program is quick to compile and takes as long as its arithmetic, so that it pays to have many, of all sizes. On a
	// card a program takes as long as it has operations, and every call costs something. What is made for a card is for XLA, whatever it runs on.
	onCPU bool

	potentials *program         // words, lengths: the weights of derivations
	dream      *program         // words, lengths, key: the same, and trees of the grammar, from tables made once
	begin      *program         // key, knobs, words, lengths, dreams: journeys from bare words up and from dreamt trees down
	wake       *program         // key, knobs, words, lengths: journeys from bare words
	undo       *program         // key, knobs, steps back, walks: journeys back, for orders in which trees may have been made
	judge      *program         // potentials, prior, trees: log-rewards and their parts, for evaluations
	arrive     *program         // walks begun: those of words, judged, and those of dreams; and the first move set out
	settle     *program         // a move that was made: judged, accepted or not, and the next one set out
	flow       *program         // words, lengths: log Z
	embed      *program         // leaves, lengths, trees: walks that stand at whole trees
	best       *program         // weights of spans, lengths: the trees with the greatest sums
	ways       map[int]*program // journeys: walks; by places for trees
	legs       map[int]*program // passes, journeys: the same after these passes; by places for trees
	learn      map[int]*program // by the size of the line

	times map[string]time.Duration // of programs, if somebody asks
}

func newGFlowNet(b compute.Backend, store *model.Store, m grammar.Neural, c *Config) (*gflownet, error) {
	if b.Name() == "Go Backend" {
		return nil, badinput.Errorf(
			"the go backend lacks operations that GFlowNets over trees need: use --backend simd or xla")
	}
	e := &gflownet{
		Config: c, backend: b, store: store, onCPU: b.Name() == engine.Name,
		ways: map[int]*program{}, legs: map[int]*program{}, learn: map[int]*program{},
	}
	e.tables = func(g *Graph) grammar.Tables { return m.Tables(store.Scope(theta), g) }
	e.net = forest.Network{
		Width: c.GFNWidth, Layers: c.GFNLayers, Heads: c.GFNHeads, FeedForward: 4 * c.GFNWidth, DType: dtypes.Float32,
		Words: m.Words, Labels: m.Nonterminals, Preterminals: m.Preterminals, Positions: c.longest() + 1, // 22 at the published lengths, as published
		Half: c.GFNHalf, Linear: c.GFNLinear, UniformBack: c.UniformBack, Mixes: c.Epsilon > 0, Rolled: !e.onCPU,
	}
	group := func(scope string, lr float64) optim.Group {
		return optim.Group{Scope: phi + "/" + scope, Rule: optim.Adam{Beta1: c.GFNBeta1, Beta2: c.GFNBeta2}, Rate: optim.Rate{
			Base: lr, Warmup: uint64(c.Warmup), Drops: []optim.Drop{{Step: uint64(c.Warmup), Factor: c.FinalLR}},
			Fall: optim.Fall{From: uint64(c.Updates / 4), To: uint64(c.Updates), End: c.GFNDecay},
		}}
	}
	e.optimizer = optim.Optimizer{ClipNorm: c.Clip, Groups: []optim.Group{
		group(forest.EncoderScope, c.GFNLR), group(forest.ForwardScope, c.GFNLR), group(forest.BackwardScope, c.GFNLR),
		group(forest.FlowScope, c.FlowLR),
	}}
	return e, e.build()
}

// longest is the number of trees that forests of sentences and dreams have at most.
func (c *Config) longest() int { return max(c.MaxLength, c.dreamt()) }

// dreamt is the number of trees that forests of dreams have at most.
func (c *Config) dreamt() int { return min(c.DreamSteps+1, c.DreamLeaves) }

// program is a computation whose time can be taken.
type program struct {
	*model.Exec
	name string
	of   *gflownet
}

func (e *gflownet) program(name string, f func(in []*Node) []*Node) (*program, error) {
	p, err := compile(e.backend, e.store, f)
	if err != nil {
		return nil, fmt.Errorf("program %q: %w", name, err)
	}
	return &program{p.WithName(name), name, e}, nil
}

// sized returns the program of a size, which it makes when it is first needed.
func (e *gflownet) sized(programs map[int]*program, size int, name string, f func(in []*Node) []*Node) (*program, error) {
	if p, ok := programs[size]; ok {
		return p, nil
	}
	p, err := e.program(name, f)
	if err == nil {
		programs[size] = p
	}
	return p, err
}

// Call runs the program. Where times are asked for it waits for the last result.
func (p *program) Call(args ...any) ([]*tensors.Tensor, error) {
	if p.of.times == nil {
		return p.Exec.Call(args...)
	}
	begin := time.Now()
	out, err := p.Exec.Call(args...)
	if err == nil {
		err = out[len(out)-1].ConstBytes(func([]byte) {})
		p.of.times[p.name] += time.Since(begin)
	}
	return out, err
}

func (e *gflownet) build() (err error) {
	scope := e.store.Scope(phi)
	for _, p := range []struct {
		to   **program
		name string
		f    func(in []*Node) []*Node
	}{
		{&e.potentials, "potentials", func(in []*Node) []*Node {
			return weigh(e.tables(in[0].Graph()), in)
		}},
		{&e.wake, "wake", func(in []*Node) []*Node {
			g := in[0].Graph()
			start := e.net.Begin(scope, in[2], in[3])
			return e.net.SetOut(start, rng.In(in[0]), Const(g, int32(0)), Const(g, true), how(in[1])).List()
		}},
		{&e.undo, "undo", func(in []*Node) []*Node {
			return e.net.SetOut(forest.WalkOf(in[3:]), rng.In(in[0]), in[2], Const(in[0].Graph(), false), how(in[1])).List()
		}},
		{&e.begin, "begin", func(in []*Node) []*Node { return e.setOut(in).List() }},
		{&e.arrive, "arrive", e.arrived},
		{&e.embed, "embed", func(in []*Node) []*Node {
			z := grammar.Trees{Left: in[2], Right: in[3], Label: in[4]}
			return e.net.Embed(scope, forest.FromTrees(z, in[1]), in[0]).List()
		}},
		{&e.judge, "judge", e.rewards},
		{&e.settle, "settle", e.settled},
		{&e.dream, "dream", func(in []*Node) []*Node {
			tables := e.tables(in[0].Graph())
			d := tables.Dream(rng.In(in[2]), e.Batch, e.DreamLeaves)
			return append(weigh(tables, in), d.Leaves, d.Lengths, d.Left, d.Right, d.Label)
		}},
		{&e.flow, "flow", func(in []*Node) []*Node {
			return []*Node{ConvertDType(e.net.LogZ(scope, in[0], in[1]), dtypes.Float64)}
		}},
		{&e.best, "best", func(in []*Node) []*Node {
			r := grammar.BestSpans(in[0], in[1])
			return []*Node{r.Trees.Left, r.Trees.Right, r.Trees.Label, r.LogWeight}
		}},
	} {
		if *p.to, err = e.program(p.name, p.f); err != nil {
			return err
		}
	}
	return nil
}

// potentialsSize is the number of tensors that weights of derivations are.
const potentialsSize = 3

// judgesSize is the number of tensors that trees are judged by: potentials, lengths, the prior and one over its temperature.
const judgesSize = potentialsSize + 3

// weigh returns the weights of derivations of words, which come with their lengths.
func weigh(t grammar.Tables, in []*Node) []*Node {
	q := t.For(in[0], in[1])
	return []*Node{q.Root, q.Rules, q.Terms}
}

func (e *gflownet) close() {
	for _, p := range []*program{e.potentials, e.begin, e.arrive, e.settle, e.wake, e.undo, e.judge, e.dream, e.embed, e.flow, e.best} {
		if p != nil {
			p.Finalize()
		}
	}
	for _, some := range []map[int]*program{e.ways, e.legs, e.learn} {
		for _, p := range some {
			p.Finalize()
		}
	}
}

// how is the behaviour while exploring: knobs are the inverse temperature and epsilon.
func how(knobs *Node) gfn.Behaviour {
	one := func(i int) *Node { return Squeeze(SliceAxis(knobs, 0, AxisElem(i)), 0) }
	return gfn.Behaviour{Beta: one(0), Epsilon: one(1)}
}

func (e *gflownet) knobs() []float32 {
	return []float32{float32(1 / e.Temperature), float32(e.Epsilon)}
}

// rewards returns log R [B] of whole trees and the scores of their nodes [B,G], from potentials, lengths, the prior (parameters and
// one over its temperature) and a forest.
func (e *gflownet) rewards(in []*Node) []*Node {
	q := grammar.Potentials{Root: in[0], Rules: in[1], Terms: in[2], Lengths: in[3]}
	z := forest.FromState(gfn.State(in[judgesSize:])).Trees()
	s := q.ScoreTrees(z)
	logR := Add(ReduceSum(s.Nodes, 1), s.Root)
	if e.EBM {
		logR = Sub(logR, Mul(ConvertDType(in[5], logR.DType()), ConvertDType(energies(in[4], z, in[3]), logR.DType())))
	}
	return []*Node{logR, s.Nodes}
}

// setOut begins an iteration: a key, knobs, words, lengths, and dreams as leaves, lengths and trees. Dreams are taken apart by the policy
// as it is, without exploring.
func (e *gflownet) setOut(in []*Node) forest.Journey {
	scope := e.store.Scope(phi)
	up := e.net.Begin(scope, in[2], in[3])
	z := grammar.Trees{Left: in[6], Right: in[7], Label: in[8]}
	down := e.net.Embed(scope, forest.FromTrees(z, in[5]), in[4])
	back := Concatenate([]*Node{ZerosLike(in[3]), MinScalar(SubScalar(in[5], 1), e.DreamSteps)}, 0)
	awake := Equal(back, ZerosLike(back))
	explore := how(in[1])
	explore.Beta = Where(awake, explore.Beta, OnesLike(explore.Beta))
	explore.Epsilon = Where(awake, explore.Epsilon, ZerosLike(explore.Epsilon))
	return e.net.SetOut(forest.Together(up, down), rng.In(in[0]), back, awake, explore)
}
