package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/run"
)

type versionCmd struct {
	JSON bool `help:"Print as one JSON object."`
}

// Run prints what this program is.
func (c versionCmd) Run(io command.Console) error {
	p, names := run.Program(), backend.Names()
	version, platform := cmp.Or(p.Version, "devel"), p.OS+"/"+p.Arch
	if c.JSON {
		return command.PrintJSON(io.Out, map[string]any{
			"version": version, "revision": p.Revision, "go": p.Go, "platform": platform, "backends": names,
		})
	}
	if p.Revision != "" {
		version += " (" + p.Revision + ")"
	}
	_, err := fmt.Fprintf(io.Out, "%s %s\n%s %s\nbackends: %s\n", self.Name(), version, p.Go, platform, strings.Join(names, ", "))
	return err
}
