// Command gfnem learns latent variable models with discrete, compositional latents by GFlowNet-EM.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/grammar/results"
	"github.com/gfnem/gfnem/internal/crash"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/internal/suggest"
	"github.com/gfnem/gfnem/mixture"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/vae"
)

// tasks are the models the program can train.
var tasks = []run.Task{mixture.Task{}, results.Task{}, vae.Task{}}

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitBadInput    = 2
	exitInterrupted = 3
	exitInternal    = 70 // a mistake of the program
)

// cli is the command line.
type cli struct {
	Train     trainCmd     `cmd:"" help:"Train a model from the start."`
	Resume    resumeCmd    `cmd:"" help:"Continue a run that was interrupted or killed."`
	Eval      evalCmd      `cmd:"" help:"Measure the model of a run."`
	Report    reportCmd    `cmd:"" help:"Write the report of a run again."`
	Verify    verifyCmd    `cmd:"" help:"Check the files of runs, tables and data sets."`
	Reproduce reproduceCmd `cmd:"" help:"Reproduce a table of the paper."`
	Parse     parseCmd     `cmd:"" help:"Find the trees of sentences."`
	Inside    insideCmd    `cmd:"" help:"Print the log-likelihood of sentences."`
	Encode    encodeCmd    `cmd:"" help:"Turn images into codes."`
	Decode    decodeCmd    `cmd:"" help:"Turn codes into images."`
	Sample    sampleCmd    `cmd:"" help:"Draw codes or images from the prior."`
	Grammar   grammarCmd   `cmd:"" help:"Look at learned grammars."`
	Data      dataCmd      `cmd:"" help:"Make and look at data sets."`
	Bench     benchCmd     `cmd:"" help:"Measure speed."`
	Version   versionCmd   `cmd:"" help:"Print version and backends."`

	ForceMemory bool `help:"Go on even if something needs more memory than this machine or container has."`
}

// console is where a command reads and speaks: its result goes to out, everything else to err.
type console struct {
	in       io.Reader
	out, err io.Writer
	args     []string
}

// Help shows examples below the commands.
func (cli) Help() string {
	return `Examples:
  gfnem train mixture                        a few seconds, with a report to look at
  gfnem train mixture --preset paper --seed 7 --out runs/paper
  gfnem resume runs/paper                    after Ctrl-C, a crash or a power cut
  gfnem eval runs/paper --json
  gfnem reproduce mixture                    the paper's table beside ours
  gfnem train grammar --out runs/english     a grammar, from sentences alone
  gfnem parse runs/english < sentences.txt   the trees it finds
  gfnem train vae --out runs/digits          handwritten digits as grids of codes
  gfnem sample runs/digits --out samples.png
  gfnem bench hypergrid

Exit codes: 0 done; 1 failed; 2 something that you can mend: a key, a file, too little memory; 3 interrupted, to be
resumed; 70 a mistake of this program.`
}

func main() {
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the program and returns its exit code.
func execute(args []string, out, errOut io.Writer) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("gfnem"),
		kong.Description("Learn latent variable models p(z) p(x|z) with discrete, compositional latents by GFlowNet-EM."),
		kong.Writers(out, errOut),
		kong.Vars{
			"workloads": strings.Join(workloadNames(), ", "), "tasks": strings.Join(taskNames(), " or "),
			"presets": presetNames(), "tables": strings.Join(tableNames(), ", "),
		},
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		panic(err) // the command line is declared wrongly
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help has been printed
		return exited
	}
	if err != nil {
		return complain(errOut, badinput.Errorf("%w (see gfnem --help)", err))
	}
	if c.ForceMemory {
		memory.Force()
	}
	memory.Guard(func(err error) { os.Exit(complain(errOut, err)) })
	return complain(errOut, safely(command, console{os.Stdin, out, errOut, append([]string{"gfnem"}, args...)}))
}

// safely runs a command; a panic becomes an error.
func safely(command *kong.Context, io console) (err error) {
	defer crash.Recover(&err)
	return command.Run(io)
}

// complain prints an error in one line and returns the exit code it calls for.
func complain(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	text := err.Error()
	var tooMuch *memory.Error
	if errors.As(err, &tooMuch) {
		text = refusal(tooMuch, err)
	}
	fmt.Fprintln(w, "gfnem:", strings.Join(strings.Fields(text), " "))
	var panicked *crash.Error
	if errors.As(err, &panicked) {
		fmt.Fprintf(w, "%s", panicked.Stack)
		return exitInternal
	}
	var mistake runtime.Error // of code whose panics become errors
	var input *badinput.Error
	var path *fs.PathError
	var link *os.LinkError
	var number syscall.Errno
	switch {
	case errors.Is(err, run.ErrInterrupted):
		return exitInterrupted
	case errors.As(err, &input), errors.As(err, &path), errors.As(err, &link), errors.As(err, &number):
		return exitBadInput
	case errors.As(err, &mistake):
		return exitInternal
	}
	return exitFailed
}

// taskNames lists the tasks.
func taskNames() []string {
	var names []string
	for _, t := range tasks {
		names = append(names, t.Name())
	}
	return names
}

// presetNames lists the presets of every task, for help.
func presetNames() string {
	var names []string
	for _, t := range tasks {
		names = append(names, t.Name()+": "+strings.Join(t.Presets(), ", "))
	}
	return strings.Join(names, "; ")
}

// findTask returns the task of a name.
func findTask(name string) (run.Task, error) {
	names := taskNames()
	if i := slices.Index(names, name); i >= 0 {
		return tasks[i], nil
	}
	return nil, unknown("task", name, names)
}

// unknown complains about a name and suggests what may have been meant.
func unknown(what, name string, known []string) error {
	if near, ok := suggest.Nearest(name, known); ok {
		return badinput.Errorf("unknown %s %q; did you mean %q?", what, name, near)
	}
	return badinput.Errorf("unknown %s %q; known: %s", what, name, strings.Join(known, ", "))
}

// printJSON writes one object in one line.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
