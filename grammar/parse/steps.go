package parse

import (
	"cmp"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// Step is one action of a GFlowNet that builds a tree: which neighbours it joined, and what else it could have done.
type Step struct {
	Chosen  Join
	Options []Join // the most probable first, the chosen one among them
}

// Join joins the two trees that meet at a gap, the place after the word of that number, under a label, -1 over shapes.
type Join struct {
	Gap, Label  int
	Probability float64
}

type (
	// stepIn is a forest from which an action is drawn.
	stepIn[T, S, L any] struct {
		Key      T
		Sentence S
		Forest   L
	}
	// stepOut is the action, the log-probabilities of all, [1,A], and the forest to which it leads.
	stepOut[T, L any] struct {
		LogP, Action T
		Next         L
	}
	stepTensors = stepIn[*tensors.Tensor, forest.SentenceTensors, []*tensors.Tensor]
	stepAnswers = stepOut[*tensors.Tensor, []*tensors.Tensor]
)

// Stepper draws trees step by step, with all probabilities on the way.
type Stepper struct {
	net   *GFlowNet
	start *program.Program[forest.SentenceTensors, startForest[[]*tensors.Tensor]]
	step  *program.Program[stepTensors, stepAnswers]
}

type startForest[L any] struct{ Forest L }

// Stepper returns the GFlowNet as one. Closing the GFlowNet closes it.
func (p *GFlowNet) Stepper() *Stepper {
	s := &Stepper{net: p}
	start := func(x forest.Sentences) startForest[gfn.State] {
		return startForest[gfn.State]{p.net.Env(x.Words.Shape().Dim(1)).Initial(x.Batch())}
	}
	s.start = program.New[forest.SentenceTensors, startForest[[]*tensors.Tensor]](p.net.Set, "first forest", start)
	s.step = program.New[stepTensors, stepAnswers](p.net.Set, "one step", s.graph)
	return s
}

func (s *Stepper) graph(in stepIn[*Node, forest.Sentences, gfn.State]) (out stepOut[*Node, gfn.State]) {
	env := s.net.net.Env(in.Sentence.Words.Shape().Dim(1))
	phi := s.net.net.Set.Store.Scope(em.Phi)
	h := forest.Policy{Network: s.net.net.Network}.Heads(phi, in.Sentence.Batch(), in.Forest, 1)
	log := gfn.Behaviour{}.LogProbs(h.Forward, env.Legal(in.Forest))
	action := rng.In(in.Key).Categorical(Exp(log))
	return stepOut[*Node, gfn.State]{ConvertDType(log, dtypes.Float64), action, env.Step(in.Forest, action)}
}

// Steps draws a tree of a sentence, and returns its actions in order, each with the most probable other ones, no
// more than most.
func (s *Stepper) Steps(sentence treebank.Sentence, most int, seed uint64) ([]Step, error) {
	n := len(sentence.Words)
	one := Batches{Rows: 1, Bucket: s.net.Bucket, Most: s.net.Longest()}
	x := one.Pad([]treebank.Sentence{sentence})
	labels := s.net.net.Env(x.Room()).Labels
	at, err := s.start.Call(x.SentenceTensors)
	if err != nil {
		return nil, err
	}
	var out []Step
	for t := range n - 1 {
		key := rng.Key(seed, "gfn/steps", uint64(t))
		y, err := s.step.Call(stepTensors{Key: key, Sentence: x.SentenceTensors, Forest: at.Forest})
		if err != nil {
			return nil, err
		}
		action := int(tensors.MustCopyFlatData[int32](y.Action)[0])
		step := Step{}
		for a, log := range tensors.MustCopyFlatData[float64](y.LogP) {
			if math.IsNaN(log) {
				return nil, ErrNotFinite
			}
			j := Join{Gap: a / labels, Label: a % labels, Probability: math.Exp(log)}
			if s.net.net.Grammar != nil {
				j.Label = -1
			}
			if a == action {
				step.Chosen = j
			}
			if j.Probability > 0 {
				step.Options = append(step.Options, j)
			}
		}
		slices.SortStableFunc(step.Options, func(a, b Join) int { return cmp.Compare(b.Probability, a.Probability) })
		if len(step.Options) > most {
			step.Options = step.Options[:most]
		}
		if !slices.Contains(step.Options, step.Chosen) {
			step.Options = append(step.Options, step.Chosen)
		}
		out = append(out, step)
		at.Forest = y.Next
	}
	return out, nil
}
