// Package quiet keeps go-xla's package pjrt from searching the machine, and from logging what it misses there
// (a home folder, /etc/ld.so.conf), each time a program that merely links it starts.
//
// pjrt reads PJRT_PLUGIN_LIBRARY_PATH when it is initialised and searches only if the variable is not set. Package
// backend hands it absolute paths and needs no search, so this package sets the variable, empty, for that moment.
// Go initialises packages in the order of their import paths where dependencies leave a choice, and this one depends
// on package os alone: it comes before pjrt, and before the log package that pjrt waits for.
package quiet

import "os"

const variable = "PJRT_PLUGIN_LIBRARY_PATH"

var ours bool

func init() {
	if _, set := os.LookupEnv(variable); !set {
		ours = os.Setenv(variable, "") == nil
	}
}

// Done gives the environment back as the user left it. Call it from an init function of a package that imports pjrt.
func Done() {
	if ours {
		os.Unsetenv(variable)
	}
}
