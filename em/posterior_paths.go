package em

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/rows"
	"github.com/gfnem/gfnem/rng"
)

// Probability is log q(z|x) of a latent, the sum over all paths t to z of P_F(t).
type Probability struct {
	LogQ float64
	// Exact says that z has a single path. Otherwise LogQ is the logarithm of an average of P_F(t)/P_B(t|z) over paths drawn
	// by P_B, which is below log q(z|x) in expectation, with a standard error to first order.
	Exact  bool
	StdErr float64
	Paths  int // that were drawn
}

// LogProb returns log q(z|x) of latents. There may be several of each observation: as many rows of z as of x, or n times
// as many, row b*n+i belonging to observation b. It is exact where a latent has one path, else estimated from Paths of
// them; LogProbs says which.
func (p *Posterior) LogProb(z []*tensors.Tensor, x ...*tensors.Tensor) ([]float64, error) {
	all, err := p.LogProbs(z, x...)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(all))
	for i, q := range all {
		out[i] = q.LogQ
	}
	return out, nil
}

// LogProbs returns what LogProb does, and how good it is.
func (p *Posterior) LogProbs(z []*tensors.Tensor, x ...*tensors.Tensor) ([]Probability, error) {
	out, err := p.logProbs(z, x)
	if err != nil {
		return nil, fmt.Errorf("probability of latents: %w", err)
	}
	return out, nil
}

func (p *Posterior) logProbs(z, x []*tensors.Tensor) ([]Probability, error) {
	all, err := p.batches(1, x)
	if err != nil {
		return nil, err
	}
	count, err := sharedRows("z", z)
	if err != nil {
		return nil, blame.Caller(err)
	}
	if count%all.observations != 0 {
		return nil, blame.Caller(fmt.Errorf("%d latents do not belong to %d observations, as many to each", count, all.observations))
	}
	// One path of each first: for most environments that is all there is.
	owner := make([]int, count)
	for i := range owner {
		owner[i] = i / (count / all.observations)
	}
	several, out := []int(nil), make([]Probability, count)
	if err := p.paths(1, rows.Take(all.x, owner), z, func(i int, e gfn.Estimate, single bool) {
		if out[i] = (Probability{e.LogZ, true, 0, 1}); !single {
			several = append(several, i)
		}
	}); err != nil || several == nil {
		return out, err
	}
	for i, at := range several {
		owner[i] = owner[at]
	}
	draws := orDefault(p.Paths, 256)
	x, z = rows.Take(all.x, owner[:len(several)]), rows.Take(z, several)
	return out, p.paths(draws, x, z, func(i int, e gfn.Estimate, _ bool) {
		out[several[i]] = Probability{e.LogZ, false, e.StdErr, draws}
	})
}

// paths draws n paths to each latent, to the observation of the same row, and says whether each has a single one.
func (p *Posterior) paths(n int, x, z []*tensors.Tensor, use func(i int, e gfn.Estimate, single bool)) error {
	all, err := p.apart(n, x)
	if err != nil {
		return err
	}
	return all.each(func(b batch) error {
		var single []int32
		own := rows.Take(z, b.padded())
		draw := func(call uint64, n int) ([][]float64, error) {
			key := rng.Key(p.Seed, "posterior paths", b.number, call)
			out, err := p.pathsOf(pathIn[host]{b.draws, key, b.x, own}, b)
			if err != nil {
				return nil, err
			}
			single = tensors.MustCopyFlatData[int32](out.Single)
			return b.split(numbers(out.LogRatio), n), nil
		}
		e, err := Draws{n, b.draws}.Estimates(len(b.rows), DrawerFunc(draw))
		for i := range e {
			use(b.rows[i], e[i], single[i*b.draws] == 1)
		}
		return err
	})
}

// pathIn is latents to which paths are drawn.
type pathIn[T any] struct {
	Each int
	Key  T
	X, Z []T
}

// paths are log P_F - log P_B of paths to latents, whether each path was the only one, whether the latent is terminal
// and the path began where no way leads back, and whether that is the initial state and all actions are legal, [B*Each].
type paths[T any] struct{ LogRatio, Single, Whole, Built T }

type (
	pathTensors = paths[*tensors.Tensor]
	pathNodes   = paths[*Node]
)

func (p *Posterior) pathGraph(in pathIn[*Node]) (out pathNodes) {
	net, x, z := p.g.net(), gfn.Batch(in.X), gfn.State(in.Z)
	start := p.start(x)
	blame.Like(blame.Argument("the list of latents"), z, start)
	z = z.Repeat(in.Each)
	tr := net.Backtrack(rng.In(in.Key), p.g.encode(x).Repeat(in.Each), z, nil, gfn.Behaviour{})
	s := net.Score(tr, gfn.Behaviour{})
	out.LogRatio = ReduceSum(Sub(double(s.LogPF), double(s.LogPB)), 1)
	whole := LogicalAnd(gfn.Terminal(p.g.Env, z), gfn.AtStart(p.g.Env, tr.States[0]))
	out.Whole = ConvertDType(whole, dtypes.Int32)
	built := LogicalAnd(net.Built(tr), gfn.Same(tr.States[0], start.Repeat(in.Each)))
	out.Built = ConvertDType(built, dtypes.Int32)
	single := OnesLike(out.Whole)
	for _, s := range tr.States[1:] {
		ways := ReduceSum(ConvertDType(p.g.Env.LegalBack(s), dtypes.Int32), 1)
		single = Mul(single, ConvertDType(LessOrEqual(ways, OnesLike(ways)), dtypes.Int32))
	}
	out.Single = single
	return out
}

// pathsOf calls the program and complains about latents that are none.
func (p *Posterior) pathsOf(in pathIn[host], b batch) (out pathTensors, err error) {
	err = p.unchanged(func() (err error) {
		out, err = p.path.Call(in)
		return err
	})
	if err != nil {
		return out, err
	}
	built := tensors.MustCopyFlatData[int32](out.Built)
	for i, whole := range tensors.MustCopyFlatData[int32](out.Whole) {
		switch {
		case whole == 1 && built[i] == 0:
			return out, blame.Caller(fmt.Errorf("latent %d cannot be built from the initial state that %T has for its "+
				"observation, by legal actions alone", b.row(i/in.Each), p.g.Env))
		case whole == 0:
			return out, blame.Caller(fmt.Errorf("latent %d is no terminal state of %T, or further than %d actions from the "+
				"initial one", b.row(i/in.Each), p.g.Env, p.g.Env.Steps()))
		}
	}
	for _, l := range numbers(out.LogRatio) {
		if math.IsNaN(l) || math.IsInf(l, 0) {
			return out, blame.Method(p.g.Policy, "Heads").Errorf(
				"gives a path to a latent the log-probability %g: the policy has diverged", l)
		}
	}
	return out, nil
}
