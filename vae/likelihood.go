package vae

import (
	"cmp"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/crash"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// NLL is an estimate of the negative log-likelihood by importance sampling, with what tells whether to trust it. All but the
// counts are means over images, in nats.
type NLL struct {
	Images  int `json:"images"`
	Samples int `json:"samples"` // latents per image
	// NLL is the mean of -log of the mean weight p(x,z)/q(z|x) of samples z of q, an upper bound in expectation.
	NLL float64 `json:"nll"`
	// StdErr is its standard error, as an estimate for all images of the kind.
	StdErr float64 `json:"std_err"`
	// SampleErr is the part of that which comes from sampling latents.
	SampleErr float64 `json:"sample_err"`
	// ELBO is the mean log-weight.
	ELBO float64 `json:"elbo"`
	// ESS is the effective sample size (sum w)^2 / sum w^2 of an image's weights.
	ESS float64 `json:"ess"`
	// Distinct is the number of different latents among an image's samples.
	Distinct float64 `json:"distinct"`
}

// encoder is a policy of what it encodes images to: q(z|x).
type encoder interface {
	gfn.Policy
	em.Encoder
}

// Likelihood estimates log p(x).
type Likelihood struct {
	Backend compute.Backend
	Store   *model.Store // the model's variables below em.Theta, the proposal's below em.Phi
	Model   Model
	// Proposal is the trained policy.
	Proposal encoder
	Samples  int // latents per image
	Seed     uint64
	// Draws and Decodes are the rows that programs work on at once; 0 means what suits the backend.
	Draws, Decodes int
	// Progress, if not nil, is told how many images are done.
	Progress func(done int)

	programs *program.Set
	propose  *program.Program[proposeIn[host], proposed[host]]
	score    *program.Program[scoreIn[host], scored[host]]
}

// proposeIn are images to draw latents for, and proposed the latents with log q(z|x).
type (
	proposeIn[T any] struct{ Key, X T }
	proposed[T any]  struct{ Codes, LogQ T }
)

// scoreIn are latents and the numbers of the images that they belong to, and scored log p(x,z).
type (
	scoreIn[T any] struct{ Codes, Owner, X T }
	scored[T any]  struct{ LogP T }
)

// Close releases the compiled programs.
func (l *Likelihood) Close() {
	if l.programs != nil {
		l.programs.Close()
	}
	l.programs = nil
}

// build prepares the two programs, between which the host leaves out repetitions.
func (l *Likelihood) build() {
	if l.programs != nil {
		return
	}
	small, large := 1<<13, 1<<7
	if l.Backend.Name() != "simd" && l.Backend.Name() != "go" {
		small, large = 1<<16, 1<<12
	}
	l.Draws, l.Decodes = cmp.Or(l.Draws, small), cmp.Or(l.Decodes, large)
	each, _ := l.shape()
	s := program.NewSet(l.Backend, l.Store)
	l.propose = program.New[proposeIn[host], proposed[host]](s, "propose", func(in proposeIn[*Node]) proposed[*Node] {
		net := gfn.Net{Env: l.Model.Env(), Policy: l.Proposal, Scope: l.Store.Scope(em.Phi)}
		u := l.Proposal.Encode(net.Scope, gfn.Batch{in.X}).Repeat(each)
		tr := net.Rollout(rng.In(in.Key), u, nil, gfn.Behaviour{})
		logQ := ConvertDType(net.ScoreSampled(tr, gfn.Behaviour{}).LogPF, dtypes.Float64)
		return proposed[*Node]{ConvertDType(tr.Last()[0], dtypes.Uint8), ReduceSum(logQ, 1)}
	})
	l.score = program.New[scoreIn[host], scored[host]](s, "score", func(in scoreIn[*Node]) scored[*Node] {
		z, x := ConvertDType(in.Codes, dtypes.Int32), Gather(in.X, InsertAxes(in.Owner, 1))
		logP := l.Model.LogJoint(l.Store.Scope(em.Theta), gfn.Batch{x}, gfn.State{z})
		return scored[*Node]{ConvertDType(logP, dtypes.Float64)}
	})
	l.programs = s
}

// shape is how many latents a call draws for each of how many images.
func (l *Likelihood) shape() (each, images int) {
	each = min(l.Samples, l.Draws)
	return each, max(1, l.Draws/each)
}

// Estimate measures images, of which take returns those of given numbers as a tensor [len(indices),H,W,1].
func (l *Likelihood) Estimate(count int, take func(indices []int) *tensors.Tensor) (NLL, error) {
	l.build()
	out := NLL{Images: count, Samples: l.Samples}
	var all []gfn.Estimate
	_, images := l.shape()
	err := chunks(count, images, func(indices []int, fresh int) error {
		few := func(uint64, int) ([][]float64, error) { return l.weights(take, indices, fresh, &out) }
		estimates, err := em.Draws{Count: l.Samples}.Estimates(fresh, em.DrawerFunc(few))
		if all = append(all, estimates...); err == nil && l.Progress != nil {
			l.Progress(len(all))
		}
		return err
	})
	if err != nil {
		return NLL{}, err
	}
	s := em.Summarise(all)
	out.NLL, out.StdErr, out.SampleErr, out.ELBO, out.ESS = -s.LogP, s.StdErr, s.SampleErr, s.ELBO, s.ESS
	return out, nil
}

// weights draws latents of a few images, scores those that differ, and counts them.
func (l *Likelihood) weights(
	take func([]int) *tensors.Tensor, indices []int, fresh int, count *NLL,
) (all [][]float64, err error) {
	drawn, err := l.draw(take(indices), indices)
	if err != nil {
		return nil, err
	}
	drawn = drawn[:fresh]
	var merging crash.Group
	for i := range drawn {
		merging.Go(func() { drawn[i].merge(l.Model.Positions()) })
	}
	merging.Wait()
	if err := l.scores(take(indices), drawn); err != nil {
		return nil, err
	}
	for _, d := range drawn {
		all = append(all, d.logWeights())
		count.Distinct += float64(len(d.distinct)) / float64(count.Images)
	}
	return all, nil
}

// samples are the latents drawn for one image.
type samples struct {
	codes []uint8   // one latent after the other
	logQ  []float64 // by sample

	distinct []Codes
	which    []int     // by sample: the latent in distinct
	logP     []float64 // by distinct latent: log p(x,z)
}

// draw samples latents of a few images.
func (l *Likelihood) draw(x *tensors.Tensor, indices []int) ([]samples, error) {
	each, images := l.shape()
	n := l.Model.Positions()
	if err := memory.Need("the latents of an image", images*l.Samples, latentBytes(n)); err != nil {
		return nil, err
	}
	drawn := make([]samples, images)
	for call, take := range (em.Draws{Count: l.Samples, AtOnce: each}).Calls() {
		key := rng.Key(l.Seed, "importance", uint64(indices[0]), call)
		out, err := l.propose.Call(proposeIn[host]{key, x})
		if err != nil {
			return nil, err
		}
		codes, logQ := tensors.MustCopyFlatData[uint8](out.Codes), tensors.MustCopyFlatData[float64](out.LogQ)
		for i := range drawn {
			drawn[i].codes = append(drawn[i].codes, codes[i*each*n:(i*each+take)*n]...)
			drawn[i].logQ = append(drawn[i].logQ, logQ[i*each:i*each+take]...)
		}
		out.Codes.FinalizeAll()
		out.LogQ.FinalizeAll()
	}
	return drawn, nil
}

// latentBytes is what a latent takes on the host, in lists and as a key.
func latentBytes(positions int) int { return 3*positions + 128 }

// merge finds the distinct latents.
func (s *samples) merge(positions int) {
	known := map[string]int{}
	s.which = make([]int, len(s.logQ))
	for i := range s.which {
		z := s.codes[i*positions : (i+1)*positions]
		k, ok := known[string(z)]
		if !ok {
			k = len(s.distinct)
			known[string(z)] = k
			s.distinct = append(s.distinct, z)
		}
		s.which[i] = k
	}
}

// logWeights are log p(x,z) - log q(z|x), by sample.
func (s *samples) logWeights() []float64 {
	w := make([]float64, len(s.logQ))
	for i := range w {
		w[i] = s.logP[s.which[i]] - s.logQ[i]
	}
	return w
}

// scores fills in log p(x,z) of the distinct latents of all images x.
func (l *Likelihood) scores(x *tensors.Tensor, drawn []samples) error {
	if err := x.ToDevice(l.Backend, 0); err != nil {
		return err
	}
	type place struct{ image, latent int }
	var all []place
	for i := range drawn {
		drawn[i].logP = make([]float64, len(drawn[i].distinct))
		for k := range drawn[i].distinct {
			all = append(all, place{i, k})
		}
	}
	return each(len(all), l.Decodes, l.score, func(indices []int) scoreIn[host] {
		var codes []uint8
		owner := make([]int32, len(indices))
		for i, k := range indices {
			codes = append(codes, drawn[all[k].image].distinct[all[k].latent]...)
			owner[i] = int32(all[k].image)
		}
		return scoreIn[host]{
			tensors.FromFlatDataAndDimensions(codes, len(indices), l.Model.Positions()),
			tensors.FromFlatDataAndDimensions(owner, len(indices)), x,
		}
	}, func(out scored[host], fresh []int) {
		logP := tensors.MustCopyFlatData[float64](out.LogP)
		for i, k := range fresh {
			drawn[all[k].image].logP[all[k].latent] = logP[i]
		}
		out.LogP.FinalizeAll()
	})
}
