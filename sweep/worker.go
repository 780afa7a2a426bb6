package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/gomlx/compute"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/run"
)

// Worker makes cells of a sweep, one after the other.
type Worker struct {
	Tasks    []run.Task
	Backend  compute.Backend
	Computes string // what Backend is, for the runs' provenance
	Dir      string // of what it works on
	Sweep    string // its id; "" means the only one
	Patience time.Duration
	Program  string    // "" means this one
	Log      io.Writer // a line for each cell and each mishap

	name   string
	leaves string // folder in which the pool finds what it has made; "" means that it sends that
	board  *board
	lease  time.Duration
	local  map[string]string // where data sets lie here, by hash
	// prepared is the configuration of the last cell whose data had to be read.
	prepared any
}

// Run makes cells until the sweep is over. When ctx ends it saves, hands its cell back for somebody else to go on, and
// returns run.ErrInterrupted.
func (w *Worker) Run(ctx context.Context, nc *nats.Conn) (err error) {
	if w.Program == "" {
		w.Program = Program()
	}
	host, _ := os.Hostname() // advice
	if w.name == "" {
		w.name = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	w.local = make(map[string]string)
	leave, err := w.enter()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	if err := w.join(ctx, nc); err != nil {
		return err
	}
	heard := time.Now() // from the server
	for ctx.Err() == nil {
		h, err := w.next(ctx, entry{Worker: w.name, Host: host, Program: w.Program})
		switch {
		case errors.Is(err, errOver):
			return nil
		case nc.IsClosed():
			return badinput.Errorf("the server of the sweep refuses us now: %w", cleaned{nc.LastError()})
		case err != nil && time.Since(heard) > w.Patience:
			return badinput.Errorf("the server of the sweep has not answered for %s: %w", w.Patience, err)
		case err != nil:
			pause(ctx, 200*time.Millisecond)
			continue
		}
		heard = time.Now()
		if h == nil {
			continue
		}
		if err := w.make(ctx, h); err != nil {
			return err
		}
		heard = time.Now()
	}
	return context.Cause(ctx)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (w *Worker) say(format string, args ...any) {
	if w.Log != nil {
		fmt.Fprintln(w.Log, clean(fmt.Sprintf(format, args...)))
	}
}

// join waits until there is a sweep, and checks that it is one of this program.
func (w *Worker) join(ctx context.Context, nc *nats.Conn) error {
	for begin := time.Now(); ; pause(ctx, 200*time.Millisecond) {
		b, err := openBoard(ctx, nc, w.Sweep)
		var h head
		if err == nil {
			w.board = b
			_, err = b.get(ctx, headKey, &h)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errSeveral), err != nil && time.Since(begin) > w.Patience:
			return err
		case err != nil:
			continue
		}
		if err := w.fits(h); err != nil {
			return err
		}
		return b.agree(ctx, w.Computes)
	}
}

// fits returns an error if a sweep is not of this program.
func (w *Worker) fits(h head) error {
	if h.Format != format || h.Program != w.Program {
		return badinput.Errorf("the sweep is made by another build of the program (%s) than this one (%s): give its workers the same",
			clean(h.Program), w.Program)
	}
	return nil
}

var errOver = errors.New("the sweep is over")

// next claims a cell; nil if there is none for now.
func (w *Worker) next(ctx context.Context, by entry) (*hold, error) {
	var h head
	if _, err := w.board.get(ctx, headKey, &h); err != nil {
		if _, gone := openBoard(ctx, w.board.js.Conn(), w.board.id); errors.Is(gone, errNoSweep) {
			return nil, errOver // a cluster that goes on after the sweep
		}
		return nil, err
	} else if h.Over {
		return nil, errOver
	} else if err := w.fits(h); err != nil {
		return nil, err
	}
	w.lease = h.Lease // another one, if the sweep was begun again
	wait, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	batch, err := w.board.todo.Fetch(1, jetstream.FetchContext(wait))
	if err != nil {
		return nil, boardError(err)
	}
	select {
	case <-ctx.Done():
		return nil, nil
	case m := <-batch.Messages():
		if m == nil {
			break
		}
		held, err := w.board.claim(ctx, string(m.Data()), by)
		if err != nil {
			_ = m.Nak() // else it comes back by itself
			return nil, err
		}
		_ = m.Ack()
		return held, nil
	}
	if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, context.DeadlineExceeded) {
		return nil, boardError(err)
	}
	return nil, nil
}

// enter takes a folder for this worker alone, below Dir, and removes those of workers that were killed. Workers do so
// one after the other, and so they leave: a folder is to be seen only with its lock.
func (w *Worker) enter() (leave func() error, err error) {
	if err := disk.MkdirAll(disk.OS{}, w.Dir); err != nil {
		return nil, err
	}
	all := flock.New(filepath.Join(w.Dir, "lock"))
	if err := all.Lock(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, all.Unlock()) }()
	old, err := os.ReadDir(w.Dir)
	if err != nil {
		return nil, err
	}
	const prefix = "worker-"
	for _, e := range old {
		if path := filepath.Join(w.Dir, e.Name()); e.IsDir() && len(e.Name()) > len(prefix) && e.Name()[:len(prefix)] == prefix {
			lock := flock.New(filepath.Join(path, "lock"))
			if ok, err := lock.TryLock(); ok && err == nil {
				err = errors.Join(os.RemoveAll(path), lock.Unlock())
				if err != nil {
					return nil, err
				}
			}
		}
	}
	dir, err := os.MkdirTemp(w.Dir, prefix)
	if err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	if err := lock.Lock(); err != nil {
		return nil, err
	}
	w.Dir = dir
	return func() error { return errors.Join(all.Lock(), os.RemoveAll(dir), lock.Unlock(), all.Unlock()) }, nil
}
