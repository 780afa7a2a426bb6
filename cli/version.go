package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/cli/command"
)

// Version is that of this library and of its program gfnem. CHANGELOG.md says what it brought.
const Version = "0.1.0"

const ours = "github.com/gfnem/gfnem" // our module

// build is what a program knows of how it was built. It has the time of the revision, not of the build, so that whoever
// builds a revision gets the same bytes.
type build struct {
	Version  string   `json:"version"`
	Library  string   `json:"library,omitempty"` // version of this module, in a program of another one
	Revision string   `json:"revision"`
	Date     string   `json:"date"`
	Modified bool     `json:"modified"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	Backends []string `json:"backends"`
}

// newBuild reads what the compiler left in a program, which is nil if that is nothing.
func newBuild(version string, info *debug.BuildInfo) build {
	b := build{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Backends: backend.Names()}
	if info == nil {
		b.Version = cmp.Or(b.Version, "devel")
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if info.Main.Path != ours {
		b.Library = Version
	}
	if b.Version == "" {
		b.Version = cmp.Or(strings.TrimPrefix(strings.Trim(info.Main.Version, "()"), "v"), "devel")
	}
	return b
}

// String is one line: version, revision and its date.
func (b build) String() string {
	var from []string
	if b.Revision != "" {
		from = append(from, "revision "+b.Revision[:min(12, len(b.Revision))])
	}
	if b.Date != "" {
		from = append(from, "of "+b.Date)
	}
	if b.Modified {
		from = append(from, "modified")
	}
	if from == nil {
		return b.Version
	}
	return b.Version + " (" + strings.Join(from, ", ") + ")"
}

// built is what this program knows of itself.
func (p *Program) built() build {
	info, _ := debug.ReadBuildInfo()
	return newBuild(p.Version, info)
}

type versionCmd struct {
	JSON bool `help:"Print as one JSON object."`
}

// Run prints what this program is.
func (c versionCmd) Run(io command.Console, p *Program) error {
	b := p.built()
	if c.JSON {
		return command.PrintJSON(io.Out, b)
	}
	return b.print(io.Out, p.Name)
}

func (b build) print(w io.Writer, name string) error {
	_, err := fmt.Fprintf(w, "%s %s\n", name, b)
	if b.Library != "" && err == nil {
		_, err = fmt.Fprintf(w, "library: gfnem %s\n", b.Library)
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "%s %s\nbackends: %s\n", b.Go, b.Platform, strings.Join(b.Backends, ", "))
	}
	return err
}
