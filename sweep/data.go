package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/run"
)

// relocate brings the data sets of a cell here and returns settings that name them.
func (m *making) relocate(ctx context.Context) (config.Set, error) {
	var out config.Set
	for key, b := range m.job.Data {
		dir, ok := m.local[b.SHA256]
		if !ok {
			dir = filepath.Join(m.Dir, "data-"+b.SHA256)
			if err := m.board().fetch(ctx, m.Dir, b, dir); err != nil {
				if errors.Is(err, errDamaged) {
					m.board().drop(ctx, &b) // the same sweep, given again, sends it again
				}
				return nil, errors.Join(fmt.Errorf("data of %s: %w", key, err), os.RemoveAll(dir))
			}
			m.local[b.SHA256] = dir
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		if len(entries) != 1 {
			return nil, fmt.Errorf("data of %s is not one file or folder", key)
		}
		out = append(out, key+"="+filepath.Join(dir, entries[0].Name()))
	}
	return out, nil
}

// relocated is a task whose data lies elsewhere than a configuration says, which is kept as it is.
type relocated struct {
	run.Task
	there config.Set
}

// Start implements run.Task.
func (r relocated) Start(b compute.Backend, c any) (run.Session, error) {
	moved := reflect.New(reflect.TypeOf(c).Elem())
	moved.Elem().Set(reflect.ValueOf(c).Elem())
	if err := config.Resolve(moved.Interface(), r.there); err != nil {
		return nil, err
	}
	return r.Task.Start(b, moved.Interface())
}

// sendData uploads what a configuration names by path, each path once, and returns it by key.
func (p *Pool) sendData(ctx context.Context, c any) (map[string]blob, error) {
	out := make(map[string]blob)
	for key, path := range config.Paths(c) {
		b, ok := p.data[path]
		if !ok {
			var err error
			b, err = p.board.send(ctx, p.spool(), "data", func(w io.Writer) error { return packPath(path, w) })
			if err != nil {
				return nil, fmt.Errorf("%s = %q: %w", key, path, err)
			}
			p.data[path] = b
		}
		out[key] = b
	}
	return out, nil
}
