// Package vaecmd is discrete VAEs on the command line: the task with what it adds to a program, and the commands encode
// and decode.
package vaecmd

import (
	"fmt"
	"slices"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/vae/results"
)

// Task learns images as grids of codes, and has commands.
type Task struct{ results.Task }

var (
	_ run.Reproducer     = Task{}
	_ command.Commander  = Task{}
	_ command.Documented = Task{}
	_ command.Shortener  = Task{}
	_ command.Evaluator  = Task{}
	_ command.Sampler    = Task{}
)

// Commands implements command.Commander.
func (Task) Commands() any {
	return &struct {
		Encode encodeCmd `cmd:"" help:"Turn images into codes."`
		Decode decodeCmd `cmd:"" help:"Turn codes into images."`
	}{}
}

// Shortcuts implements command.Shortener.
func (Task) Shortcuts() []command.Shortcut {
	return []command.Shortcut{
		{Flag: "data", Key: "data", Placeholder: "DATA", Help: "digits, binarized or a folder of images"},
		{Flag: "method", Key: "method", Placeholder: "NAME", Help: "how to learn: vq, gfn, gfn-gd or gfn-gd-prior"},
		{Flag: "k", Key: "model.codes", Placeholder: "K", Help: "number of codes"},
	}
}

// Examples implements command.Documented.
func (Task) Examples(of string) []string {
	switch of {
	case "":
		return []string{
			"gfnem train vae --out runs/digits          handwritten digits as grids of codes",
			"gfnem sample runs/digits --out samples.png",
		}
	case "train":
		return []string{
			"gfnem train vae                                                 handwritten digits as grids of codes, a few minutes",
			"gfnem train vae --set mstep.latents=greedy --set gate.turn=20      E- and M-updates by turns, as published",
		}
	case "eval":
		return []string{
			"gfnem eval runs/digits --nll               a vae's likelihood; a GFlowNet posterior is fitted to a VQ-VAE's decoder first",
		}
	case "sample":
		return []string{
			"gfnem sample runs/digits --out samples.png",
			"gfnem sample runs/digits --count 1000 --seed 2 > codes.txt",
		}
	case "reproduce":
		return []string{
			"gfnem reproduce vae --rows vq-8,gfn-gd-8 --runs 1 --workers 1   on a GPU",
			"gfnem reproduce vae --rows quick-vq,quick-gfn-gd --runs 1       minutes, on a laptop",
		}
	}
	return nil
}

// Notes implements command.Documented.
func (Task) Notes(of string) string {
	if of == "sample" {
		return `Of images, latents are drawn from the prior and their codes printed, one a line; with --out their images are written instead.
Only a learned prior (--method gfn-gd-prior) gives images like those of the data: a uniform one also draws latents that no
image has.`
	}
	return ""
}

// EvalFlags implements command.Evaluator.
func (Task) EvalFlags() command.EvalFlags { return &evalFlags{} }

// evalFlags say whether and how a likelihood is estimated.
type evalFlags struct {
	NLL     bool `name:"nll" help:"Estimate the likelihood of a vae by importance sampling, which takes long."`
	Samples int  `help:"With --nll, latents per image (default: the run's eval.samples)."`
	Images  int  `help:"With --nll, the first so many test images (default: the run's eval.images)."`
	Fit     int  `help:"With --nll, updates of the posterior that is fitted to a VQ-VAE (default: the run's eval.fit_updates)."`
}

// Settings implements command.EvalFlags.
func (f *evalFlags) Settings(task run.Task) ([]string, error) {
	if f.Samples < 0 || f.Images < 0 || f.Fit < 0 {
		return nil, badinput.Errorf("--samples, --images and --fit cannot be negative")
	}
	if !f.NLL && (f.Samples > 0 || f.Images > 0 || f.Fit > 0) {
		return nil, badinput.Errorf("--samples, --images and --fit say how --nll estimates: give that, too")
	}
	if !slices.Contains(config.Keys(task.Config(task.Presets()[0])), "eval.nll") {
		if f.NLL {
			return nil, badinput.Errorf("--nll: the task %s has no likelihood to estimate", task.Name())
		}
		return nil, nil
	}
	out := []string{fmt.Sprintf("eval.nll=%v", f.NLL)}
	for _, one := range []struct {
		key   string
		value int
	}{{"eval.samples", f.Samples}, {"eval.images", f.Images}, {"eval.fit_updates", f.Fit}} {
		if one.value > 0 {
			out = append(out, fmt.Sprintf("%s=%d", one.key, one.value))
		}
	}
	return out, nil
}
