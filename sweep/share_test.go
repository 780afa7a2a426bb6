package sweep

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/run"
)

// reading is a task whose data are prepared.
type reading struct {
	count
	times *atomic.Int64 // that they were
}

var _ run.Preparer = reading{}

// readConfig is a configuration that knows whether its data are prepared.
type readConfig struct {
	countConfig
	prepared bool
}

func (c *readConfig) Share(other any) bool {
	o := other.(*readConfig)
	c.prepared = c.prepared || o.prepared && o.Data == c.Data
	return c.prepared
}

func (reading) Name() string { return "reading" }

func (r reading) Config(preset string) any {
	return &readConfig{countConfig: *r.count.Config(preset).(*countConfig)}
}

func (r reading) Prepare(c any) ([]string, error) {
	r.times.Add(1)
	c.(*readConfig).prepared = true
	return nil, nil
}

func (r reading) Start(b compute.Backend, c any) (run.Session, error) {
	if !c.(*readConfig).prepared {
		return nil, errors.New("the data are not prepared")
	}
	return r.count.Start(b, &c.(*readConfig).countConfig)
}

// Data of many cells are read once by who asks for them, and once by each worker.
func TestDataReadOnce(t *testing.T) {
	var files []any
	for _, name := range []string{"one", "two"} {
		files = append(files, write(t, filepath.Join(t.TempDir(), name), name))
	}
	task := reading{times: new(atomic.Int64)}
	plan := plan(t, fmt.Sprintf("task = \"reading\"\nseeds = 4\naxes.data = [%q, %q]\n", files...), task)
	plain(t, plan)
	if n := task.times.Swap(0); n != 2 {
		t.Errorf("two files are read %d times in a plain loop", n)
	}
	plan, err := Load(plan.File, []run.Task{task})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Listen: anyPort, Tasks: []run.Task{task}})
	wait := running(t, plan, p)
	gone := p.elsewhere(t, nil)
	wait()
	if err := <-gone; err != nil {
		t.Error(err)
	}
	if n := task.times.Load(); n < 4 || n > 6 { // cells may come in another order; 10 is each cell
		t.Errorf("two files are read %d times by a sweep and one worker", n)
	}
}
