package gfn_test

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// valued is trajectories, and what is computed from them.
type valued[T any] struct {
	By     taken[T]
	Values []T
}

// TestFormulas compares the value of every objective with its definition, written out on the host.
func TestFormulas(t *testing.T) {
	seed := testkit.Seed(t)
	const rows = 24
	p := newProblem(t, envs.Hypergrid{Side: 4, Dims: 2}, seed)
	p.randomise(seed)
	run := compile[valued[*tensors.Tensor], none](t, p, func(x gfn.Batch, r *rng.Stream, _ none) valued[*Node] {
		net := p.net()
		tr := net.Rollout(r, x, nil, uniform(x[0].Graph()))
		s := net.Score(tr, gfn.Behaviour{})
		out := valued[*Node]{By: record(tr)}
		for _, ahead := range []bool{false, true} {
			for _, o := range objectives {
				out.Values = append(out.Values, o.loss.Loss(p.path(net, tr, s, ahead)))
			}
		}
		return out
	})
	res := numbers[valued[[]float64]](run(rows, rng.Key(seed, "formulas"), none{}))
	paths, out := follow(p.dag, res.By), res.Values
	now, logZ := p.current(), p.get("policy/logz")[0]
	square := func(x float64) float64 { return x * x }

	for k, partial := range [][]float64{make([]float64, p.dag.Len()), p.partial} {
		// logF and the sum of log P_F - log P_B at every state of a path.
		along := func(path []int) (logF, sofar []float64) {
			logF, sofar = []float64{now.Flow[0] + partial[0]}, []float64{0}
			for i, e := range path {
				to := p.dag.Edges[e].To
				logF = append(logF, now.Flow[to]+partial[to])
				sofar = append(sofar, sofar[i]+now.LogPF[e]-now.LogPB[e])
			}
			logF[len(path)] = p.logR[object(p.dag, path)]
			return logF, sofar
		}
		zeta := make([]float64, rows)
		for b, path := range paths {
			zeta[b] = p.logR[object(p.dag, path)] - total(now.LogPF, path) + total(now.LogPB, path)
		}
		spans := func(lambda float64) func(b int) float64 {
			return func(b int) float64 {
				logF, sofar := along(paths[b])
				var sum, weights float64
				for i := range logF {
					for j := i + 1; j < len(logF); j++ {
						w := math.Pow(lambda, float64(j-i))
						sum += w * square(logF[i]+sofar[j]-sofar[i]-logF[j])
						weights += w
					}
				}
				return sum / weights
			}
		}
		around := func(b, size int) float64 { return mean(zeta[b/size*size : (b/size+1)*size]) }
		var sums summed
		for _, path := range paths {
			sums.logPF = append(sums.logPF, total(now.LogPF, path))
			sums.logPB = append(sums.logPB, total(now.LogPB, path))
			sums.logR = append(sums.logR, p.logR[object(p.dag, path)])
		}
		want := map[string]func(b int) float64{
			"TB": func(b int) float64 { return square(logZ - zeta[b]) },
			"DB": func(b int) float64 {
				logF, sofar := along(paths[b])
				sum := 0.0
				for i := range paths[b] {
					sum += square(logF[i] + sofar[i+1] - sofar[i] - logF[i+1])
				}
				return sum / float64(len(paths[b]))
			},
			"SubTB":        spans(1),
			"SubTB 0.9":    spans(0.9),
			"VarGrad":      func(b int) float64 { return square(zeta[b] - mean(zeta)) },
			"VarGrad of 4": func(b int) float64 { return square(zeta[b] - around(b, 4)) },
			"Likelihood":   func(b int) float64 { return -total(now.LogPF, paths[b]) },
		}
		for i, o := range objectives {
			values := make([]float64, rows)
			if f := surrogateOf(o.loss); f != nil {
				values = f(sums, sums)
			} else {
				for b := range values {
					values[b] = want[o.name](b)
				}
			}
			if d := farthest(out[k*len(objectives)+i], values); !(d < 1e-12) {
				t.Errorf("%s (forward-looking: %t) is off by %g", o.name, k == 1, d)
			}
		}
	}
}
