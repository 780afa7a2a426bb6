package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"

	"github.com/gomlx/compute"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/crash"
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
					err = &brokenData{b, err}
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

// brokenData says that data are damaged on the server.
type brokenData struct {
	blob  blob
	cause error
}

func (b *brokenData) Error() string { return b.cause.Error() }
func (b *brokenData) Unwrap() error { return b.cause }

// relocated is a task whose data lies elsewhere than a configuration says, which is kept as it is.
type relocated struct {
	run.Task
	moved any // the configuration with data as they lie here
}

// Start implements run.Task.
func (r relocated) Start(b compute.Backend, _ any) (run.Session, error) {
	return r.Task.Start(b, r.moved)
}

// bringData brings the data of the cell here, prepared, and returns a task that learns from them.
func (m *making) bringData(ctx context.Context, task run.Task) (here run.Task, err error) {
	defer crash.Recover(&err)
	here = task
	c := m.cell.Config
	if m.leaves == "" && len(m.job.Data) > 0 {
		there, err := m.relocate(ctx)
		if err != nil {
			return nil, err
		}
		moved := reflect.New(reflect.TypeOf(c).Elem())
		moved.Elem().Set(reflect.ValueOf(c).Elem())
		c = moved.Interface()
		if err := config.Resolve(c, there); err != nil {
			return nil, err
		}
		here = relocated{task, c}
	}
	s, ok := c.(run.Sharer)
	if !ok || m.prepared != nil && s.Share(m.prepared) {
		return here, nil
	}
	m.prepared = nil
	_, err = run.Await(ctx, run.Grace, func() ([]string, error) { return run.Prepare(task, c) })
	if err == nil {
		m.prepared = c
	}
	return here, err
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

// resend uploads data of a cell again that a worker has found damaged on the server, and puts the cell back. If they are
// other data now the cell fails.
func (c *collection) resend(ctx context.Context, key string, cell run.Cell, e entry, revision uint64) error {
	before := c.jobs[e.Job].Data
	for _, b := range before {
		if b != *e.Broken {
			continue
		}
		f, err := c.board.download(ctx, c.spool(), b)
		if err == nil { // somebody was faster
			if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
				return err
			}
			break
		}
		if !errors.Is(err, errDamaged) {
			return err
		}
		c.warn("%s: its data on the server are damaged, and sent again", e)
		if err := c.board.blobs.Delete(ctx, b.Name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return boardError(err)
		}
		for _, path := range config.Paths(cell.Config) {
			delete(c.data, path)
		}
		now, err := c.sendData(ctx, cell.Config)
		if err != nil && !errors.As(err, new(*badinput.Error)) {
			return err
		} else if err == nil && !maps.Equal(now, before) {
			err = errors.New("its data have changed since the sweep began: give the same command again")
		}
		if err != nil {
			e.Error, e.Broken = oneLine(err), nil
			return c.board.update(ctx, key, e, revision)
		}
		break
	}
	return c.lose(ctx, key, e, revision)
}
