// Package mixture learns the hierarchical Gaussian mixture of Hu, Malkin, Jain, Everett, Graikos and Bengio,
// "GFlowNet-EM for Learning Compositional Latent Variable Models" (ICML 2023): a latent made of two choices, a
// supercluster i and a petal j, drawn independently and uniformly, and
//
//	x | i, j ~ Normal(mu_i + o_j, sigma² I)  in the plane.
//
// The petal offsets o_j, sigma and the priors are known; the supercluster means mu_i are learned. Given x the two
// choices are dependent, which is why a factorised posterior fails here:
//
//   - [ExactEM] enumerates the posterior over pairs;
//   - [MeanField] restricts it to q(i) q(j);
//   - [PerfectSampler] draws from it, as GFlowNet-EM would if its policy were trained to perfection.
//
// Axes, slowest first: n is a point, i a supercluster, j a petal. A table over pairs is flat, (i, j) at i*P + j for P
// petals. Log-likelihoods are in nats per point on the true scale unless their name says Published.
package mixture

import (
	"cmp"
	"math"
)

// The sizes of the paper's experiment.
const (
	DefaultPoints     = 4000
	DefaultIterations = 60
	DefaultRuns       = 20
)

// Point is a point of the plane.
type Point [2]float64

// Add returns a + b.
func (a Point) Add(b Point) Point { return Point{a[0] + b[0], a[1] + b[1]} }

// Sub returns a - b.
func (a Point) Sub(b Point) Point { return Point{a[0] - b[0], a[1] - b[1]} }

// Means are the supercluster means, the parameters of the model.
type Means []Point

// Pair is the latent of one point: supercluster I and petal J.
type Pair struct{ I, J int }

// Problem is what is known of the model. The zero value is the paper's: 4 superclusters, 4 petals, sigma 0.25.
//
// Methods that take means use as many superclusters as there are means; Super only says how many generate the data.
type Problem struct {
	// Super is the number of superclusters of the true model; 0 means 4.
	Super int `toml:"super" range:"1,64" was:"n_super" help:"superclusters"`
	// Petals per supercluster; 0 means 4.
	Petals int `toml:"petals" range:"1,64" was:"n_petals" help:"petals of each supercluster"`
	// Sigma is the standard deviation of each coordinate; 0 means 0.25. The paper's text says the points are
	// standard normal around their component; its code, and its figures, have 0.25.
	Sigma float64 `toml:"sigma" range:"1e-6,1e6" was:"sigma" help:"standard deviation of the points around their petal"`
}

// filled returns p with its defaults spelled out.
func (p Problem) filled() Problem {
	return Problem{Super: cmp.Or(p.Super, 4), Petals: cmp.Or(p.Petals, 4), Sigma: cmp.Or(p.Sigma, 0.25)}
}

// Offsets returns the P petal offsets, evenly spaced on the unit circle from half a step on: for four petals the
// diagonals (+,+), (-,+), (-,-), (+,-), in this order.
func (p Problem) Offsets() []Point {
	p = p.filled()
	o := make([]Point, p.Petals)
	for j := range o {
		o[j] = onCircle(1, j, p.Petals)
	}
	return o
}

// TrueMeans returns the means that generate the data: (-r,-r), (r,r), (r,-r), (-r,r) with r = √2 for the paper's
// four superclusters, so that the sixteen centres form a regular 4x4 grid of spacing √2.
//
// The paper has no other number. Here, one supercluster sits at the origin and S of them, evenly spaced on a circle
// from half a step on, keep the paper's distance 2√2 between neighbours.
func (p Problem) TrueMeans() Means {
	p = p.filled()
	switch p.Super {
	case 1:
		return Means{{0, 0}}
	case 4:
		const r = math.Sqrt2
		return Means{{-r, -r}, {r, r}, {r, -r}, {-r, r}}
	}
	radius := math.Sqrt2 / math.Sin(math.Pi/float64(p.Super))
	mu := make(Means, p.Super)
	for i := range mu {
		mu[i] = onCircle(radius, i, p.Super)
	}
	return mu
}

// onCircle returns the k-th of n points evenly spaced on a circle around the origin, from half a step on.
func onCircle(radius float64, k, n int) Point {
	sin, cos := math.Sincos((float64(k) + 0.5) * 2 * math.Pi / float64(n))
	return Point{radius * cos, radius * sin}
}

// Centres returns the component centres mu_i + o_j, (i, j) at i*P + j.
func (p Problem) Centres(mu Means) []Point {
	o := p.Offsets()
	c := make([]Point, 0, len(mu)*len(o))
	for _, m := range mu {
		for _, oj := range o {
			c = append(c, m.Add(oj))
		}
	}
	return c
}

// Figure2Means returns the means at which the paper's Figure 2 compares posteriors.
func Figure2Means() Means {
	return Means{
		{-2.47049352, 0.38887989}, {1.14934963, -0.60384374}, {-0.19642042, -1.42613101}, {0.21112086, 1.14786994},
	}
}
