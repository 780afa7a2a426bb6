package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run"
)

// models are the opened models of runs, a few of them at a time. A run that has saved since is opened again.
type models struct {
	options Options
	compute chan struct{} // has room for as many models as compute at once
	stats   *stats

	mu   sync.Mutex
	open []*openModel // the last used one at the end
	gone sync.WaitGroup

	opening sync.Mutex
	opened  compute.Backend // when it is first needed
}

type openModel struct {
	dir   string
	saved time.Time
	*asker
}

func newModels(o Options, st *stats) *models {
	return &models{options: o, compute: make(chan struct{}, max(o.Models, 2)), stats: st}
}

// inspector returns the task of a run, if others can look into its models.
func (m *models) inspector(task string) (command.Inspector, bool) {
	i := slices.IndexFunc(m.options.Tasks, func(t run.Task) bool { return t.Name() == task })
	if i < 0 {
		return nil, false
	}
	in, ok := m.options.Tasks[i].(command.Inspector)
	return in, ok
}

// of returns the model of a run.
func (m *models) of(dir string) (*openModel, command.Inspector, error) {
	r, err := run.Read(dir)
	if err != nil {
		return nil, nil, err
	}
	in, ok := m.inspector(r.Info().Task)
	if !ok {
		return nil, nil, badinput.Errorf("nothing can be asked about models of the task %q", r.Info().Task)
	}
	info, err := os.Stat(filepath.Join(dir, "state"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, errNoModel
	} else if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.open, func(o *openModel) bool { return o.dir == dir })
	var o *openModel
	if i >= 0 {
		o = m.open[i]
		m.open = slices.Delete(m.open, i, i+1)
		if !o.saved.Equal(info.ModTime()) {
			m.drop(o)
			o = nil
		}
	}
	if o == nil {
		o = &openModel{dir: dir, saved: info.ModTime()}
		o.asker = newAsker(m.backend, func(b compute.Backend) (command.Model, error) { return m.inspect(in, b, dir) }, m.compute, m.stats.called)
	}
	if m.open = append(m.open, o); len(m.open) > m.options.Models {
		m.drop(m.open[0])
		m.open = m.open[1:]
	}
	m.stats.models(len(m.open))
	return o, in, nil
}

// drop closes a model when nobody asks it any more.
func (m *models) drop(o *openModel) { m.gone.Go(o.close) }

// backend opens the backend once.
func (m *models) backend() (_ compute.Backend, err error) {
	m.opening.Lock()
	defer m.opening.Unlock()
	if m.opened == nil {
		m.opened, err = m.options.Backend()
	}
	return m.opened, err
}

// inspect opens the model of a run.
func (m *models) inspect(in command.Inspector, b compute.Backend, dir string) (command.Model, error) {
	r, err := run.Read(dir)
	if err != nil {
		return nil, err
	}
	model, skipped, err := in.Inspect(b, r)
	for _, line := range skipped {
		m.options.Log(fmt.Sprintf("warning: %s: %s", dir, line))
	}
	return model, err
}

// close closes all models.
func (m *models) close() {
	m.mu.Lock()
	for _, o := range m.open {
		m.drop(o)
	}
	m.open = nil
	m.mu.Unlock()
	m.gone.Wait()
}

// folder returns the folder of a run that a request names, below the folder that is served: nothing else is looked at.
func (s *server) folder(name string) (string, error) {
	if !filepath.IsLocal(name) || strings.Contains(name, "\\") {
		return "", errNoRun
	}
	dir := filepath.Join(s.options.Dir, filepath.FromSlash(name))
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", errNoRun
	}
	if below, err := filepath.Rel(s.real, real); err != nil || !filepath.IsLocal(below) {
		return "", errNoRun // a link leads elsewhere
	}
	if _, err := os.Stat(filepath.Join(dir, "run.json")); err != nil {
		return "", errNoRun
	}
	return dir, nil
}
