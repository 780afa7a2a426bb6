// Command gfnem learns latent variable models with discrete, compositional latents by GFlowNet-EM.
package main

import (
	"github.com/gfnem/gfnem/bench"
	"github.com/gfnem/gfnem/cli"
	"github.com/gfnem/gfnem/grammar/grammarcmd"
	"github.com/gfnem/gfnem/mixture"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/vae/vaecmd"
)

var gfnem = cli.Program{
	Name:     "gfnem",
	Version:  cli.Version,
	About:    "Learn latent variable models p(z) p(x|z) with discrete, compositional latents by GFlowNet-EM.",
	Tasks:    []run.Task{mixture.Task{}, grammarcmd.Task{}, vaecmd.Task{}},
	Commands: []any{&bench.Commands{}},
}

func main() { gfnem.Main() }
