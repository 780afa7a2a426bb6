package mixture

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
)

// Data is a sample of the true model.
type Data struct {
	X []Point // the points, all a method may see
	Z []Pair  // the latent that generated each of them
}

// Sample draws n independent points of the true model.
func (p Problem) Sample(n int, r *rand.Rand) Data {
	p = p.filled()
	centres := p.Centres(p.TrueMeans())
	d := Data{X: make([]Point, n), Z: make([]Pair, n)}
	for k := range n {
		z := Pair{r.IntN(p.Super), r.IntN(p.Petals)}
		c := centres[z.I*p.Petals+z.J]
		d.X[k] = Point{c[0] + p.Sigma*r.NormFloat64(), c[1] + p.Sigma*r.NormFloat64()}
		d.Z[k] = z
	}
	return d
}

// Start draws s initial means independently and uniformly from the points x, with replacement.
//
// The published code draws them from another data set than the one it fits, the paper from the same; over data sets
// the two are alike in all but the chance of starting exactly on a point.
func Start(x []Point, s int, r *rand.Rand) Means {
	mu := make(Means, s)
	for i := range mu {
		mu[i] = x[r.IntN(len(x))]
	}
	return mu
}

// hash names the points and their hash.
func (d Data) hash() map[string]string {
	h := sha256.New()
	for _, p := range d.X {
		fmt.Fprintf(h, "%x %x\n", p[0], p[1])
	}
	return map[string]string{"points": hex.EncodeToString(h.Sum(nil))}
}
