package vae

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/lvm/lvmtest"
)

func TestLaws(t *testing.T) {
	for name, m := range map[string]Model{
		"uniform": {Size: tiny(2)}, "learned": {Size: tiny(2), Learned: true},
		"codebook": {Size: tiny(3), Decoder: VQ{tiny(3)}},
	} {
		t.Run(name, func(t *testing.T) { lvmtest.Run(t, m, m.Env()) })
	}
}

// By enumeration, p(x) sums to one over all images, and p(z|x) over all latents; exact EM agrees.
func TestEvidence(t *testing.T) {
	b := open(t)
	seed := testkit.Seed(t)
	for _, learned := range []bool{false, true} {
		m := Model{Size: tiny(2), Learned: learned}
		store := newStore(seed)
		x := m.images()
		joints(t, b, store, m, x)
		sharpen(t, store, em.Theta, 2)
		total, mean := 0.0, 0.0
		for i, logP := range joints(t, b, store, m, x) {
			logX := gfn.LogSumExp(logP)
			total += math.Exp(logX)
			mean += logX / 16
			near(t, fmt.Sprintf("image %d: sum of posterior", i), sum(gfn.Normalise(logP)), 1, 1e-12)
		}
		near(t, "sum of p(x)", total, 1, 1e-12)
		exact, err := em.Classical{Model: m, Env: m.Env()}.LogLikelihood(b, store, x)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "mean log-likelihood", exact, mean, 1e-10)
	}
}

// divergences are the gradients of trajectory balance and of KL(q || posterior) by all variables.
type divergences[T any] struct{ Balance, KL []T }

// The expected gradient of on-policy trajectory balance is that of KL(q || posterior), times 2/n^2, whatever zeta is: by
// enumeration, for every variable of the policy but zeta.
func TestGradientIdentity(t *testing.T) {
	b := open(t)
	seed := testkit.Seed(t)
	for _, c := range []struct {
		dtype     dtypes.DType
		tolerance float64 // relative to the largest gradient, or to zeta, whose terms cancel
	}{{dtypes.Float64, 1e-10}, {dtypes.Float32, 1e-5}} {
		s := tiny(2)
		s.dtype = c.dtype
		m, p := Model{Size: s}, Policy{Size: s}
		n := float64(s.Positions())
		for _, zeta := range []float64{1, -3, 20} {
			store := newStore(seed)
			x := s.images(6)
			posteriors(t, b, store, p, x)
			sharpen(t, store, em.Phi, 2)
			joints(t, b, store, m, x)
			sharpen(t, store, em.Theta, 2)
			variable := store.GetVariable(em.Phi + "/" + zetaScope + "/zeta")
			value := tensors.FromValue(zeta)
			if c.dtype == dtypes.Float32 {
				value = tensors.FromValue(float32(zeta))
			}
			if err := variable.SetValue(value); err != nil {
				t.Fatal(err)
			}
			var paths []string
			out := call[divergences[*tensors.Tensor]](t, b, store, func(in example[*Node]) (out divergences[*Node]) {
				xs, zs := pairs(in.X, in.Z)
				logQ := logQ(p, store.Scope(em.Phi), xs, zs)
				logR := m.Reward(store.Scope(em.Theta), gfn.Batch{xs}, gfn.State{zs})
				q := StopGradient(Exp(logQ))
				path := gfn.Path{
					LogPF: InsertAxes(logQ, 1), LogPB: Zeros(logQ.Graph(), shapes.Make(logQ.DType(), logQ.Shape().Dim(0), 1)),
					LogR: logR, LogZ: p.LogZ(store.Scope(em.Phi), gfn.Batch{xs}),
				}
				balance := ReduceAllSum(Mul(q, perPosition{gfn.TB{}, s.Positions()}.Loss(path)))
				logX := Add(ReduceAllMax(logR), Log(ReduceAllSum(Exp(Sub(logR, ReduceAllMax(logR))))))
				kl := ReduceAllSum(Mul(Exp(logQ), Sub(logQ, StopGradient(Sub(logR, logX)))))
				paths, out.Balance = gradients(balance, store, em.Phi)
				_, out.KL = gradients(kl, store, em.Phi)
				return out
			}, example[*tensors.Tensor]{x, s.latents()})
			largest := 0.0
			for _, gradient := range out.KL {
				for _, v := range floats(t, gradient) {
					largest = max(largest, math.Abs(2/(n*n)*v))
				}
			}
			if largest < 1e-4 {
				t.Fatalf("gradients are at most %g: the test shows nothing", largest)
			}
			for i, path := range paths {
				if strings.HasSuffix(path, "zeta") {
					continue
				}
				balance, kl := floats(t, out.Balance[i]), floats(t, out.KL[i])
				for j := range balance {
					near(t, fmt.Sprintf("%s, zeta %g: gradient of %s", c.dtype, zeta, path), balance[j], 2/(n*n)*kl[j],
						c.tolerance*max(largest, math.Abs(zeta)/n))
				}
			}
			if !slices.Contains(paths, em.Phi+"/"+zetaScope+"/zeta") {
				t.Error("zeta is no variable")
			}
		}
	}
}
