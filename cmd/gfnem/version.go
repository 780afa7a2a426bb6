package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/run"
)

type versionCmd struct {
	JSON bool `help:"Print as one JSON object."`
}

// Run prints what this program is.
func (c versionCmd) Run(io console) error {
	p, names := run.Program(), backend.Names()
	version, platform := cmp.Or(p.Version, "devel"), p.OS+"/"+p.Arch
	if c.JSON {
		return printJSON(io.out, map[string]any{
			"version": version, "revision": p.Revision, "go": p.Go, "platform": platform, "backends": names,
		})
	}
	if p.Revision != "" {
		version += " (" + p.Revision + ")"
	}
	_, err := fmt.Fprintf(io.out, "gfnem %s\n%s %s\nbackends: %s\n", version, p.Go, platform, strings.Join(names, ", "))
	return err
}
