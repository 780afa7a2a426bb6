package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"go.uber.org/goleak"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// count is a task that adds a number to a sum, again and again.
type count struct {
	step func(c countConfig, n uint64) error // is called before each step; may be nil
}

type countConfig struct {
	Seed  uint64  `toml:"seed" help:"added to every number"`
	Total int     `toml:"total" range:"1,1e6" help:"steps"`
	Add   float64 `toml:"add" range:"-1e3,1e3" help:"number"`
	Data  string  `toml:"data" help:"file, whose length is added"`
}

func (c *countConfig) Validate() error { return config.MakeAbsolute("data", &c.Data, "none") }

func (count) Name() string      { return "count" }
func (count) Presets() []string { return []string{"short", "long"} }
func (count) Config(preset string) any {
	return run.PresetOf(map[string]func() countConfig{
		"short": func() countConfig { return countConfig{Total: 9, Add: 1, Data: "none"} },
		"long":  func() countConfig { return countConfig{Total: 400, Add: 1, Data: "none"} },
	}, preset)
}

func (t count) Start(_ compute.Backend, c any) (run.Session, error) {
	s := &counting{task: t, config: *c.(*countConfig)}
	if s.config.Data != "none" {
		text, err := os.ReadFile(s.config.Data)
		if err != nil {
			return nil, err
		}
		s.length = float64(len(text))
	}
	return s, nil
}

type counting struct {
	task   count
	config countConfig
	length float64
	N      uint64
	Sum    float64
}

func (s *counting) Done() bool { return s.N >= uint64(s.config.Total) }

func (s *counting) Step() (run.Tick, error) {
	if s.task.step != nil {
		if err := s.task.step(s.config, s.N); err != nil {
			return run.Tick{}, err
		}
	}
	s.N++
	s.Sum += s.config.Add + float64(s.config.Seed) + s.length
	return run.Tick{Step: s.N, Total: uint64(s.config.Total), Log: map[string]float64{"sum": s.Sum}}, nil
}

func (s *counting) State() (run.State, error) {
	extra, err := json.Marshal(s)
	return run.State{Extra: extra}, err
}

func (s *counting) Restore(state run.State) error { return json.Unmarshal(state.Extra, s) }

func (s *counting) Seed() uint64                              { return s.config.Seed }
func (s *counting) Data() map[string]string                   { return nil }
func (s *counting) Progress() (step, total uint64)            { return s.N, uint64(s.config.Total) }
func (s *counting) Evaluate() (run.Result, error)             { return counted{s.Sum, s.N}, nil }
func (s *counting) Report(*run.Run, string, run.Result) error { return nil }
func (s *counting) Parameters() (map[string]run.Array, error) { return nil, nil }
func (s *counting) Close()                                    {}

type counted struct {
	Sum   float64
	Steps uint64
}

func (c counted) Print(w io.Writer) error {
	_, err := fmt.Fprintln(w, c.Sum)
	return err
}

// said keeps what is logged.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// has fails the test unless exactly one line has some text.
func (s *said) has(t *testing.T, text string) {
	t.Helper()
	if n := strings.Count(s.String(), text); n != 1 {
		t.Errorf("%q is said %d times:\n%s", text, n, s)
	}
}

// wait waits until some text is said.
func (s *said) wait(t *testing.T, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q is not said", text), func() bool { return strings.Contains(s.String(), text) })
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func plan(t *testing.T, text string, tasks ...run.Task) *Plan {
	t.Helper()
	p, err := Load(write(t, filepath.Join(t.TempDir(), "sweep.toml"), text), append(tasks, count{}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lease is so long that no test can lose a claim.
const lease = 10 * time.Minute

// open opens a pool for a folder.
func open(t *testing.T, o PoolOptions) *Pool {
	t.Helper()
	if o.Tasks == nil {
		o.Tasks = []run.Task{count{}}
	}
	if o.Lease == 0 {
		o.Lease = lease
	}
	p, err := OpenPool(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// finish ends a pool whose cells are made.
func (p *Pool) finish(t *testing.T) {
	t.Helper()
	if err := errors.Join(p.Finish(t.Context()), p.Close()); err != nil {
		t.Error(err)
	}
}

func (p *Pool) grid(task run.Task) run.Grid {
	return run.Grid{Dir: p.Dir, Task: task, Command: []string{"test"}, Every: 50 * time.Millisecond, Log: p.Log, Pool: p}
}

// plain makes a plan's cells in a plain loop, and returns the table.
func plain(t *testing.T, p *Plan) (dir, table string) {
	t.Helper()
	dir = disktest.MemoryDir(t)
	if _, err := p.Run(t.Context(), run.Grid{Dir: dir, Task: p.Task, Every: time.Hour, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	return dir, read(t, filepath.Join(dir, "table.json"))
}
