package gfn

import "math"

// Internals that the tests of package gfn_test compare with.
var (
	SpanLoss    = spanLoss
	ChooseState = chooseState
)

// EUBO returns the expectation of ELBO over trajectories drawn backward by P_B from objects drawn in proportion to R,
// an upper bound of log Z.
func (d *DAG) EUBO(t Table, logR []float64) float64 {
	logZ := LogSumExp(logR)
	p := make([]float64, d.Len())
	sum := 0.0
	for i, s := range d.Objects {
		if p[s] = math.Exp(logR[i] - logZ); p[s] > 0 {
			sum += p[s] * logR[i]
		}
	}
	for i := len(d.Edges) - 1; i >= 0; i-- {
		e := d.Edges[i]
		if w := p[e.To] * math.Exp(t.LogPB[i]); w > 0 {
			sum += w * (t.LogPB[i] - t.LogPF[i])
			p[e.From] += w
		}
	}
	return sum
}
