package grammar

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Trees come as often as their probabilities say: a frequency is off by more than 5 deviations once in 1.7 million
// draws of the seed, and there are 144 trees, so that the test fails by chance once in 12,000 runs. It sees it when
// half of the trees that branch to the right are missing.
func TestDraw(t *testing.T) {
	for _, kind := range []Kind{CFG, NCFG} {
		g := New(kind, []string{"A", "B"}, []string{"T"}, []string{"a", "b"})
		seed := rand.Uint64()
		t.Log("seed", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		for _, rows := range []struct {
			p    []float64
			size int
		}{{g.Root, 2}, {g.Rules, 9}, {g.Emit, 2}} {
			for at := 0; at < len(rows.p); at += rows.size {
				total := 0.0
				for i := range rows.size {
					rows.p[at+i] = 0.1 + r.Float64()
					total += rows.p[at+i]
				}
				for i := range rows.size {
					rows.p[at+i] /= total
				}
			}
		}
		type tree struct {
			n    int
			logP float64
		}
		const draws, longest = 200_000, 3
		count := func(keep func(*Drawn) bool) (map[string]tree, int) {
			seen, kept := map[string]tree{}, 0
			for range draws {
				d := g.Draw(r, longest)
				if d == nil || !keep(d) {
					continue
				}
				if err := d.Tree.Check(); err != nil {
					t.Fatal(err)
				}
				kept++
				words := make([]string, len(d.Words))
				for i, w := range d.Words {
					words[i] = g.Words[w]
				}
				name := g.Format(d.Tree, words)
				seen[name] = tree{seen[name].n + 1, d.LogP}
			}
			return seen, kept
		}
		fair := func(seen map[string]tree) bool {
			for _, x := range seen {
				p := math.Exp(x.logP)
				if math.Abs(float64(x.n)-draws*p) > 5*math.Sqrt(draws*p*(1-p))+1 {
					return false
				}
			}
			return true
		}
		if seen, kept := count(func(*Drawn) bool { return true }); !fair(seen) || kept == draws || kept == 0 {
			t.Errorf("%s: %d trees of %d draws", kind, len(seen), kept)
		}
		if seen, _ := count(func(d *Drawn) bool { return d.Tree.Words() < 3 || d.Tree.Left[1] >= 3 || r.IntN(2) == 0 }); fair(seen) {
			t.Errorf("%s: half of the trees that branch to the right are missing, and nobody sees it", kind)
		}
	}
}
