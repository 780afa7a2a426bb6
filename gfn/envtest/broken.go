package envtest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/support/xslices"
)

// broken is a broken law, with an example. Graph code that cannot go on panics with it.
type broken struct {
	law, example string
	more         int // examples
}

// breaks returns a broken law.
func breaks(law, format string, args ...any) broken {
	return broken{law: law, example: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (b broken) Error() string {
	if b.more > 0 {
		return fmt.Sprintf("%s: %s (and %d more)", b.law, b.example, b.more)
	}
	return b.law + ": " + b.example
}

// found are broken laws in the order in which they were found, with their first examples.
type found []broken

// broke adds a broken law.
func (f *found) broke(law, format string, args ...any) {
	if i := slices.IndexFunc(*f, func(b broken) bool { return b.law == law }); i >= 0 {
		(*f)[i].more++
	} else {
		*f = append(*f, breaks(law, format, args...))
	}
}

// failed adds the broken law that an error wraps; if it wraps none, the law that nothing fails.
func (f *found) failed(err error, law string) {
	if b := (broken{}); errors.As(err, &b) {
		f.broke(b.law, "%s", b.example)
	} else {
		f.broke(law, "%v", err)
	}
}

// lines returns one line for each law.
func (f found) lines() []string { return xslices.Map(f, broken.Error) }
