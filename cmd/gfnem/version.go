package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/gfnem/gfnem/backend"
)

type versionCmd struct {
	JSON bool `help:"Print as one JSON object."`
}

// Run prints what this program is.
func (c versionCmd) Run(io console) error {
	version, revision := "devel", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	names := backend.Names()
	if c.JSON {
		return printJSON(io.out, map[string]any{
			"version": version, "revision": revision, "go": runtime.Version(),
			"platform": runtime.GOOS + "/" + runtime.GOARCH, "backends": names,
		})
	}
	if revision != "" {
		version += " (" + revision + ")"
	}
	_, err := fmt.Fprintf(io.out, "gfnem %s\n%s %s/%s\nbackends: %s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		strings.Join(names, ", "))
	return err
}
