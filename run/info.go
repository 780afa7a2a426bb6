package run

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

// Info says where a run came from. It is run.json, with a hash of it all.
type Info struct {
	Format  int               `json:"format"`
	Task    string            `json:"task"`
	Command []string          `json:"command"`
	Seed    uint64            `json:"seed"`
	Backend string            `json:"backend"`
	Data    map[string]string `json:"data"`   // hash of each data set, by name
	Config  string            `json:"config"` // SHA-256 of the configuration
	// Files are what the run has made of its data and keeps, by path in its folder.
	Files    map[string]disk.Digest `json:"files,omitempty"`
	Created  time.Time              `json:"created"`
	Version  string                 `json:"version"`  // of the program
	Revision string                 `json:"revision"` // of its source; empty if it was built outside a repository
	Modified bool                   `json:"modified"` // the source differed from the revision
	Go       string                 `json:"go"`
	OS       string                 `json:"os"`
	Arch     string                 `json:"arch"`
	Modules  map[string]string      `json:"modules"` // sum of each module, by path@version
}

// Options is what the caller knows about a new run.
type Options struct {
	Task    string
	Config  string // the resolved configuration, as Encode gives it
	Command []string
	Seed    uint64
	Backend string
	Data    map[string]string // hash of each data set, by name
	Files   map[string][]byte // what the run keeps in its folder data from the start, by name; most keep nothing
}

// Program is what this program knows of itself: an Info without what only a run has.
func Program() Info {
	build, _ := debug.ReadBuildInfo()
	return newInfo(Options{}, time.Time{}, build)
}

// newInfo joins what the caller knows with what the program knows of itself; build is nil if it knows nothing.
func newInfo(o Options, now time.Time, build *debug.BuildInfo) Info {
	info := Info{
		Format: formatVersion,
		Task:   o.Task, Command: o.Command, Seed: o.Seed, Backend: o.Backend, Data: o.Data, Config: configSum(o.Config),
		Created: now.UTC().Truncate(time.Second),
		Go:      runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Modules: make(map[string]string),
	}
	if build == nil {
		return info
	}
	info.Version = build.Main.Version
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Revision = s.Value
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	for _, m := range build.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		info.Modules[m.Path+"@"+m.Version] = m.Sum
	}
	return info
}

func configSum(text string) string { return disk.DigestOf([]byte(text)).SHA256 }

// ErrNotRun is wrapped by the error for a folder that holds no run.
var ErrNotRun = errors.New("not a run folder")

func notRun(dir string) error {
	return badinput.Errorf("%s is %w: it has no %s", dir, ErrNotRun, infoName)
}

func readInfo(d disk.Reader, dir string) (infoFile, error) {
	path := filepath.Join(dir, infoName)
	data, err := d.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return infoFile{}, notRun(dir)
	} else if err != nil {
		return infoFile{}, fmt.Errorf("read provenance: %w", err)
	}
	return parseInfo(dir, path, data)
}

// String returns the provenance line by line, without the sums of modules.
func (i Info) String() string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-9s %s\n", name, value)
		}
	}
	line("task", i.Task)
	line("command", strings.Join(i.Command, " "))
	line("seed", fmt.Sprint(i.Seed))
	line("backend", i.Backend)
	line("created", i.Created.Format(time.RFC3339))
	line("version", i.Version)
	line("revision", i.Revision)
	line("go", i.Go+" "+i.OS+"/"+i.Arch)
	for _, name := range slices.Sorted(maps.Keys(i.Data)) {
		line("data", name+" sha256 "+i.Data[name])
	}
	return strings.TrimSuffix(b.String(), "\n")
}
