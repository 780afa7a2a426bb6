package main

import (
	"flag"
	"fmt"
	"log"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"context"
	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
	"sync"
	"time"
)

const (
	causes, effects = 10, 30
	float           = dtypes.Float32
)

type noisyOR struct{}

var _ lvm.Tabler = noisyOR{}

func param(scope *model.Scope, g *Graph, name string, dims ...int) *Node {
	return nn.Param(scope, g, float, name, 0.5, dims...)
}

// rates returns leak + z W, [K,30], positive: the probability that effect e stays away is exp(-rate_e).
func (noisyOR) rates(scope *model.Scope, z *Node) *Node {
	g := z.Graph()
	w := Exp(AddScalar(param(scope, g, "weights", causes, effects), -1))
	leak := AddScalar(Exp(AddScalar(param(scope, g, "leak", effects), -3)), 1e-3)
	a := Dot(ConvertDType(z, float), w).Product()
	return Add(a, ExpandLeftToRank(leak, 2))
}

// terms returns odds [K,30] and base [K] with log p(x,z) = x.odds + base.
func (m noisyOR) terms(scope *model.Scope, z *Node) (odds, base *Node) {
	a := m.rates(scope, z)
	odds = Add(a, Log(OneMinus(Exp(Neg(a)))))
	prior := AddScalar(param(scope, z.Graph(), "prior", causes), -1)
	logOff := ReduceAllSum(Neg(Softplus(prior)))
	base = Sub(Add(Squeeze(Dot(ConvertDType(z, float), InsertAxes(prior, 1)).Product(), 1), logOff), ReduceSum(a, 1))
	return odds, base
}

func (m noisyOR) LogJoint(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	odds, base := m.terms(scope, z[0])
	return Add(ReduceSum(Mul(x[0], odds), 1), base)
}

func (m noisyOR) LogJointTable(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	odds, base := m.terms(scope, z[0])
	t := DotGeneral(x[0], []int{1}, nil, odds, []int{1}, nil)
	return Add(t, ExpandLeftToRank(base, 2))
}

func (m noisyOR) Sample(scope *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	u := r.Uniform(float, n, causes)
	g := u.Graph()
	prior := AddScalar(param(scope, g, "prior", causes), -1)
	z := ConvertDType(LessThan(u, BroadcastToDims(InsertAxes(Sigmoid(prior), 0), n, causes)), dtypes.Int32)
	x := r.Bernoulli(OneMinus(Exp(Neg(m.rates(scope, z)))))
	return gfn.Batch{ConvertDType(x, float)}, gfn.State{z}
}

type policy struct{ hidden int }

func (p policy) Heads(scope *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	set := GreaterOrEqual(s[0], ZerosLike(s[0]))
	on := ConvertDType(GreaterThan(s[0], ZerosLike(s[0])), float)
	in := Concatenate([]*Node{x.Repeat(k)[0], on, ConvertDType(set, float)}, 1)
	w := []int{p.hidden, causes + 1}
	if *flayers == 2 {
		w = []int{p.hidden, p.hidden, causes + 1}
	}
	out := nn.MLP{Widths: w, Slope: 0.01}.Apply(scope, in)
	at := ReduceSum(ConvertDType(set, dtypes.Int32), 1)
	logit := InsertAxes(gfn.Pick(SliceAxis(out, 1, AxisRange(0, causes)), at), 1)
	return gfn.Heads{
		Forward: Concatenate([]*Node{ZerosLike(logit), logit}, 1),
		Flow:    Squeeze(SliceAxis(out, 1, AxisElem(causes)), 1),
	}
}

var (
	fwin     = flag.Int("win", 9, "")
	fshift   = flag.Int("shift", 3, "")
	fw       = flag.Float64("w", 1, "")
	fjit     = flag.Float64("jit", 0.5, "")
	fprior   = flag.Float64("prior", -1, "")
	fleak    = flag.Float64("leak", 0.05, "")
	fseed    = flag.Uint64("seed", 1, "")
	fn       = flag.Int("n", 2000, "")
	fupd     = flag.Uint64("upd", 500, "")
	fb       = flag.Int("b", 100, "")
	fnear    = flag.Float64("near", 0, "")
	frate    = flag.Float64("rate", 0.05, "")
	fdgp     = flag.String("dgp", "ring", "")
	fwhich   = flag.String("which", "em", "")
	fsweeps  = flag.Int("sweeps", 10, "")
	fhidden  = flag.Int("hidden", 64, "")
	flayers  = flag.Int("layers", 1, "")
	fqrate   = flag.Float64("qrate", 3e-3, "")
	fiters   = flag.Uint64("iters", 1000, "")
	fgb      = flag.Int("gb", 100, "")
	fsleep   = flag.Float64("sleep", 0, "")
	fmoves   = flag.Int("moves", 0, "")
	fmrate   = flag.Float64("mrate", 0.03, "")
	fes      = flag.Int("esteps", 1, "")
	ffirst   = flag.Int("first", 1, "")
	fsamp    = flag.Int("samp", 1, "")
	fmsamp   = flag.Int("msamp", 1, "")
	fobj     = flag.String("obj", "tb", "")
	feps     = flag.Float64("eps", 0, "")
	frescore = flag.Bool("rescore", false, "")
)

func makeTruth(seed uint64) *model.Store {
	s := model.NewStore()
	r := rng.New(seed, "truth")
	w := make([][]float32, causes)
	import_log := func(x float64) float32 { return float32(math.Log(x) + 1) }
	for k := range w {
		w[k] = make([]float32, effects)
		for e := range w[k] {
			w[k][e] = import_log(0.01)
		}
		switch *fdgp {
		case "ring":
			for i := range *fwin {
				e := (k**fshift + i) % effects
				w[k][e] = import_log(*fw * (1 + *fjit*(2*r.Float64()-1)))
			}
		case "rand":
			for e := range effects {
				if r.Float64() < float64(*fwin)/effects {
					w[k][e] = import_log(*fw * (1 + *fjit*(2*r.Float64()-1)))
				}
			}
		}
	}
	leak := make([]float32, effects)
	for e := range leak {
		leak[e] = float32(math.Log(*fleak) + 3)
	}
	prior := make([]float32, causes)
	for k := range prior {
		prior[k] = float32(*fprior + 1)
	}
	th := s.Scope(em.Theta)
	th.VariableWithValue("weights", w)
	th.VariableWithValue("leak", leak)
	th.VariableWithValue("prior", prior)
	return s
}

func draw(b compute.Backend, truth *model.Store, n int, key *tensors.Tensor) *tensors.Tensor {
	out, err := model.CallOnceN(b, truth, func(_ *model.Scope, key *Node) []*Node {
		x, _ := noisyOR{}.Sample(truth.Scope(em.Theta), rng.In(key), n)
		return x
	}, key)
	if err != nil {
		log.Fatal(err)
	}
	return out[0]
}

func start(truth *model.Store, seed uint64) *model.Store {
	s := model.NewStore()
	s.RootScope().SetParam(nn.SeedParam, seed)
	if *fnear > 0 {
		r := rng.New(seed, "near")
		for v := range truth.RootScope().IterVariables() {
			t, _ := v.MustValue().LocalClone()
			t.MustMutableFlatData(func(flat any) {
				f := flat.([]float32)
				for i := range f {
					f[i] += float32(*fnear * r.NormFloat64())
					f[i] = max(f[i], -2)
				}
			})
			if _, err := s.CreateVariable(v.Path(), t); err != nil {
				log.Fatal(err)
			}
		}
	}
	return s
}

func main() { flag.Parse(); main2() }

func main2() {
	b, err := backend.Open("go")
	if err != nil {
		log.Fatal(err)
	}
	seed := *fseed
	truth := makeTruth(seed)
	x, test := draw(b, truth, *fn, rng.Key(seed, "train")), draw(b, truth, 1000, rng.Key(seed, "test"))
	ref := em.Classical{Model: noisyOR{}, Env: envs.Uniform(causes, 2)}
	ll := func(s *model.Store, x *tensors.Tensor) float64 {
		v, err := ref.LogLikelihood(b, s, x)
		if err != nil {
			log.Fatal(err)
		}
		return v
	}
	xt := test
	fmt.Printf("seed %d true: test %.4f train %.4f\n", seed, ll(truth, test), ll(truth, x))
	_ = xt
	var wg sync.WaitGroup
	opt := func(rate float64, n uint64) optim.Optimizer {
		return optim.Optimizer{Groups: []optim.Group{{Scope: em.Theta, Rate: optim.Rate{Base: rate, Drops: []optim.Drop{{n * 6 / 10, 0.3}, {n * 8 / 10, 0.3}, {n * 9 / 10, 0.3}}}}}}
	}
	for _, w := range *fwhich {
		wg.Go(func() {
			t0 := time.Now()
			s := start(truth, seed)
			data, err := em.Shuffled(seed, *fb, x)
			if err != nil {
				log.Fatal(err)
			}
			c := em.Classical{Model: noisyOR{}, Env: envs.Uniform(causes, 2), Data: data, Sweeps: *fsweeps, Optimizer: opt(*frate, *fupd)}
			switch w {
			case 'e', 'm':
				if w == 'm' {
					c.Posterior = em.MeanField
				}
				bound, err := c.Train(b, s, *fupd)
				if err != nil {
					log.Fatal(err)
				}
				fmt.Printf("seed %d %c: bound %.4f test %.4f train %.4f  %.1fs\n", seed, w, bound, ll(s, test), ll(s, x), time.Since(t0).Seconds())
			case 'g':
				gdata, _ := em.Shuffled(seed, *fgb, x)
				var obj gfn.Objective
				switch *fobj {
				case "tb":
					obj = gfn.TB{}
				case "vg":
					obj = gfn.VarGrad{Samples: *fsamp}
				case "subtb":
					obj = gfn.SubTB{}
				case "db":
					obj = gfn.DB{}
				}
				n := *fiters
				qopt := opt(*fqrate, n)
				qopt.Groups[0].Scope = em.Phi
				var mavg, wavg, acc float64
				l, err := em.New(b, s, em.Spec{Model: noisyOR{}, Env: envs.Uniform(causes, 2), Policy: policy{*fhidden}, Data: gdata, Seed: seed,
					Wake:  em.Wake{Objective: obj, Samples: *fsamp, Optimizer: qopt, Epsilon: em.Constant(*feps), Rescore: *frescore},
					Sleep: em.Sleep{Weight: *fsleep, Batch: *fgb},
					Gate:  em.Gate{ESteps: *fes, First: *ffirst},
					MStep: em.MStep{Samples: *fmsamp, Moves: *fmoves, Optimizer: opt(*fmrate, n/uint64(*fes))},
				})
				if err != nil {
					log.Fatal(err)
				}
				err = l.Train(context.Background(), func(s em.State) bool { return s.Iteration >= n }, func(r em.Report) error {
					wavg += r.Wake.Loss
					if r.M != nil {
						mavg += r.M.Loss
						acc += r.Accepted
					}
					if k := r.State.Iteration; k%(n/10) == 0 {
						fmt.Printf("   %d wake %.3f M %.3f acc %.2f test %.4f  %.1fs\n", k, wavg/float64(n/10), mavg/float64(n/10), acc/float64(n/10), ll(s, test), time.Since(t0).Seconds())
						wavg, mavg, acc = 0, 0, 0
					}
					return nil
				})
				if err != nil {
					log.Fatal(err)
				}
				fmt.Printf("seed %d %c: test %.4f train %.4f  %.1fs\n", seed, w, ll(s, test), ll(s, x), time.Since(t0).Seconds())
			}
		})
	}
	wg.Wait()
}
