package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/xslices"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/rng"
)

// # What replay and memory are worth
//
// The model stays at the truth, and q is trained on 50 observations, all of which are in every update, until the mean of its
// total variation from their exact posteriors is at most a given number. With 4 samples, 4 remembered latents and as many
// replayed as drawn, an update learns from twice as many trajectories as a plain one (from three times as many with both);
// so a plain one with 8 samples stands beside.

// partition is the policy with an estimate of log Z(x), for trajectory balance.
type partition struct{ policy }

var _ gfn.Partition = partition{}

func (partition) LogZ(phi *model.Scope, x gfn.Batch) *Node {
	return Squeeze(nn.MLP{Widths: []int{64, 1}}.Apply(phi.At("logZ"), x[0]), 1)
}

// setting is how q is trained.
type setting struct {
	objective gfn.Objective
	sleep     float64
	samples   int
	replay    bool
	memory    bool
}

// curve is the total variation after every so many updates.
type curve struct {
	every int
	tv    []float64
}

// reaches is the number of updates after which the total variation is at most that; 0 if it never was.
func (c curve) reaches(tv float64) int {
	for i, v := range c.tv {
		if v <= tv {
			return (i + 1) * c.every
		}
	}
	return 0
}

// keptData are observations of a seed's truth, and exact posteriors of held-out ones.
type keptData struct {
	seed  uint64
	store *model.Store // the truth
	x     []*tensors.Tensor
	dag   *gfn.DAG
	exact [][]float64 // posteriors, by observation and object of the DAG
}

func newKeptData(b compute.Backend, seed uint64, n int) keptData {
	d := keptData{seed: seed, store: nn.NewStore(seed)}
	d.x = must(lvm.Draw(b, d.store.Scope(em.Theta), noisyOR{}, rng.Key(seed, "kept"), n)).X
	d.dag = must(gfn.Enumerate(b, env, d.x, 1<<12))
	objects := latents(d.dag.ObjectStates())
	for _, l := range must(em.Classical{Model: noisyOR{}, Env: env}.Posteriors(b, d.store, d.x...)) {
		p := map[[causes]int32]float64{}
		for i, z := range latents(l.Z) {
			p[z] = l.P[i]
		}
		d.exact = append(d.exact, xslices.Map(objects, func(z [causes]int32) float64 { return p[z] }))
	}
	return d
}

// latents are the rows of a state.
func latents(z []*tensors.Tensor) (rows [][causes]int32) {
	for row := range slices.Chunk(tensors.MustCopyFlatData[int32](z[0]), causes) {
		rows = append(rows, [causes]int32(row))
	}
	return rows
}

// learn makes a number of E-updates, at a falling rate, and looks every so often.
func (d keptData) learn(b compute.Backend, s setting, updates, every int) curve {
	store := nn.NewStore(d.seed)
	rate := optim.Rate{Base: 0.01, Fall: optim.Fall{To: uint64(updates), End: 0.03}}
	spec := em.Spec{
		Model: noisyOR{}, Env: env, Policy: partition{}, Data: em.Full(d.x...), Seed: d.seed, Gate: em.Never,
		Wake: em.Wake{
			Objective: s.objective, Samples: s.samples,
			Optimizer: optim.Optimizer{Groups: []optim.Group{{Scope: em.Phi, Rate: rate}}},
		},
		Sleep: em.Sleep{Weight: s.sleep, Batch: 50},
	}
	if s.replay {
		spec.Wake.Replay = em.Replay{Size: 4000, Batch: s.samples * len(d.exact)}
	}
	if s.memory {
		spec.Wake.Memory = em.Memory{Latents: s.samples, Data: len(d.exact)}
	}
	learner := must(em.New(b, store, spec))
	defer learner.Close()
	c := curve{every: every}
	for i := range updates {
		must(learner.Step())
		if (i+1)%every != 0 {
			continue
		}
		var far float64
		for x, table := range must(d.dag.Tabulate(b, store, em.Phi, spec.Policy, d.x)) {
			far += gfn.TotalVariation(d.exact[x], d.dag.Terminating(table)) / float64(len(d.exact))
		}
		c.tv = append(c.tv, far)
		if far <= keptTargets[len(keptTargets)-1] {
			break
		}
	}
	return c
}

// keptTargets are the total variations that are waited for, in falling order.
var keptTargets = []float64{0.3, 0.2, 0.1}

// keeping is what q learns from besides fresh samples.
type keeping struct {
	name           string
	samples        int
	replay, memory bool
}

var keepings = []keeping{
	{"nothing", 4, false, false}, {"nothing, 8 samples", 8, false, false},
	{"memory", 4, false, true}, {"replay", 4, true, false}, {"both", 4, true, true},
}

// kept trains q with and without replay and memory on several seeds. It says how long it took, and draws the mean over the
// seeds until the first of them is at the last target.
func kept(b compute.Backend, first uint64, seeds, updates int) (*report.Table, report.Figure) {
	data := make([]keptData, seeds)
	for i := range data {
		data[i] = newKeptData(b, first+uint64(i), 50)
	}
	t := &report.Table{
		Title:   "E-updates until the total variation from the exact posterior is at most a number",
		Columns: report.Columns("objective", "sleep", "kept"),
		Notes: []string{fmt.Sprintf("seeds %d to %d: mean ± standard deviation; +n: n seeds needed more than %d and are not in "+
			"the mean", first, first+uint64(seeds)-1, updates)},
	}
	for _, tv := range keptTargets {
		t.Columns = append(t.Columns, report.Column{Name: fmt.Sprint(tv)})
	}
	var f report.Figure
	for _, o := range []struct {
		name string
		gfn.Objective
	}{{"TB", gfn.TB{}}, {"VarGrad", gfn.VarGrad{}}} {
		var panels []report.Panel
		for _, sleep := range []string{"no", "yes"} {
			p := report.Lines{Axes: report.Axes{
				Title: fmt.Sprintf("%s, sleep: %s", o.name, sleep),
				X:     report.Axis{Label: "E-updates", Log: true}, Y: report.Axis{Label: "total variation", Min: 0, Max: 1},
			}}
			for _, k := range keepings {
				if o.name == "VarGrad" && k.replay { // it compares trajectories of one observation
					continue
				}
				s := setting{o.Objective, map[string]float64{"yes": 1}[sleep], k.samples, k.replay, k.memory}
				curves := make([]curve, seeds)
				within(seeds, func(i int) { curves[i] = data[i].learn(b, s, updates, 20) })
				row := []report.Cell{report.Text(o.name), report.Text(sleep), report.Text(k.name)}
				for _, tv := range keptTargets {
					row = append(row, whenReached(curves, tv))
				}
				t.Add(row...)
				p.Series = append(p.Series, mean(k.name, curves))
			}
			panels = append(panels, p)
		}
		f.Panels = append(f.Panels, panels)
	}
	return t, f
}

// within does n things, as many at once as there are processors.
func within(n int, do func(i int)) {
	var wg sync.WaitGroup
	busy := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		busy <- struct{}{}
		wg.Go(func() {
			do(i)
			<-busy
		})
	}
	wg.Wait()
}

// mean is that of curves, as far as the shortest one goes.
func mean(name string, curves []curve) report.Series {
	s := report.Series{Name: name}
	for i := range slices.MinFunc(curves, func(a, b curve) int { return len(a.tv) - len(b.tv) }).tv {
		s.X = append(s.X, float64((i+1)*curves[0].every))
		s.Y = append(s.Y, stat.Mean(xslices.Map(curves, func(c curve) float64 { return c.tv[i] }), nil))
	}
	return s
}

// whenReached summarises the curves of seeds.
func whenReached(curves []curve, tv float64) report.Cell {
	var at []float64
	for _, c := range curves {
		if n := c.reaches(tv); n > 0 {
			at = append(at, float64(n))
		}
	}
	if late := len(curves) - len(at); late == len(curves) {
		return report.Cell{}
	} else if late > 0 {
		return report.Text(fmt.Sprintf("%.0f, +%d", stat.Mean(at, nil), late))
	}
	mean, std := stat.MeanStdDev(at, nil)
	return report.MeanStd(mean, std, 0)
}
