// Package faults runs a program and lets its calls on files fail, so that a test can look at what is left. It follows
// the program by ptrace, on Linux alone.
package faults

import (
	"fmt"
	"syscall"
	"time"
)

// Options say what to follow, and what to let fail.
type Options struct {
	Below []string // the folders whose files are followed, with themselves; absolute and without symbolic links
	Fault Fault
	Limit time.Duration // the program is killed when it has run so long; 0 means a minute
	// Before, if not nil, is called before each call that is followed; the program waits.
	Before func(Call)
}

// Call is a system call on a file.
type Call struct {
	Name string // of the system call
	Path string // as the program named it, or as the descriptor was opened; absolute
	To   string // the other path of a call that has two
	Size uint64 // bytes to write
}

// String returns a call without its size.
func (c Call) String() string {
	if c.To != "" {
		return c.Name + " of " + c.Path + " to " + c.To
	}
	return c.Name + " of " + c.Path
}

// Writes reports whether a call writes content.
func (c Call) Writes() bool { return c.Name == "write" || c.Name == "pwrite64" }

// Stores reports whether a call that failed has lost content that was to be stored.
func (c Call) Stores() bool {
	return c.Writes() || c.Name == "fsync" || c.Name == "fdatasync" || c.Name == "ftruncate"
}

// Grows reports whether a call needs space on the disk.
func (c Call) Grows() bool { return c.Writes() || c.Name == "mkdir" || c.Name == "mkdirat" }

// Kind says what happens at a call.
type Kind struct {
	// Errno is what the call returns instead of being made; close is made nevertheless, as Linux does. 0 means that
	// SIGKILL ends the program before the call.
	Errno syscall.Errno
	Extent
}

// Extent says which calls after the first fail, too.
type Extent int

const (
	Once     Extent = iota
	SamePath        // all on the same path
	Full            // all that need space; of the first, if it writes, half is written
)

// String names a kind in one word.
func (k Kind) String() string {
	name := map[syscall.Errno]string{
		0: "kill", syscall.EIO: "EIO", syscall.ENOSPC: "ENOSPC", syscall.EACCES: "EACCES",
	}[k.Errno]
	if name == "" {
		name = fmt.Sprintf("errno%d", int(k.Errno))
	}
	return name + map[Extent]string{SamePath: "-lasting", Full: "-full"}[k.Extent]
}

// Fault is a kind of failure at one call.
type Fault struct {
	Kind
	At int // number of the call, from 1; 0 means that nothing fails
}

// String says which fault it is.
func (f Fault) String() string { return fmt.Sprintf("%v at call %d", f.Kind, f.At) }

// Result is how a program ended.
type Result struct {
	Calls  []Call // that were followed, in order
	Failed int    // how many of them failed
	Exit   int    // code; -1 if a signal ended the program
	Signal syscall.Signal
	Late   bool // it was killed since it ran too long
}
