package sweep

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/gomlx/compute"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/run"
)

// PoolOptions say where a pool's cells are made. All but Dir may be left out.
type PoolOptions struct {
	Dir      string // of the grid
	Tasks    []run.Task
	Workers  int             // in this process
	Backend  compute.Backend // of those
	Computes string          // what it is
	Listen   string          // HOST:PORT for others, where port 0 becomes one that is free; "" means none
	NATS     string          // addresses of a NATS cluster to use instead of a server in this process
	Sweep    string          // names the sweep there; "" means by the folder
	Keys     *Keys           // nil means none
	Mixed    bool            // lets workers compute by different backends and processors
	Lease    time.Duration   // how long a worker may be silent; 0 means 15 s
	Limit    int64           // bytes that checkpoints, results and data may take on the server; 0 means 16 GiB
	Log      io.Writer       // for warnings and progress; nil means none
}

// Pool is a run.Pool over NATS. It must be closed.
type Pool struct {
	PoolOptions
	lock   *flock.Flock
	server *embedded
	nc     *nats.Conn
	board  *board
	life   string          // begins the names of this process's workers
	data   map[string]blob // what was uploaded, by path
	jobs   map[string]job
	// leftovers are folders that workers of pools before this one have left.
	leftovers map[string]bool

	working context.Context         // of the workers here
	stop    context.CancelCauseFunc // ends them
	workers sync.WaitGroup
	mu      sync.Mutex
	ended   error // of the first worker here that failed
	over    bool  // everything was made
	status  *status
	now     func() time.Time // tells when leases end
}

var _ run.Pool = (*Pool)(nil)

// hidden is what a pool has below the grid's folder, until everything is made.
const hidden = ".sweep"

func (p *Pool) below(name string) string { return filepath.Join(p.Dir, hidden, name) }
func (p *Pool) spool() string            { return p.below("tmp") }

// OpenPool takes a grid's folder, starts a server or connects to one, and starts the workers of this process.
func OpenPool(ctx context.Context, o PoolOptions) (_ *Pool, err error) {
	p := &Pool{PoolOptions: o, life: here + rand.Text()[:6] + "/", data: make(map[string]blob), jobs: make(map[string]job), status: newStatus(o.Dir), now: time.Now}
	if p.Lease == 0 {
		p.Lease = 15 * time.Second
	}
	if p.Limit == 0 {
		p.Limit = 16 << 30
	}
	if p.Keys == nil {
		p.Keys = &Keys{}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := p.enter(); err != nil {
		return nil, err
	}
	if err := p.connect(ctx); err != nil {
		return nil, p.explain(err)
	}
	if err := p.announce(ctx); err != nil {
		return nil, p.explain(err)
	}
	p.working, p.stop = context.WithCancelCause(context.Background())
	for i := range p.Workers {
		p.startWorker(i)
	}
	return p, nil
}

// enter locks the folder and clears what a killed pool has left.
func (p *Pool) enter() error {
	if err := disk.MkdirAll(disk.OS{}, filepath.Join(p.Dir, hidden)); err != nil {
		return err
	}
	lock := flock.New(p.below("lock"))
	ok, err := lock.TryLock()
	if err != nil {
		return err
	} else if !ok {
		return badinput.Errorf("%s is in use by another sweep: wait for its end, or choose another --out", p.Dir)
	}
	p.lock = lock
	for _, name := range []string{"tmp", "in"} {
		if err := errors.Join(os.RemoveAll(p.below(name)), os.Mkdir(p.below(name), 0o777)); err != nil {
			return err
		}
	}
	left, err := os.ReadDir(p.below(leftName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.leftovers = make(map[string]bool)
	for _, e := range left {
		p.leftovers[e.Name()] = true
	}
	return nil
}

// connect finds the server and the sweep's places there.
func (p *Pool) connect(ctx context.Context) (err error) {
	id := p.Sweep
	if id == "" {
		if id, err = p.id(); err != nil {
			return err
		}
	}
	if p.NATS != "" {
		p.nc, err = Dial(ctx, p.NATS, "sweep", p.Keys, 10*time.Second)
	} else {
		if p.server, err = startServer(p.below("nats"), p.Listen, p.Keys, p.Limit+1<<30); err != nil {
			return err
		}
		p.Listen = p.server.address(p.Listen)
		p.nc, err = connectIn(p.server, p.Keys)
	}
	if err != nil {
		return err
	}
	p.board, err = makeBoard(ctx, p.nc, id, p.Limit)
	return err
}

// announce says what the sweep is. What computes it is kept.
func (p *Pool) announce(ctx context.Context) error {
	for {
		var h head
		revision, err := p.board.get(ctx, headKey, &h)
		if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
			return err
		}
		h = head{Format: format, Program: Program(), Lease: p.Lease, Over: p.over, Computes: h.Computes, Mixed: p.Mixed}
		if err = p.board.update(ctx, headKey, h, revision); err == nil {
			break
		} else if !errors.Is(err, errStale) { // else a worker has just said what it computes by
			return err
		}
	}
	if p.Workers == 0 {
		return nil
	}
	return p.board.agree(ctx, p.Computes)
}

// id returns the name of the sweep, which it has for good.
func (p *Pool) id() (string, error) {
	data, err := disk.ReadFile(p.below("id"))
	if errors.Is(err, fs.ErrNotExist) {
		data = []byte(strings.ToLower(rand.Text()[:12]))
		err = disk.WriteFile(p.below("id"), disk.Content(data))
	}
	return string(data), err
}

// here begins the names of workers of this process, and of those before it.
const here = "here-"

func (p *Pool) startWorker(i int) {
	w := &Worker{
		Tasks: p.Tasks, Backend: p.Backend, Computes: p.Computes, Dir: p.below("work"), Sweep: p.board.id, Patience: time.Minute,
		name: fmt.Sprintf("%s%d", p.life, i+1), leaves: p.below(leftName), Log: warnings{p},
	}
	p.workers.Go(func() {
		err := w.Run(p.working, p.nc)
		if err != nil && p.working.Err() == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.ended = errors.Join(p.ended, err)
		}
	})
}

// explain says that the disk is full, or fails, if that may be why a server here does not do what it is asked.
func (p *Pool) explain(err error) error {
	if p.server == nil || err == nil {
		return err
	}
	f, _, full := spool(p.spool(), disk.Content(make([]byte, 1<<16)))
	if full == nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return fmt.Errorf("%w: make room there, or mend that, and give the same command again (%w)", full, err)
}

// failure is what keeps workers here from working.
func (p *Pool) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.server.failure(p.below("nats")); err != nil {
		return err
	}
	return p.ended
}

// warnings passes on those of workers, and drops what else they say.
type warnings struct{ *Pool }

func (w warnings) Write(line []byte) (int, error) {
	if text, ok := strings.CutPrefix(string(line), "warning: "); ok {
		w.warn("%s", strings.TrimSpace(text))
	}
	return len(line), nil
}

func (p *Pool) warn(format string, args ...any) {
	if p.Log != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		fmt.Fprintln(p.Log, "warning:", clean(fmt.Sprintf(format, args...)))
	}
}

// Finish says that everything is made: workers end, and Close leaves nothing but the grid.
func (p *Pool) Finish(ctx context.Context) error {
	p.over = true
	err := p.announce(ctx)
	if p.server != nil {
		const most = 5 * time.Second // for workers to hear of it
		for begin := time.Now(); p.server.NumClients() > 1 && time.Since(begin) < most && ctx.Err() == nil; {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return err
}

// Close ends the workers of this process, which save and hand back what they make, and the server.
func (p *Pool) Close() (err error) {
	if p.stop != nil {
		p.stop(run.ErrInterrupted)
		p.workers.Wait()
	}
	if p.board != nil && p.board.todo != nil && p.over && p.NATS != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = p.board.remove(ctx)
	}
	if p.nc != nil {
		p.nc.Close()
	}
	if p.server != nil {
		p.server.stop()
	}
	if p.lock == nil {
		return err
	}
	if p.over {
		err = errors.Join(err, os.RemoveAll(filepath.Join(p.Dir, hidden)))
	}
	return errors.Join(err, p.lock.Unlock())
}

// keyOf is the key of a cell.
func keyOf(c run.Cell) string {
	sum := sha256.Sum256([]byte(filepath.ToSlash(c.Path())))
	return cellKeys + hex.EncodeToString(sum[:12])
}

// offerCell puts a cell on the board, unless it is there already as it should be.
func (p *Pool) offerCell(ctx context.Context, g run.Grid, c run.Cell, begun bool) error {
	text, err := config.Encode(c.Config)
	if err != nil {
		return err
	}
	data, err := p.sendData(ctx, c.Config)
	if err != nil {
		return err
	}
	j := job{Task: g.Task.Name(), Config: text, Command: g.Command, Every: g.Every, Data: data}
	identity, err := json.Marshal(job{Task: j.Task, Config: j.Config, Data: data}) // the rest may change
	if err != nil {
		return err
	}
	next := entry{Row: c.Row, Index: c.Index, Until: c.Until, Job: jobKeys + disk.DigestOf(identity).SHA256}
	p.jobs[next.Job] = j
	if err := p.board.put(ctx, next.Job, j); err != nil {
		return err
	}
	key := keyOf(c)
	var old entry
	revision, err := p.board.get(ctx, key, &old)
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return err
	}
	next.Epoch = old.Epoch
	if old.Job == next.Job && old.Until == next.Until && old.State != kept && old.State != failed {
		dead := old.State == claimed && strings.HasPrefix(old.Worker, here) && !strings.HasPrefix(old.Worker, p.life)
		if old.State != todo && !dead { // somebody has it
			delete(p.leftovers, leftFolder(key, old.Epoch))
			return nil
		}
		next.Checkpoint = old.Checkpoint
	}
	if next.Checkpoint == nil && begun {
		packed, err := p.board.send(ctx, p.spool(), fmt.Sprintf("%s/%d", key, next.Epoch), func(w io.Writer) error {
			_, err := run.Pack(filepath.Join(p.Dir, c.Path()), w)
			return err
		})
		if err == nil {
			next.Checkpoint = &packed
		} else if !errors.Is(err, run.ErrNoCheckpoint) {
			return err
		}
	}
	return p.board.offer(ctx, key, next, revision)
}
