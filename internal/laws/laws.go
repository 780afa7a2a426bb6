// Package laws collects the laws of an interface that a suite finds broken.
package laws

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/support/xslices"
)

// Broken is a broken law, with an example. Graph code that cannot go on panics with it.
type Broken struct {
	law, example string
	more         int // examples
}

// Break returns a broken law.
func Break(law, format string, args ...any) Broken {
	return Broken{law: law, example: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (b Broken) Error() string {
	if b.more > 0 {
		return fmt.Sprintf("%s: %s (and %d more)", b.law, b.example, b.more)
	}
	return b.law + ": " + b.example
}

// Found are broken laws in the order in which they were found, with their first examples.
type Found []Broken

// Broke adds a broken law.
func (f *Found) Broke(law, format string, args ...any) {
	if i := slices.IndexFunc(*f, func(b Broken) bool { return b.law == law }); i >= 0 {
		(*f)[i].more++
	} else {
		*f = append(*f, Break(law, format, args...))
	}
}

// Failed adds the broken law that an error wraps; if it wraps none, the law that nothing fails.
func (f *Found) Failed(err error, law string) {
	if b := (Broken{}); errors.As(err, &b) {
		f.Broke(b.law, "%s", b.example)
	} else {
		f.Broke(law, "%v", err)
	}
}

// Lines returns one line for each law.
func (f Found) Lines() []string { return xslices.Map(f, Broken.Error) }
