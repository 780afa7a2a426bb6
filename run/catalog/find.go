package catalog

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/run"
)

// Status says how a run is.
type Status string

// The statuses of runs.
const (
	Running  Status = "running"  // a process is writing it
	Finished Status = "finished" // its training is done
	Stopped  Status = "stopped"  // interrupted or killed: resume goes on
	Broken   Status = "broken"   // it cannot be read
)

// Run is what the folder of a run says.
type Run struct {
	Dir     string        `json:"dir"`
	Task    string        `json:"task"`
	Method  string        `json:"method,omitempty"` // the key "method", if the task has one
	Preset  string        `json:"preset,omitempty"` // if the command named one
	Data    string        `json:"data,omitempty"`   // the last name of the key "data"
	Seed    uint64        `json:"seed"`
	Status  Status        `json:"status"`
	Step    uint64        `json:"step"`  // of the newest checkpoint, or of the last line of metrics of one that is running
	Total   uint64        `json:"total"` // 0: not known
	Created time.Time     `json:"created,omitzero"`
	Updated time.Time     `json:"updated,omitzero"` // of the last checkpoint; that of run.json if not known
	Took    time.Duration `json:"took_ns"`          // trained, in all processes; 0: not known
	Command []string      `json:"command,omitempty"`
	// Headline is the task's figure of the newest checkpoint, if it was measured, else the last value of a metric.
	Headline *run.Headline `json:"headline,omitempty"`
	// Config has every key of run.toml, with dots between sections, without the quotes of strings.
	Config map[string]string `json:"config,omitempty"`
	// Results are the numbers of the result of a finished run, with dots between the names of nested ones; a boolean is
	// 0 or 1.
	Results run.Values `json:"results,omitempty"`
	// Last are the values of the last lines of metrics, each the last one that was logged.
	Last run.Values `json:"last,omitempty"`
	// Wrong says what could not be read, in one line; "" if all could.
	Wrong string `json:"wrong,omitempty"`
}

// Find returns the runs in a folder and below it, in order of their folders. Folders whose names begin with a dot are
// left out. A folder below that cannot be read is listed as a broken run; dir itself is an error.
func Find(dir string) ([]Run, error) {
	runs, err := Folders(dir)
	if err != nil {
		return nil, err
	}
	var next sync.Mutex
	var wg sync.WaitGroup
	at := 0
	for range min(runtime.GOMAXPROCS(0), len(runs)) {
		wg.Go(func() {
			for {
				next.Lock()
				i := at
				at++
				next.Unlock()
				if i >= len(runs) {
					return
				}
				if runs[i].Status == "" {
					runs[i] = Open(runs[i].Dir)
				}
			}
		})
	}
	wg.Wait()
	return runs, nil
}

// below lists the folders of runs at a path, under another name for it; those that cannot be read are broken runs.
func below(path, name string) (found []Run, err error) {
	entries, err := disk.OS{}.ReadDir(path)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, e := range entries {
		has[e.Name()] = true
	}
	if has["run.json"] || has["run.toml"] && has["state"] {
		return []Run{{Dir: name}}, nil
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), disk.TmpSuffix) {
			continue
		}
		inner := filepath.Join(name, e.Name())
		more, err := below(filepath.Join(path, e.Name()), inner)
		if errors.Is(err, fs.ErrNotExist) { // gone meanwhile
			continue
		} else if err != nil {
			more = []Run{{Dir: inner, Status: Broken, Wrong: oneLine(err)}}
		}
		found = append(found, more...)
	}
	return found, nil
}

// Open reads what the folder of a run says.
func Open(dir string) Run {
	out := Run{Dir: dir}
	wrong := func(err error) {
		if err != nil {
			out.Wrong = strings.TrimPrefix(out.Wrong+"; "+oneLine(err), "; ")
		}
	}
	r, err := run.Read(dir)
	if err != nil {
		out.Status = Broken
		wrong(err)
		return out
	}
	wrong(out.describe(r))
	inUse, err := r.InUse()
	wrong(err)
	summary, err := r.Summary()
	wrong(err)
	saved, err := r.Saved()
	wrong(err)
	if len(saved) > 0 {
		out.Step = saved[0]
	}
	current := summary != nil && summary.Step == out.Step
	if summary != nil {
		out.Total, out.Updated = summary.Total, summary.Updated
		out.Took = time.Duration(summary.Seconds * float64(time.Second))
	}
	result, step, err := r.Outcome()
	wrong(err)
	if result != nil && step == out.Step && len(saved) > 0 {
		out.Results, err = Numbers(result)
		wrong(err)
	}
	last, err := out.tail()
	wrong(err)
	out.Last = last.Values

	switch {
	case inUse:
		out.Status, out.Step = Running, max(out.Step, last.Step)
	case current && summary.Finished, summary == nil && out.Results != nil:
		out.Status = Finished
	default:
		out.Status = Stopped
		// Earlier versions wrote no summary, and a report at the end.
		if shown, ok, err := r.Shown(); summary == nil && err == nil && ok && len(saved) > 0 && shown == saved[0] {
			out.Status = Finished
		}
	}
	if out.Status == Finished && out.Total == 0 {
		out.Total = out.Step
	}
	if current && summary.Headline != nil {
		out.Headline = summary.Headline
	} else {
		out.Headline = guess(out.Last)
	}
	return out
}

// Of returns what an open run knows of itself without reading anything: where it came from, and its configuration.
func Of(r *run.Run) (out Run, err error) {
	out.Dir = r.Dir()
	return out, out.describe(r)
}

// describe fills that in.
func (out *Run) describe(r *run.Run) (err error) {
	info := r.Info()
	out.Task, out.Seed, out.Command = info.Task, info.Seed, info.Command
	out.Created, out.Updated = info.Created, info.Created
	out.Preset = preset(info.Command)
	if out.Config, err = Flatten(r.Config()); err != nil {
		return err
	}
	out.Method = out.Config["method"]
	if data := out.Config["data"]; data != "" {
		out.Data = filepath.Base(data)
	}
	return nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// preset is what a command says of it.
func preset(command []string) string {
	for i, arg := range command {
		if value, ok := strings.CutPrefix(arg, "--preset="); ok {
			return value
		} else if arg == "--preset" && i+1 < len(command) {
			return command[i+1]
		}
	}
	return ""
}

// guess chooses one of the last values of metrics: what was measured while training, else a loss of the model, else
// of the posterior.
func guess(last map[string]float64) *run.Headline {
	names := sortedKeys(last)
	for _, want := range []string{"eval/", "valid/", "test/", "loglik", "m/loss", "loss", "e/loss"} {
		for _, name := range names {
			if finite(last[name]) && (name == want || strings.HasSuffix(want, "/") && strings.HasPrefix(name, want)) {
				return &run.Headline{Name: name, Value: last[name], Low: strings.Contains(name, "loss")}
			}
		}
	}
	return nil
}

// natural compares names so that run 2 comes before run 10.
func natural(a, b string) int {
	for a != "" && b != "" {
		i, j := digits(a), digits(b)
		if i > 0 && j > 0 {
			x, y := strings.TrimLeft(a[:i], "0"), strings.TrimLeft(b[:j], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y), cmp.Compare(i, j)); c != 0 {
				return c
			}
			a, b = a[i:], b[j:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is how many digits a text begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
