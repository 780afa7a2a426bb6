// Package grammarcmd is grammars on the command line: the task with what it adds to a program, and the commands parse,
// inside, grammar and data.
package grammarcmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar/results"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// Task learns a grammar, and has commands.
type Task struct{ results.Task }

var (
	_ run.Adjustable     = Task{}
	_ command.Commander  = Task{}
	_ command.Documented = Task{}
	_ command.Evaluator  = Task{}
	_ command.Sampler    = Task{}
	_ command.Shortener  = Task{}
	_ command.Verifier   = Task{}
)

// Commands implements command.Commander.
func (Task) Commands() any {
	return &struct {
		Parse   parseCmd   `cmd:"" help:"Find the trees of sentences."`
		Inside  insideCmd  `cmd:"" help:"Print the log-likelihood of sentences."`
		Grammar grammarCmd `cmd:"" help:"Look at learned grammars."`
		Data    dataCmd    `cmd:"" help:"Make and look at data sets."`
	}{}
}

// Shortcuts implements command.Shortener.
func (Task) Shortcuts() []command.Shortcut {
	return []command.Shortcut{
		{Flag: "data", Key: "data", Placeholder: "DATA", Help: "a file or folder of text, CoNLL or trees, " +
			"a folder of \"gfnem data treebank\", synthetic, synthetic-ncfg or small"},
		{Flag: "method", Key: "method", Placeholder: "NAME", Help: "how to learn: marginal, exact, mcem or gfn"},
		{Flag: "grammar", Key: "model.grammar", Placeholder: "KIND", Help: "cfg, or ncfg, whose rules depend on the parent"},
		{Flag: "ebm", Key: "prior.on", On: "true", Help: "with mcem and gfn, learn a prior on the shapes of trees first"},
	}
}

// Examples implements command.Documented.
func (Task) Examples(of string) []string {
	switch of {
	case "":
		return []string{
			"gfnem train grammar --out runs/english     a grammar, from sentences alone",
			"gfnem parse runs/english < sentences.txt   the trees it finds",
		}
	case "train":
		return []string{
			"gfnem train grammar                                             the synthetic treebank, about a minute",
			"gfnem train grammar --data corpus.txt --out runs/mine           your text; or .txt.gz, .conllu, .trees, a folder",
			"gfnem train grammar --method gfn                                GFlowNet-EM, some minutes",
			"gfnem train grammar --set restarts=4 --set restart_updates=500  the best of four starts",
			"gfnem train grammar --method gfn --preset best --backend xla    the same at the paper's size, on a GPU",
			"gfnem train grammar --method exact --set mstep.collapse=labels --set mstep.samples=4",
			"gfnem train grammar --grammar ncfg --data synthetic-ncfg        rules that depend on the parent",
			"gfnem train grammar --data data/wsj --method mcem --ebm --preset paper --out runs/wsj",
			"gfnem train grammar --method gfn --preset paper --set updates=2000 --set horizon=10000     " +
				"a fifth of the published schedule",
		}
	case "reproduce":
		return []string{
			"gfnem reproduce grammar-estep                                   ten minutes; --seeds 1 a third of it",
			"gfnem reproduce grammar --rows marginal,exact,gfn --seeds 3",
			"gfnem reproduce grammar --preset paper --data data/wsj --seeds 1,2,3,4,5 --workers 1",
			"gfnem reproduce grammar --preset best --seeds 5 --runs 3        GFlowNets with three of the five seeds",
			"gfnem reproduce grammar-objectives --preset quick --set fixed=synthetic     the treebank's own grammar",
			"gfnem reproduce grammar-ablation --set updates=2000 --seeds 2",
			"gfnem reproduce grammar-shapes --set updates=2000               labels summed out, several walks, weights",
		}
	case "sample":
		return []string{
			"gfnem sample runs/english --count 5                 sentences with their trees",
			"gfnem sample runs/english --trees none --seed 3     sentences alone",
		}
	case "eval":
		return []string{
			"gfnem eval runs/wsj --max-length 200        also sentences that are longer than those of the training",
		}
	case "verify":
		return []string{"gfnem verify data/wsj                      a data set, from \"gfnem data treebank\""}
	}
	return nil
}

// Notes implements command.Documented.
func (Task) Notes(of string) string {
	switch of {
	case "eval":
		return `With eval.select = "best" a grammar is measured as it was when validation sentences were most probable; a note
says at which step. A grammar by method gfn is measured by exact inference, and its GFlowNet beside that: F1 of one
draw (gfn) and of the best spans of 32 (gfn-mbr), a bound on log p(x), the flow estimate, which is no bound, and the
divergence to the exact posterior.`
	case "sample":
		return `Of a grammar, sentences are drawn with their trees, in brackets; with --trees json also log p(x,z,tags). Words
that training sentences had too rarely are <unk>.`
	case "reproduce":
		return `The tables of grammars:
  grammar             methods, context-free and not, with and without the prior on shapes of trees
  grammar-estep       objectives of the E-step, the grammar being given
  grammar-threshold   how low the loss of the E-step must be before the grammar is updated
  grammar-ablation    GFlowNet-EM without some of its parts
  grammar-shapes      labels summed out, several walks, weights, beside EM by exact samples
  grammar-objectives  losses of several walks of each sentence, the grammar being given`
	}
	return ""
}

// EvalFlags implements command.Evaluator.
func (Task) EvalFlags() command.EvalFlags { return &evalFlags{} }

// evalFlags say which sentences a grammar is measured on.
type evalFlags struct {
	MaxLength int `help:"Measure a grammar on sentences of at most so many words (default: the run's)." placeholder:"N"`
}

// Settings implements command.EvalFlags.
func (f *evalFlags) Settings(task run.Task) ([]string, error) {
	switch {
	case f.MaxLength == 0:
		return nil, nil
	case f.MaxLength < 0:
		return nil, badinput.Errorf("--max-length cannot be negative")
	case !slices.Contains(config.Keys(task.Config(task.Presets()[0])), "eval.max_length"):
		return nil, badinput.Errorf("--max-length: the task %s has no sentences", task.Name())
	}
	return []string{fmt.Sprintf("eval.max_length=%d", f.MaxLength)}, nil
}

// Verify implements command.Verifier, of data sets.
func (Task) Verify(dir string, say func(run.Finding)) (bool, error) {
	sets, err := datasets(dir, 3)
	for _, set := range sets {
		treebank.Verify(set, func(path string, err error) {
			if err != nil {
				say(run.Failure(path, err))
			} else {
				say(run.Finding{Status: run.Intact, Path: path, Text: "matches its hash"})
			}
		})
	}
	return sets != nil, err
}

// datasets lists a folder, and those below it, that hold data sets.
func datasets(dir string, depth int) (sets []string, err error) {
	if treebank.Holds(dir) {
		sets = append(sets, dir)
	}
	entries, err := os.ReadDir(dir)
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "run.json" }) {
		return sets, err // what a run keeps is verified with it
	}
	for _, e := range entries {
		if e.IsDir() && depth > 0 && !strings.HasSuffix(e.Name(), disk.TmpSuffix) {
			below, err := datasets(filepath.Join(dir, e.Name()), depth-1)
			if err != nil {
				return nil, err
			}
			sets = append(sets, below...)
		}
	}
	return sets, err
}
