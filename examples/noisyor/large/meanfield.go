package main

import (
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
)

// # Mean field
//
// q(z|x) is a product over causes, fitted to each observation by coordinate ascent on the evidence lower bound
//
//	sum_g E log p(effects of group g | its causes) + E log p(z) - E log q(z).
//
// An expectation over the causes of a group is one over 32 patterns, so that the bound is exact.

// weigh returns the probabilities of the patterns of a group under q, where one of its causes is absent by all means;
// none if without is -1.
func (o observation) weigh(q []float64, g, without int) (p [patterns]float64) {
	p[0] = 1
	for j := range reach {
		if j == without {
			continue
		}
		on := q[o.place(g, j)]
		for k := range 1 << j {
			p[k|1<<j] = p[k] * on
			p[k] *= 1 - on
		}
	}
	return p
}

// logOdds of a cause are those that maximise the bound, given q of the others.
func (o observation) logOdds(q []float64, cause int) float64 {
	sum := float64(o.prior[cause])
	for j := range reach {
		g := (cause + j) % len(o.prior)
		table := &o.group[g]
		if o.plain[g] {
			sum += float64(table[1<<j] - table[0])
			continue
		}
		for k, p := range o.weigh(q, g, j) {
			if p > 0 {
				sum += p * float64(table[k|1<<j]-table[k])
			}
		}
	}
	return sum
}

// bound is the evidence lower bound.
func (o observation) bound(q []float64) (sum float64) {
	for g := range o.group {
		for k, p := range o.weigh(q, g, -1) {
			sum += p * float64(o.group[g][k])
		}
	}
	for cause, on := range q {
		prior := float64(o.prior[cause])
		sum += on*prior - softplus(prior) - entropic(on) - entropic(1-on)
	}
	return sum
}

// entropic is p log p.
func entropic(p float64) float64 {
	if p <= 0 {
		return 0
	}
	return p * math.Log(p)
}

// ascend improves q cause by cause until it stays.
func (o observation) ascend(q []float64) {
	for range 50 {
		moved := 0.0
		for cause := range q {
			on := sigmoid(o.logOdds(q, cause))
			moved = math.Max(moved, math.Abs(on-q[cause]))
			q[cause] = on
		}
		if moved < 1e-3 {
			return
		}
	}
}

// fit returns the better of two local maxima of the bound, and the bound: from the prior, and from where all causes have
// moved together for a while, so that none comes first.
func (o observation) fit() ([]float64, float64) {
	one, two := make([]float64, len(o.prior)), make([]float64, len(o.prior))
	for cause, l := range o.prior {
		one[cause] = sigmoid(float64(l))
	}
	copy(two, one)
	for range 10 {
		next := make([]float64, len(two))
		for cause, on := range two {
			next[cause] = on + 0.3*(sigmoid(o.logOdds(two, cause))-on)
		}
		two = next
	}
	o.ascend(one)
	o.ascend(two)
	first, second := o.bound(one), o.bound(two)
	if first > second {
		return one, first
	}
	return two, second
}

// fitted returns q of observations, [N,C], and the mean of their bounds.
func fitted(all []observation) (*tensors.Tensor, float64) {
	var wg sync.WaitGroup
	busy := make(chan struct{}, runtime.GOMAXPROCS(0))
	bounds := make([]float64, len(all))
	causes := len(all[0].prior)
	flat := make([]float32, len(all)*causes)
	for i, o := range all {
		wg.Go(func() {
			busy <- struct{}{}
			q, bound := o.fit()
			for cause, on := range q {
				flat[i*causes+cause] = float32(on)
			}
			bounds[i] = bound
			<-busy
		})
	}
	wg.Wait()
	mean := 0.0
	for _, b := range bounds {
		mean += b / float64(len(bounds))
	}
	return tensors.FromFlatDataAndDimensions(flat, len(all), causes), mean
}

// boundOf is the same bound in a graph, [N], for given q, [N,C].
func (m network) boundOf(theta *model.Scope, x, q *Node) *Node {
	p := InsertAxes(OnesLike(q), -1) // of patterns, [N,C,32] in the end
	for j := range reach {
		on := InsertAxes(turn(q, j), -1)
		p = Concatenate([]*Node{Mul(p, OneMinus(on)), Mul(p, on)}, 2)
	}
	prior := m.rates(theta, x.Graph()).prior
	logPrior := ReduceSum(Sub(Mul(q, prior), Softplus(prior)), 1)
	part := func(p *Node) *Node { return Mul(p, Log(MaxScalar(p, 1e-30))) }
	entropy := Neg(ReduceSum(Add(part(q), part(OneMinus(q))), 1))
	return Add(Add(logPrior, entropy), ReduceSum(Mul(p, m.tables(theta, x)), 1, 2))
}

// byMeanField learns the model by mean-field EM, and returns its bound on validation data.
func (e experiment) byMeanField(rate float64) (*model.Store, float64) {
	store := e.start()
	must(0, e.meanField(e.b, store, e.data(), rate, e.updates))
	_, bound := fitted(newTabler(e.b, store, e.network).of(e.validation))
	e.say("mean-field EM, rate %g: bound of validation data %.3f", rate, bound)
	return store, bound
}

// meanField trains the model with factorised posteriors.
func (m network) meanField(
	b compute.Backend, store *model.Store, data em.Data, rate float64, updates uint64,
) error {
	optimizer := adam(em.Theta, rate, updates)
	update, err := model.NewExec(b, store, func(_ *model.Scope, x, q, rates *Node) *Node {
		loss := Neg(ReduceAllMean(m.boundOf(store.Scope(em.Theta), x, q)))
		return optimizer.Minimize(store, loss, rates).OK
	})
	if err != nil {
		return err
	}
	tables := newTabler(b, store, m)
	for step := range updates {
		x := data(step)[0]
		q, _ := fitted(tables.of(x))
		ok, err := update.Call1(x, q, optimizer.Rates(step))
		if err != nil {
			return err
		}
		if !tensors.ToScalar[bool](ok) {
			return fmt.Errorf("mean field diverged at update %d", step)
		}
	}
	return nil
}
