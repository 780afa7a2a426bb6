package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/bench"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/report"
)

type benchCmd struct {
	Names []string `arg:"" name:"name" help:"What to measure: hypergrid, grammar, grammar-scaling, vae, or the workloads ${workloads}."`
	backendFlag
	For     time.Duration `help:"How long to repeat a step." default:"5s"`
	Against string        `help:"Measurements of another implementation, as --json prints them: print ratios." placeholder:"FILE" type:"path"`
	Profile bool          `help:"Print what each operation, or group of fused ones, costs (backend simd)."`
	NT      int           `help:"Nonterminals of inside." default:"30"`
	PT      int           `help:"Preterminals of inside." default:"60"`
	N       int           `help:"Words of a sentence of inside." default:"20"`
	Batch   int           `help:"Sentences of inside and grammar-scaling." default:"32"`
	Seed    uint64        `help:"Seed of hypergrid."`
	Preset  string        `help:"Configuration of grammar: paper or quick." default:"paper"`
	Set     []string      `help:"Change one key of the configuration of grammar; may be repeated." placeholder:"KEY=VALUE"`
	Words   int           `help:"Vocabulary of grammar." default:"9672"`
	Figure  string        `help:"Also draw grammar-scaling: NAME.svg and NAME.png." placeholder:"NAME" type:"path"`
	JSON    bool          `help:"Print one JSON object per measurement."`
}

// Help implements kong's detailed help.
func (benchCmd) Help() string {
	return `Examples:
  gfnem bench mixture                          median time of one training step
  gfnem bench hypergrid                        steps and time to learn the 8x8 hypergrid, by objective
  gfnem bench mlp transformer --json           the same for other programs to read
  gfnem bench vae-e --against torch.json       and how many times faster than there
  gfnem bench inside --nt 30 --pt 60 --n 20    the inside algorithm at a size of its own
  gfnem bench transformer --profile            where the time goes, against the peaks of this machine
  gfnem bench grammar --backend xla            iterations of GFlowNet-EM for grammars, at the paper's size
  gfnem bench vae --backend xla                updates of discrete VAEs and their likelihood, at the paper's size
  gfnem bench grammar-scaling --figure cost    trees by a GFlowNet and exact inference, against words and symbols`
}

// Run measures.
func (c benchCmd) Run(io console) error {
	for _, name := range c.Names {
		if !slices.Contains(bench.Names(), name) {
			return unknown("benchmark", name, bench.Names())
		}
	}
	if c.Profile && (c.JSON || c.Against != "") {
		return badinput.Errorf("--profile prints a table of its own: leave out --json and --against")
	}
	for _, name := range []string{"hypergrid", "grammar", "grammar-scaling", "vae"} {
		if c.Profile && slices.Contains(c.Names, name) {
			return badinput.Errorf("--profile shows the steps of a workload, and %s is none", name)
		}
	}
	var base bench.Baseline
	if c.Against != "" {
		var err error
		if base, err = bench.ReadBaseline(c.Against); err != nil {
			return badinput.Errorf("%w", err)
		}
	}
	if c.NT < 1 || c.PT < 1 || c.N < 2 || c.Batch < 1 {
		return badinput.Errorf("--nt %d --pt %d --n %d --batch %d: inside needs at least 1, 1, 2 and 1", c.NT, c.PT, c.N,
			c.Batch)
	}
	b, err := backend.Open(c.Backend)
	if err != nil {
		return badinput.Errorf("%w", err)
	}
	for _, name := range c.Names {
		switch {
		case name == "hypergrid":
			err = c.hypergrid(io, b)
		case name == "grammar":
			err = c.grammar(io, b)
		case name == "grammar-scaling":
			err = c.scaling(io, b)
		case name == "vae":
			err = c.vae(io, b)
		case c.Profile:
			err = c.profile(io, b, name)
		default:
			var m bench.Measurement
			if m, err = bench.Run(b, name, c.options()); err == nil {
				err = c.print(io, m, base)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c benchCmd) options() bench.Options {
	return bench.Options{
		For:    c.For,
		Inside: bench.InsideSize{Nonterminals: c.NT, Preterminals: c.PT, Words: c.N, Sentences: c.Batch},
	}
}

// vae prints the times of updates of discrete VAEs.
func (c benchCmd) vae(io console, b compute.Backend) error {
	return bench.RunVAE(b, c.For, func(v bench.VAE) error {
		if c.JSON {
			return printJSON(io.out, v)
		}
		if err := c.print(io, v.Measurement, nil); err != nil || v.Images == 0 {
			return err
		}
		_, err := fmt.Fprintf(io.out, "  with 5,000 samples, %.0f of them distinct, extrapolated from %d images to 10,000: %.0f s\n", v.Distinct, v.Images, v.AllS)
		return err
	})
}

// compared is a measurement beside that of another implementation.
type compared struct {
	bench.Measurement
	BaselineMS float64 `json:"baseline_ms,omitempty"`
	Ratio      float64 `json:"ratio,omitempty"`
}

func (c benchCmd) print(io console, m bench.Measurement, base bench.Baseline) error {
	x := compared{Measurement: m}
	if b, ok := base[m.Workload]; ok {
		x.BaselineMS, x.Ratio = b.MedianMS, b.MedianMS/m.MedianMS
	}
	if c.JSON {
		return printJSON(io.out, x)
	}
	ratio := ""
	if x.Ratio > 0 {
		ratio = fmt.Sprintf("; baseline %.3f ms, ratio %.2f", x.BaselineMS, x.Ratio)
	}
	_, err := fmt.Fprintf(io.out, "%-19s median %.3f ms, fastest %.3f ms, %d repetitions, %d threads%s\n",
		m.Workload, m.MedianMS, m.MinMS, m.Reps, m.Threads, ratio)
	return err
}

// profiled is the most rows of a profile; the rest is one row.
const profiled = 30

// profile prints what the steps of a workload cost.
func (c benchCmd) profile(io console, b compute.Backend, name string) error {
	m, costs, err := bench.Profile(b, name, c.options())
	if err != nil {
		return badinput.Errorf("%w", err)
	}
	peaks := engine.MeasurePeaks()
	var all time.Duration
	for _, s := range costs {
		all += s.Time
	}
	if rest := costs[min(profiled, len(costs)):]; len(rest) > 0 {
		sum := engine.Cost{What: fmt.Sprintf("%d others", len(rest))}
		for _, s := range rest {
			sum.Time += s.Time
			sum.Flops += s.Flops
			sum.Bytes += s.Bytes
		}
		costs = append(slices.Clone(costs[:profiled]), sum)
	}
	t := &report.Table{
		Title: fmt.Sprintf("%s: median %.3f ms, %d threads; peaks %.0f GFLOP/s, %.0f GB/s", name, m.MedianMS, m.Threads,
			peaks.Flops/1e9, peaks.Bytes/1e9),
		Columns: report.Columns("ms", "share", "GFLOP/s", "of peak", "GB/s", "of peak", "step"),
	}
	percent := func(x float64) report.Cell { return report.Text(fmt.Sprintf("%.0f %%", 100*x)) }
	for _, s := range costs {
		sec := max(s.Time, 1).Seconds()
		t.Add(report.Number(1e3*sec, 3), percent(float64(s.Time)/float64(max(all, 1))),
			report.Number(s.Flops/sec/1e9, 1), percent(s.Flops/sec/peaks.Flops),
			report.Number(s.Bytes/sec/1e9, 1), percent(s.Bytes/sec/peaks.Bytes), report.Text(shorten(s.What, 100)))
	}
	_, err = fmt.Fprintln(io.out, t)
	return err
}

// shorten cuts text that is longer than n.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.TrimRight(s[:n-3], " ,") + "..."
}

// hypergrid prints how fast each objective learns.
func (c benchCmd) hypergrid(io console, b compute.Backend) error {
	t := &report.Table{
		Title:   fmt.Sprintf("8x8 hypergrid to total variation %g", bench.HypergridTarget),
		Columns: report.Columns("objective", "steps", "seconds", "total variation"),
	}
	err := bench.RunHypergrid(b, c.Seed, func(h bench.Hypergrid) error {
		t.Add(report.Text(h.Objective), report.Int(h.Steps), report.Number(h.Seconds, 1), report.Number(h.TotalVariation, 4))
		if c.JSON {
			return printJSON(io.out, h)
		}
		return nil
	})
	if err != nil || c.JSON {
		return err
	}
	_, err = fmt.Fprintln(io.out, t)
	return err
}

// grammar prints how long iterations of GFlowNet-EM for grammars take, and what of that each program takes.
func (c benchCmd) grammar(io console, b compute.Backend) error {
	grammar, ok := induce.Task{}.Config(c.Preset).(*induce.Config)
	if !ok {
		return unknown("preset", c.Preset, induce.Task{}.Presets())
	}
	if err := config.Resolve(grammar, config.Set(c.Set)); err != nil {
		return err
	}
	if grammar.Fixed != "" {
		return badinput.Errorf(
			"bench grammar measures iterations that learn a grammar, and preset %s is given one: use paper or quick", c.Preset)
	}
	size := bench.GrammarSize{Config: *grammar, Words: c.Words}
	return bench.RunGrammar(b, size, c.For, func(g bench.Grammar) error {
		if c.JSON {
			return printJSON(io.out, g)
		}
		t := &report.Table{
			Title: fmt.Sprintf("iteration %s: median %.1f ms, fastest %.1f ms, %d repetitions; the first twelve, compilation included, took %.0f s",
				g.Iteration, g.MedianMS, g.MinMS, g.Reps, g.FirstS),
			Columns: report.Columns("program", "ms, median of 10 others, each waited for"),
		}
		for _, name := range slices.Sorted(maps.Keys(g.Parts)) {
			t.Add(report.Text(name), report.Number(g.Parts[name], 2))
		}
		_, err := fmt.Fprintln(io.out, t)
		return err
	})
}

// scaling prints what inference costs against the number of words and of symbols, as it is measured.
func (c benchCmd) scaling(io console, b compute.Backend) error {
	var all []bench.Scaling
	err := bench.RunScaling(b, c.Batch, c.For/5, func(s bench.Scaling) error {
		all = append(all, s)
		if c.JSON {
			return printJSON(io.out, s)
		}
		_, err := fmt.Fprintf(io.out, "%-27s %3d words %4d symbols: median %9.3f ms, fastest %9.3f ms for %d sentences\n",
			s.Method, s.Words, s.Symbols, s.MedianMS, s.MinMS, s.Batch)
		return err
	})
	if err == nil && c.Figure != "" {
		err = bench.ScalingFigure(all).Save(filepath.Dir(c.Figure), filepath.Base(c.Figure))
	}
	return err
}
