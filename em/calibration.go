package em

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/rng"
)

// Calibrate says how the calibration of a posterior is measured: by simulation (Cook, Gelman, Rubin, "Validation of
// Software for Bayesian Models Using Posterior Quantiles", 2006; Talts, Betancourt, Simpson, Vehtari, Gelman, "Validating
// Bayesian Inference Algorithms with Simulation-Based Calibration", 2018).
//
// If (x,z) is drawn from the model and q(z|x) is its posterior, then z and samples of q are exchangeable given x, and the
// rank of any number computed of z, among those of the samples, is uniform. Ties, of which discrete latents have many, are
// broken at random.
type Calibrate struct {
	Pairs   int     // (x,z) of the model; 0 means 1000
	Samples int     // of q for each; 0 means 63
	Bins    int     // of ranks, which divide Samples+1; 0 means 16
	Alarm   float64 // how often at most a right posterior is called wrong; 0 means 1e-4
	// Statistics are ranked besides every entry of z and log p(x,z).
	Statistics []Statistic
}

// Statistic is a number of a latent and its observation.
type Statistic struct {
	Name string
	Of   func(theta *model.Scope, x gfn.Batch, z gfn.State) *Node // [B]
}

// Calibration is how far a posterior is from that of its model.
type Calibration struct {
	Pairs, Samples int
	Alarm          float64 // the rate of false alarms, at most
	Ranks          []Ranks // by statistic: log p(x,z), those of the user, the entries of z
}

// Ranks are those of a statistic.
type Ranks struct {
	Name   string
	Counts []int // by bin, from low ranks to high ones
	// Mean rank, from 0 to 1; below 1/2 if samples of q are greater than latents of the model.
	Mean float64
	// P is how probable such counts, or less even ones, are at most if ranks are uniform.
	P float64
}

func (c Calibrate) withDefaults() (Calibrate, error) {
	c.Pairs, c.Samples, c.Bins = orDefault(c.Pairs, 1000), orDefault(c.Samples, 63), orDefault(c.Bins, 16)
	if c.Alarm == 0 {
		c.Alarm = 1e-4
	}
	switch {
	case c.Pairs < 1 || c.Samples < 1 || c.Bins < 2:
		return c, fmt.Errorf("%d pairs with %d samples in %d bins: it takes 1, 1 and 2 at least", c.Pairs, c.Samples, c.Bins)
	case (c.Samples+1)%c.Bins != 0:
		return c, fmt.Errorf("%d samples have %d ranks, which %d bins do not divide", c.Samples, c.Samples+1, c.Bins)
	case !(c.Alarm > 0 && c.Alarm < 1):
		return c, fmt.Errorf("a rate of false alarms of %g is not between 0 and 1", c.Alarm)
	}
	for _, s := range c.Statistics {
		if s.Name == "" || s.Of == nil {
			return c, fmt.Errorf("statistic %q lacks a name or a function", s.Name)
		}
	}
	return c, nil
}

// Check returns what is wrong with it.
func (c Calibrate) Check() error {
	_, err := c.withDefaults()
	return err
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// Calibrate measures the calibration of the posterior on pairs drawn from the model as it is.
func (p *Posterior) Calibrate(c Calibrate) (*Calibration, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, blame.Caller(fmt.Errorf("calibration: %w", err))
	}
	out, err := p.calibrate(c)
	if err != nil {
		return nil, fmt.Errorf("calibration: %w", err)
	}
	return out, nil
}

func (p *Posterior) calibrate(c Calibrate) (*Calibration, error) {
	set := program.NewSet(p.programs.Backend, p.g.store)
	defer set.Close()
	ranked := program.New[rankIn[host], rankTensors](set, "calibration", func(in rankIn[*Node]) rankNodes {
		return p.rankGraph(in, c.Statistics)
	})
	most := orDefault(p.Rows, defaultRows)
	in := rankIn[host]{Pairs: min(max(most/(c.Samples+1), 1), c.Pairs), Samples: c.Samples}
	var names []string
	var counts [][]int // by statistic and rank
	for done, call := 0, uint64(0); done < c.Pairs; done, call = done+in.Pairs, call+1 {
		in.Key = rng.Key(p.Seed, "calibration", call)
		var out rankTensors
		if err := p.unchanged(func() (err error) {
			out, err = ranked.Call(in)
			return err
		}); err != nil {
			return nil, err
		}
		if err := p.g.dreaming(in.Pairs).err(out.Strays); err != nil {
			return nil, err
		}
		if names == nil {
			names = c.names(out.Z)
			counts = make([][]int, len(names))
			for i := range counts {
				counts[i] = make([]int, c.Samples+1)
			}
		}
		ties := rng.New(p.Seed, "calibration ties", call)
		values, same := numbers(out.Values), tensors.MustCopyFlatData[int32](out.Same)
		for pair := range min(in.Pairs, c.Pairs-done) {
			first := pair * (c.Samples + 1) * len(names)
			for i, name := range names {
				of := func(row int) float64 { return values[first+row*len(names)+i] }
				less, tied := 0, 0
				for k := range c.Samples {
					switch v := of(k + 1); {
					case math.IsNaN(v) || math.IsNaN(of(0)):
						return nil, fmt.Errorf("%s is not a number", name)
					case v == of(0) || same[pair*c.Samples+k] == 1: // equal latents, whatever rounding makes of them
						tied++
					case v < of(0):
						less++
					}
				}
				counts[i][less+ties.IntN(tied+1)]++
			}
		}
	}
	return c.calibration(names, counts), nil
}

// names are those of the statistics, of latents like these.
func (c Calibrate) names(z []*tensors.Tensor) []string {
	names := []string{"log p(x,z)"}
	for _, s := range c.Statistics {
		names = append(names, s.Name)
	}
	for i, t := range z {
		tensor := "z"
		if len(z) > 1 {
			tensor = fmt.Sprintf("z%d", i)
		}
		dims := t.Shape().Dimensions[1:]
		for k := range t.Shape().Size() / t.Shape().Dim(0) {
			at := make([]int, len(dims))
			for d, rest := len(dims)-1, k; d >= 0; d-- {
				at[d], rest = rest%dims[d], rest/dims[d]
			}
			names = append(names, tensor+fmt.Sprint(at))
		}
	}
	return names
}

// rankIn says how many pairs are drawn, and how many samples of each.
type rankIn[T any] struct {
	Pairs, Samples int
	Key            T
}

// ranked are the statistics of latents, first the model's, then the samples, [Pairs*(1+Samples),S], and whether samples
// are equal to the model's latent, [Pairs*Samples].
type ranked[L ~[]T, T, C any] struct {
	Values, Same T
	Z            L // the model's
	Strays       strays[C]
}

type (
	rankTensors = ranked[[]host, host, int]
	rankNodes   = ranked[gfn.State, *Node, *Node]
)

// dreaming is g with another number of pairs to dream.
func (g *graphs) dreaming(pairs int) *graphs {
	other := *g
	other.Sleep.Batch = pairs
	return &other
}

func (p *Posterior) rankGraph(in rankIn[*Node], statistics []Statistic) (out rankNodes) {
	g, r := p.g.dreaming(in.Pairs), rng.In(in.Key)
	x, z := g.dream(r)
	start, u := p.start(x), g.encode(x)
	samples := g.net().Rollout(r, u.Repeat(in.Samples), start.Repeat(in.Samples), gfn.Behaviour{}).Last()
	all := make(gfn.State, len(z))
	for i := range z {
		dims := z[i].Shape().Dimensions
		wide := func(t *Node, k int) *Node { return Reshape(t, append([]int{in.Pairs, k}, dims[1:]...)...) }
		joined := Concatenate([]*Node{wide(z[i], 1), wide(samples[i], in.Samples)}, 1)
		all[i] = Reshape(joined, append([]int{in.Pairs * (1 + in.Samples)}, dims[1:]...)...)
	}
	many := x.Repeat(1 + in.Samples)
	columns := []*Node{InsertAxes(g.logJoint(many, all), 1)}
	for _, s := range statistics {
		value := blame.Field(s.Of, "Statistic "+s.Name).Floats(s.Of(g.theta(), many, all), many.Size())
		columns = append(columns, InsertAxes(value, 1))
	}
	for _, t := range all {
		columns = append(columns, Reshape(t, many.Size(), -1))
	}
	for i := range columns {
		columns[i] = double(columns[i])
	}
	out.Values, out.Z = Concatenate(columns, 1), z
	out.Same = ConvertDType(sameRows(samples, z.Repeat(in.Samples)), dtypes.Int32)
	out.Strays = g.straysOf(x, g.net().Backtrack(r, u, z, nil, gfn.Behaviour{}))
	out.Strays.Unfinished = g.unfinished(samples)
	return out
}

// sameRows marks the rows in which all tensors of two states are equal, [B].
func sameRows(a, b gfn.State) *Node {
	equal := make([]*Node, len(a))
	for i := range a {
		equal[i] = Reshape(Equal(a[i], b[i]), a[i].Shape().Dim(0), -1)
	}
	return LogicalAll(Concatenate(equal, 1), 1)
}

// calibration sums ranks up.
func (c Calibrate) calibration(names []string, counts [][]int) *Calibration {
	out := &Calibration{Pairs: c.Pairs, Samples: c.Samples, Alarm: c.Alarm}
	for i, name := range names {
		r := Ranks{Name: name, Counts: make([]int, c.Bins)}
		for rank, n := range counts[i] {
			r.Counts[rank*c.Bins/(c.Samples+1)] += n
			r.Mean += float64(rank) * float64(n) / float64(c.Samples*c.Pairs)
		}
		r.P = uneven(r.Counts)
		out.Ranks = append(out.Ranks, r)
	}
	return out
}

// P is how probable such ranks, or less even ones, are at most if the posterior is right: Bonferroni's correction of those
// of the statistics.
func (c *Calibration) P() float64 {
	least := 1.0
	for _, r := range c.Ranks {
		least = min(least, r.P)
	}
	return min(1, least*float64(len(c.Ranks)))
}

// OK says whether all ranks may be uniform. It is false of a right posterior with probability Alarm at most.
func (c *Calibration) OK() bool { return c.P() >= c.Alarm }

// Print writes the verdict, and a line for each statistic.
func (c *Calibration) Print(w io.Writer) error {
	verdict := "may be right"
	if !c.OK() {
		verdict = "is not that of the model"
	}
	_, err := fmt.Fprintf(w, "q(z|x) %s: ranks of %d statistics on %d pairs of the model among %d samples each, p = %.2g "+
		"(false alarms %g)\n", verdict, len(c.Ranks), c.Pairs, c.Samples, c.P(), c.Alarm)
	for _, r := range c.Ranks {
		if err == nil {
			_, err = fmt.Fprintf(w, "  %-20s mean rank %.3f  p = %.2g\n", r.Name, r.Mean, r.P)
		}
	}
	return err
}

// shownRanks is the greatest number of histograms in a picture.
const shownRanks = 12

// Picture shows the ranks of the statistics, the least even ones if there are many.
func (c *Calibration) Picture() report.Named {
	shown := slices.Clone(c.Ranks)
	slices.SortStableFunc(shown, func(a, b Ranks) int {
		return cmp.Compare(a.P, b.P)
	})
	shown = shown[:min(len(shown), shownRanks)]
	var panels []report.Panel
	for _, r := range shown {
		low, high := band(c.Pairs, len(r.Counts), c.Alarm/float64(len(c.Ranks)))
		panels = append(panels, report.Ranks{
			Axes: report.Axes{Title: r.Name, X: report.Axis{Label: "rank"}}, Counts: r.Counts, Low: low, High: high,
		})
	}
	caption := fmt.Sprintf("Calibration of q(z|x): ranks of latents of the model among %d samples of q, on %d pairs; %d of %d "+
		"statistics, the least even ones first. Ranks are uniform if q is right. Bars outside of the band, or neighbours that are "+
		"together too high or too low, are a false alarm in at most %g of all cases. p = %.2g.",
		c.Samples, c.Pairs, len(shown), len(c.Ranks), c.Alarm, c.P())
	return report.Named{Name: "calibration", Caption: caption, Figure: report.Figure{
		Panels: slices.Collect(slices.Chunk(panels, 4)), Shared: true,
	}}
}
