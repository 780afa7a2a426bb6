package command

import (
	"github.com/gfnem/gfnem/run"
)

// What a task can add to the program that trains it, each by an interface of its own, which it may leave out.
type (
	// Commander has commands of its own: Commands returns a pointer to a struct whose fields are commands.
	Commander interface{ Commands() any }

	// Documented adds to the help of a command, and with the command "" to that of the program. Examples are lines of it,
	// and Notes a paragraph below. Both may be empty. In them "gfnem" stands for the name of the program.
	Documented interface {
		Examples(command string) []string
		Notes(command string) string
	}

	// Shortener has flags for keys that are set often.
	Shortener interface{ Shortcuts() []Shortcut }

	// Evaluator has flags that say how the command eval measures a run: a pointer to a struct with them, for each call.
	Evaluator interface{ EvalFlags() EvalFlags }

	// Sampler has models that the command sample draws from: a pointer to a struct with flags of that, for each call.
	Sampler interface{ SampleFlags() SampleFlags }

	// Verifier knows data sets that the command verify can check. Verify says what it finds in a folder, and below it, and
	// returns whether there is a data set.
	Verifier interface {
		Verify(dir string, say func(run.Finding)) (found bool, err error)
	}
)

// Shortcut is a flag of the command train for a key. Tasks that have the same flag have the same key. A task whose
// configuration has no such key refuses the flag.
type Shortcut struct {
	Flag, Key   string
	Placeholder string
	On          string // the value of a flag that takes none
	Help        string // what can be given
}

// EvalFlags are flags of the command eval.
type EvalFlags interface {
	// Settings returns the keys of a run that the flags change. The run may be of any task: if it is of one that does not know
	// them and they were given, that is an error.
	Settings(task run.Task) ([]string, error)
}

// SampleFlags are flags of the command sample. No two tasks have the same ones.
type SampleFlags interface {
	// Given names those that were given, such as "--out": a run of another task refuses them.
	Given() []string
	// Sample draws from a run of the task.
	Sample(Console, Draw) error
}

// Draw is what the command sample is asked for.
type Draw struct {
	Run *run.Run
	Backend
	Fallback
	Count int
	Seed  uint64
}
