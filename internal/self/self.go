// Package self knows the name by which the program that runs is called, so that what it advises can be typed.
package self

import (
	"fmt"
	"strings"
	"sync/atomic"
)

const ours = "gfnem"

var name atomic.Pointer[string]

// SetName names the program, which from then on has the commands of package cli.
func SetName(s string) { name.Store(&s) }

// Name is that of the program; "gfnem" if nobody has set one.
func Name() string {
	if s := name.Load(); s != nil {
		return *s
	}
	return ours
}

// Command is a command of the program in quotes, as advice: "gfnem data treebank".
func Command(format string, args ...any) string {
	return fmt.Sprintf("\"%s %s\"", Name(), fmt.Sprintf(format, args...))
}

// Advice is a command in quotes, or the program itself if it has none, since nobody has set its name.
func Advice(format string, args ...any) string {
	if name.Load() == nil {
		return "the program that made it"
	}
	return Command(format, args...)
}

// Text replaces our name by that of the program.
func Text(s string) string { return strings.ReplaceAll(s, ours, Name()) }
