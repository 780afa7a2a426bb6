// Package results makes tables of trainings of discrete VAEs: the published one, and what decoders and the means of
// learning are worth.
package results

import (
	"fmt"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/vae"
)

// table is a grid of trainings.
type table struct {
	name, title, lead string
	preset            string     // the default
	runs              int        // of each row, by default
	unless            config.Set // what all rows have unless somebody asks for something else
	timed             bool       // how long a minibatch takes is measured, too
	rows              []row
	columns           []column
	notes             []string
}

// row is a setting of a table.
type row struct {
	key, title string
	preset     string      // "" means the table's
	with       config.Set  // what makes it the row it is
	paper      report.Cell // as published, mean and deviation of five runs
	extra      bool        // made only if it is asked for
}

// tables lists all tables.
func tables() []table { return []table{published(), decoders(), ablation(), static()} }

// targets are the published test figures, by method and K.
var targets = map[string]map[int][2]float64{
	vae.MethodVQ:    {4: {86.36, 0.14}, 8: {80.84, 0.39}, 10: {82.96, 0.38}},
	vae.MethodGFN:   {4: {74.18, 0.41}, 8: {70.74, 0.99}, 10: {70.67, 0.72}},
	vae.MethodGD:    {4: {76.22, 0.58}, 8: {72.03, 0.98}, 10: {72.69, 1.56}},
	vae.MethodPrior: {4: {78.59, 1.48}, 8: {70.84, 1.06}, 10: {71.69, 1.90}},
}

// published is the table of Hu et al. (2023), and rows of preset quick, which two cores can make.
func published() table {
	t := table{
		name: "vae", title: "Discrete VAEs, −log p(x) of test images in nats",
		lead:    "VQ-VAE and GFlowNet-EM with grids of codes, beside the figures of Hu et al. (ICML 2023).",
		preset:  "paper",
		runs:    5, // as published
		columns: []column{paperColumn, publishedColumn, nllColumn, essColumn, runsColumn},
		notes: []string{
			"as published: a VQ-VAE's reconstruction + n log K, a bound; a GFlowNet's importance-weighted estimate", estimatorNote,
		},
	}
	for _, method := range vae.Methods() {
		for _, k := range []int{4, 8, 10} {
			target := targets[method][k]
			t.rows = append(t.rows, row{
				key: fmt.Sprintf("%s-%d", method, k), title: fmt.Sprintf("%s, K = %d", vae.Title(method), k),
				paper: report.MeanStd(target[0], target[1], 2),
				with:  config.Set{"method=" + method, fmt.Sprint("model.codes=", k)},
			})
		}
	}
	for _, method := range vae.Methods() {
		title := vae.Title(method) + ", preset quick"
		if method == vae.MethodGD || method == vae.MethodPrior {
			title += ": the best of drawn latents, not greedy ones"
		}
		t.rows = append(t.rows, row{
			key: "quick-" + method, title: title,
			preset: "quick", with: config.Set{"method=" + method}, extra: true,
		})
	}
	return t
}

const estimatorNote = "importance-weighted: the same estimator for all; for a VQ-VAE it draws from a GFlowNet posterior fitted to its decoder"

// compared are the columns of tables of ours.
func compared() []column {
	return []column{boundColumn, nllColumn, gapColumn, essColumn, parametersColumn, runsColumn}
}

// decoders compares the methods with the same decoders.
func decoders() table {
	const plain, norm = "model.norm=none", "model.norm=batch"
	return table{
		name: "vae-decoders", title: "VQ-VAE and GFlowNet-EM with the same decoders, −log p(x) in nats",
		lead: "Two methods, two decoders, one estimator.", preset: "best", runs: 3,
		columns: compared(), notes: []string{estimatorNote},
		rows: []row{
			{key: "vq-plain", title: "VQ-VAE", with: config.Set{"method=vq", plain}},
			{key: "gfn-plain", title: "GFlowNet-EM", with: config.Set{"method=gfn", plain}},
			{key: "vq-norm", title: "VQ-VAE", with: config.Set{"method=vq", norm}},
			{key: "gfn-norm", title: "GFlowNet-EM", with: config.Set{"method=gfn", norm}},
		},
	}
}

// ablation goes from GFlowNet-EM as published to preset best, step by step, and to what else may help, all for as many
// epochs. Settings are to be chosen by it, so that it is measured on validation images.
func ablation() table {
	as := config.Set{ // published
		"method=gfn-gd", "model.norm=none", "model.code_width=1", "policy.network=features", "policy.log_z=scalar", "wake.samples=1",
		"sleep.probability=0.3", "gate.turn=400", "mstep.latents=greedy",
	}
	t := table{
		name: "vae-ablation", title: "What the means of GFlowNet-EM are worth, −log p(x) of validation images in nats",
		lead: "From the published GFlowNet-EM to preset best, step by step.", preset: "best", runs: 3, timed: true,
		unless:  config.Set{"eval.on=validation", "eval.images=1000"},
		columns: append(compared(), timeColumn),
		notes: []string{
			estimatorNote, "as published, but for rates and epochs: all rows have those of preset best", "bound: −E[log p(x,z) − log q(z|x)]; bound less likelihood is the divergence from q(z|x) to the posterior, " +
				"as far as the samples see it", "ms: milliseconds of a minibatch, the mean of 40",
		},
	}
	add := func(key, title string, more ...string) {
		as = append(as, more...)
		t.rows = append(t.rows, row{key: key, title: title, with: append(config.Set{}, as...)})
	}
	aside := func(key, title string, more ...string) {
		t.rows = append(t.rows, row{key: key, title: title, with: append(append(config.Set{}, as...), more...)})
	}
	t.rows = append(t.rows, row{key: "vq", title: "VQ-VAE", with: config.Set{"method=vq"}})
	add("published", "GFlowNet-EM + GD as published, but for rates and epochs")
	add("both", "both updates on each minibatch", "gate.turn=0")
	add("norm", "batch norm in the decoder", "model.norm=batch")
	add("wide", "codes of 16 numbers", "model.code_width=16")
	add("attention", "a policy that attends", "policy.network=attention")
	add("samples", "8 latents of an image, VarGrad", "wake.samples=8", "policy.log_z=none")
	add("sleep", "sleep after each E-step", "sleep.probability=1")
	aside("best-of", "the best of the latents teaches", "mstep.latents=best")
	aside("chains", "drawn latents, 4 moves that persist", "method=gfn", "mstep.latents=drawn", "moves.count=4", "moves.steps=4", "moves.persist=true")
	add("weights", "all latents teach, by their weights", "mstep.latents=weighted", "method=gfn")
	aside("memory", "with 2 latents remembered", "wake.memory=2")
	aside("center", "from the centre out", "policy.order=center")
	aside("random", "in a random order", "policy.order=random")
	aside("plain", "without batch norm", "model.norm=none")
	aside("many", "32 latents of an image", "wake.samples=32")
	return t
}

// static is the fixed stochastic binarisation of the literature, with larger grids and a learned prior.
func static() table {
	return table{
		name: "vae-static", title: "Fixed stochastic binarisation of MNIST, 7x7 codes, K = 16, −log p(x) of test images in nats",
		lead:   "Beside 85.5 to 85.7 nats of two-layer models of binary latents, by VIMCO and by Concrete relaxations.",
		preset: "static", runs: 3, columns: compared(), notes: []string{estimatorNote},
		rows: []row{{key: "gfn-prior", title: "GFlowNet-EM, learned prior"}},
	}
}
