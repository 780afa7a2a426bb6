// Package cli is a program that trains models, for any list of tasks: ten lines of main give a task of one's own the
// commands train, resume, eval, report, verify and reproduce.
//
//	func main() { cli.Main(segment.Task) }
//
// A task can add flags, commands and help, see package command.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/internal/crash"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/run"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitBadInput    = 2  // something that the user can mend
	ExitInterrupted = 3  // saved, to be resumed
	ExitInternal    = 70 // a mistake of the program
)

// Program is a program that trains models.
type Program struct {
	Name     string // that the user types; "" means that of the file that runs
	Version  string // "" means that of its module
	About    string // what it does, in a sentence; may be empty
	Tasks    []run.Task
	Commands []any // besides those of tasks: pointers to structs whose fields are commands
}

// Main is the program with some tasks, under the name of the file that runs. It does not return.
func Main(tasks ...run.Task) { Program{Tasks: tasks}.Main() }

// Main runs the program and ends the process with its exit code.
func (p Program) Main() { os.Exit(p.Execute(os.Args[1:], os.Stdout, os.Stderr)) }

// line is the command line.
type line struct {
	Train        trainCmd      `cmd:"" help:"Train a model from the start."`
	Resume       resumeCmd     `cmd:"" help:"Continue a run that was interrupted or killed."`
	Eval         evalCmd       `cmd:"" help:"Measure the model of a run."`
	Report       reportCmd     `cmd:"" help:"Write the report of a run again."`
	Runs         runsCmd       `cmd:"" help:"List runs: how far they are and what they have led to."`
	Compare      compareCmd    `cmd:"" help:"Compare runs by their settings, averaged over seeds."`
	Config       configCmd     `cmd:"" help:"Print the keys of a configuration: meaning, range, and what presets set."`
	Verify       verifyCmd     `cmd:"" help:"Check the files of runs, tables and data sets."`
	Sweep        sweepCmd      `cmd:"" help:"Train a grid of settings, on one machine or many."`
	Serve        serveCmd      `cmd:"" help:"Show runs in a browser, and let other programs ask their models."`
	Worker       workerCmd     `cmd:"" help:"Take part in a sweep of another process or machine."`
	kong.Plugins               // reproduce if there are tables, commands of tasks, and others
	Version      versionCmd    `cmd:"" help:"Print version and backends."`
	Completion   completionCmd `cmd:"" help:"Print what completes commands in a shell."`
	Man          manCmd        `cmd:"" help:"Print the manual page."`

	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
	ForceMemory bool             `help:"Go on even if something needs more memory than this machine or container has."`
}

// reproducing is the command for tasks that have tables.
type reproducing struct {
	Reproduce reproduceCmd `cmd:"" help:"Reproduce a table of runs."`
}

// Execute runs the program with arguments and returns its exit code.
func (p Program) Execute(args []string, out, errOut io.Writer) int {
	p.Name = cmp.Or(p.Name, strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"))
	self.SetName(p.Name)
	var c line
	exited := -1
	parser, err := p.parser(&c, kong.Writers(out, errOut), kong.Exit(func(code int) { exited = code }))
	if err != nil {
		panic(err) // the command line is declared wrongly
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	chosen, err := parser.Parse(args)
	if exited >= 0 { // --help has been printed
		return exited
	}
	if err != nil {
		return complain(errOut, p.misread(err, args))
	}
	if c.ForceMemory {
		memory.Force()
	}
	memory.Guard(func(err error) { os.Exit(complain(errOut, err)) })
	io := command.Console{In: os.Stdin, Out: out, Err: errOut, Args: append([]string{p.Name}, args...)}
	err = safely(func() error { return chosen.Run(io, &p) })
	if errors.Is(err, run.ErrNotRun) {
		err = badinput.Errorf("%w; %s lists those in a folder", err, self.Command("runs DIR"))
	}
	return complain(errOut, err)
}

// parser declares the command line.
func (p Program) parser(c *line, options ...kong.Option) (*kong.Kong, error) {
	flags, err := p.shortcuts()
	if err != nil {
		return nil, err
	}
	c.Train.shortcuts = flags
	if flags != nil {
		c.Train.Plugins = append(c.Train.Plugins, flags.target())
	}
	for _, t := range p.Tasks {
		if e, ok := t.(command.Evaluator); ok {
			c.Eval.Plugins = append(c.Eval.Plugins, e.EvalFlags())
		}
	}
	if len(p.tableNames()) > 0 {
		c.Plugins = append(c.Plugins, &reproducing{})
	}
	if s := p.sampling(); s != nil {
		c.Plugins = append(c.Plugins, s)
	}
	for _, t := range p.Tasks {
		if e, ok := t.(command.Commander); ok {
			c.Plugins = append(c.Plugins, e.Commands())
		}
	}
	c.Plugins = append(c.Plugins, p.Commands...)
	parser, err := kong.New(c, append(options,
		kong.Name(p.Name),
		kong.Description(p.About),
		kong.Vars{
			"tasks": strings.Join(p.taskNames(), " or "), "presets": p.presetNames(),
			"tables": strings.Join(p.tableNames(), ", "), "version": p.Name + " " + p.built().String(),
		},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)...)
	if err != nil {
		return nil, err
	}
	p.document(parser.Model.Node, "")
	if len(p.Tasks) == 1 {
		c.Train.taskArg(parser.Model.Node).Required = false
	}
	return parser, nil
}

// safely calls f; a panic becomes an error.
func safely(f func() error) (err error) {
	defer crash.Recover(&err)
	return f()
}

// complain prints an error in one line and returns the exit code it calls for.
func complain(w io.Writer, err error) int {
	if err == nil {
		return ExitOK
	}
	text := err.Error()
	var tooMuch *memory.Error
	if errors.As(err, &tooMuch) {
		text = refusal(tooMuch, err)
	}
	fmt.Fprintln(w, self.Name()+":", strings.Join(strings.Fields(text), " "))
	var panicked *crash.Error
	if errors.As(err, &panicked) {
		fmt.Fprintf(w, "%s", panicked.Stack)
		return ExitInternal
	}
	var mistake runtime.Error // of code whose panics become errors
	var input *badinput.Error
	var path *fs.PathError
	var link *os.LinkError
	var number syscall.Errno
	switch {
	case errors.Is(err, run.ErrInterrupted):
		return ExitInterrupted
	case errors.As(err, &input), errors.As(err, &path), errors.As(err, &link), errors.As(err, &number):
		return ExitBadInput
	case errors.As(err, &mistake):
		return ExitInternal
	}
	return ExitFailed
}
