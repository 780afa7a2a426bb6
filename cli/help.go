package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/internal/self"
)

// document completes the help of a command and those below it: what tasks add, and the name of the program.
func (p Program) document(n *kong.Node, of string) {
	if detail, ok := p.detail(of); ok {
		n.Detail = detail
	}
	n.Detail, n.Help = self.Text(n.Detail), self.Text(n.Help)
	for _, f := range n.Flags {
		f.Help = self.Text(f.Help)
	}
	for _, a := range n.Positional {
		a.Help = self.Text(a.Help)
	}
	for _, below := range n.Children {
		p.document(below, strings.TrimSpace(of+" "+below.Name))
	}
}

// detail is the help of a command that every program has: examples, what it does, and what tasks say.
func (p Program) detail(of string) (string, bool) {
	own, ok := details[of]
	if !ok {
		return "", false
	}
	var examples, notes []string
	for _, t := range p.Tasks {
		if of == "config" {
			examples = append(examples, "gfnem config "+t.Name()+" > my.toml", "gfnem config "+t.Name()+" optim")
		} else if d, ok := t.(command.Documented); ok {
			examples = append(examples, d.Examples(of)...)
			if note := d.Notes(of); note != "" {
				notes = append(notes, note)
			}
		} else if of == "" || of == "train" {
			examples = append(examples, "gfnem train "+t.Name(), "gfnem train "+t.Name()+" --seed 7 --out runs/seven")
		}
	}
	if own.late {
		examples = append(examples, own.examples...)
	} else {
		examples = append(own.examples[:len(own.examples):len(own.examples)], examples...)
	}
	if len(p.Tasks) > 0 && len(examples) == 0 {
		examples = []string{fmt.Sprintf("gfnem %s", of)}
	}
	parts := append([]string{"Examples:\n  " + strings.Join(examples, "\n  "), own.text}, notes...)
	return strings.TrimRight(strings.Join(parts, "\n\n"), "\n"), true
}

// details are what is said of commands, besides what tasks say.
var details = map[string]struct {
	examples []string
	late     bool // the examples come after those of tasks
	text     string
}{
	"": {late: true, examples: []string{
		"gfnem resume runs/paper                    after Ctrl-C, a crash or a power cut",
		"gfnem eval runs/paper --json",
	}, text: `Exit codes: 0 done; 1 failed; 2 something that you can mend: a key, a file, too little memory; 3 interrupted, to be
resumed; 70 a mistake of this program.`},
	"train": {text: `The folder of a run holds run.toml (the configuration), run.json (where it came from), metrics.jsonl and
TensorBoard events, state/ (checkpoints), parameters.safetensors, figures and report.html.

Ctrl-C, or SIGTERM, saves and ends with exit code 3. A step that does not end within ten seconds is not waited for: the run goes
on from its last checkpoint, by "gfnem resume". A second signal ends the program at once.`},
	"sample": {text: command.FallbackHelp},
	"resume": {examples: []string{
		"gfnem resume runs/paper",
		"gfnem resume runs/paper --set updates=20000 --json     a finished run goes on",
	}, text: `A run that was killed and resumed ends with the same numbers as one that was not. Resuming a finished run
evaluates it and writes its report again.

With --set, run.toml gets the new value and changes.json says from which step on, by which command and program. How long a run
is trained, its learning rates and what is measured may change ("gfnem config TASK" marks these keys); what the checkpoint or
the data depend on may not. Schedules that move over the whole training follow its new length.`},
	"eval": {examples: []string{"gfnem eval runs/paper", "gfnem eval runs/paper --json"},
		text: `Measures the newest checkpoint, also of a run that is not finished or still running. The folder is not changed. The result
says which state was measured: with --json its hash, its "step" of how many in "total", and whether the run is "finished". If
the newest checkpoint is damaged an older one is measured, and "fallback" says why; "gfnem resume" makes the newest again.`},
	"report": {examples: []string{"gfnem report runs/paper"},
		text: `Evaluates the newest checkpoint and writes report.html, figures and parameters.safetensors to the folder, and their
hashes to outputs.json.`},
	"config": {text: `What is printed is a file for --config: change it and train with it. Every key can also be given by --set.`},
	"runs": {examples: []string{"gfnem runs", "gfnem runs runs/sweep --json"},
		text: `The figure is that of the task, measured when the training ended; of a run that is not finished it is the last value of a
metric. A run that cannot be read is listed as "broken", and a line below the table says why.`},
	"compare": {examples: []string{
		"gfnem compare runs/sweep",
		"gfnem compare runs/a runs/b --html comparison.html     curves over each other, with bands over seeds",
		"gfnem compare runs/sweep --by wake.epsilon --figure elbo --csv",
	}, text: `Runs whose configurations differ in nothing but the seed are one setting: their figures are averaged, with the standard
deviation. The page loads nothing from anywhere; point at a curve to read its values.`},
	"verify": {examples: []string{
		"gfnem verify runs/paper",
		"gfnem verify runs/some-table               a table: all its runs, results and the report",
		"gfnem verify . --json                      all that is below a folder",
	}, text: `Checks every hash and every checkpoint, that parameters are finite, and that metrics, results and reports belong to the
checkpoints. It needs no data, reads alone, and may look at a run that is being trained. One line for each thing:
  ok       it is what was written
  note     nothing is wrong; leftovers of a kill, a report that is unfinished
  damaged  it was changed or is missing
  unread   it could not be read, or was written by a newer version of gfnem
Exit code 2 if anything is damaged or unread.`},
	"completion": {examples: []string{
		"gfnem completion bash > ~/.local/share/bash-completion/completions/gfnem",
		`gfnem completion zsh > "${fpath[1]}/_gfnem"`,
		"gfnem completion fish > ~/.config/fish/completions/gfnem.fish",
	}, text: `Commands, flags, tasks, presets and keys of configurations are completed in shells that are started afterwards.`},
	"man": {examples: []string{
		"gfnem man | man -l -",
		"gfnem man > ~/.local/share/man/man1/gfnem.1",
	}, text: `All that --help says, of all commands.`},
	"sweep": {examples: []string{
		"gfnem sweep rates.toml --out runs/rates",
		"gfnem sweep rates.toml --out runs/rates --listen 127.0.0.1:4222    and workers in other processes",
		"gfnem sweep keys keys --host sweep.example.org                     keys, which other machines need",
		"gfnem sweep rates.toml --out runs/rates --listen 0.0.0.0:4222 --keys keys/sweep",
		"gfnem sweep rates.toml --listen sweep.example.org:4222 --keys keys/worker --workers 32 --emit slurm > workers.sh",
	}, text: `The file names a task and what is varied:

  task = "mixture"
  preset = "quick"                     # the default
  seeds = 5                            # or a list of seeds
  [set]                                # keys of all trainings
  points = 1000
  [axes]                               # lists, and ranges
  policy.hidden = [8, 32]
  optim.phi.rate = {from = 1e-3, to = 1e-1, count = 3, scale = "log"}
  [table]
  metrics = ["loglik.gfn", "success"]  # of what "gfnem eval --json" prints; default: all numbers
  [halving]                            # gives up all but one in three settings, twice
  metric = "loglik.gfn"
  better = "high"

The folder is one of a table of runs: each training is a run of its own. When the same command is given again, finished ones are
reused and interrupted ones go on. Ctrl-C saves and ends with exit code 3; so does a kill, but for the last checkpoint.`},
	"worker": {examples: []string{
		"gfnem worker nats://127.0.0.1:4222",
		"gfnem worker nats://sweep.example.org:4222 --keys keys/worker --backend xla",
	}, text: `Makes trainings of a sweep, one at a time, until the sweep is over. It must be the same build of the program. What it computes
does not depend on who it is: another worker goes on from its last checkpoint should it end.`},
	"reproduce": {text: `When the same command is given again, finished trainings are reused and interrupted ones go on where they were.
A result that is not what was written, or not of the newest checkpoint, is measured again. --set cannot change what makes
a row the row it is.`},
}
