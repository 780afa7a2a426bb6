package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

// format is that of everything below: another one is another program.
const format = 1

// prefix begins the names of everything that belongs to a sweep.
const prefix = "gfnem_"

const headKey, cellKeys, jobKeys = "sweep", "cell.", "job."

// board is what a pool and its workers see of each other.
type board struct {
	id    string
	js    jetstream.JetStream
	kv    jetstream.KeyValue
	blobs jetstream.ObjectStore
	todo  jetstream.Consumer
}

// head says what a sweep is.
type head struct {
	Format  int           `json:"format"`
	Program string        `json:"program"` // see Program
	Lease   time.Duration `json:"lease"`
	Over    bool          `json:"over"`
	// Computes is what computes all cells, since another processor or device may give other last digits: that of who
	// came first. Mixed lets others take part.
	Computes string `json:"computes"`
	Mixed    bool   `json:"mixed"`
}

// job is what the cells of a grid have in common, and one's configuration.
type job struct {
	Task    string          `json:"task"`
	Config  string          `json:"config"`
	Command []string        `json:"command"`
	Every   time.Duration   `json:"every"`
	Data    map[string]blob `json:"data,omitempty"` // by key of the configuration
}

// blob is a file in the object store.
type blob struct {
	Name string `json:"name"`
	disk.Digest
}

type state string

const (
	todo    state = "todo"
	claimed state = "claimed"
	done    state = "done"   // its result is there
	kept    state = "kept"   // and is in the grid's folder
	failed  state = "failed" // see entry.Error
)

// entry is what the board knows of a cell.
type entry struct {
	Row        string  `json:"row"`
	Index      int     `json:"index"`
	Until      float64 `json:"until,omitempty"`
	Job        string  `json:"job"` // its key
	State      state   `json:"state"`
	Epoch      uint64  `json:"epoch"` // how often it was claimed: the fencing token
	Worker     string  `json:"worker,omitempty"`
	Host       string  `json:"host,omitempty"`
	Program    string  `json:"program,omitempty"` // of the worker
	Step       uint64  `json:"step,omitempty"`
	Total      uint64  `json:"total,omitempty"`
	Checkpoint *blob   `json:"checkpoint,omitempty"`
	Result     *blob   `json:"result,omitempty"`
	Error      string  `json:"error,omitempty"`
	BadInput   bool    `json:"bad_input,omitempty"` // a user can mend it
	Broken     *blob   `json:"broken,omitempty"`    // of its data, which a worker has found damaged on the server
	Lost       int     `json:"lost,omitempty"`      // workers, since the last checkpoint
}

func (e entry) String() string { return fmt.Sprintf("%s, run %d", e.Row, e.Index) }

func bucket(id string) string  { return prefix + id }
func subject(id string) string { return prefix + id + ".todo" }

// makeBoard makes a sweep's places, or finds them. The object store holds at most so many bytes.
func makeBoard(ctx context.Context, nc *nats.Conn, id string, limit int64) (b *board, err error) {
	b = &board{id: id}
	if b.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(5*time.Second)); err != nil {
		return nil, err
	}
	if b.kv, err = b.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket(id), History: 1}); err != nil {
		return nil, boardError(err)
	}
	if b.blobs, err = b.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: bucket(id), MaxBytes: limit}); err != nil {
		return nil, boardError(err)
	}
	if _, err = b.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: bucket(id), Subjects: []string{subject(id)}, Retention: jetstream.WorkQueuePolicy,
	}); err != nil {
		return nil, boardError(err)
	}
	b.todo, err = b.js.CreateOrUpdateConsumer(ctx, bucket(id), jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 5 * time.Second,
	})
	return b, boardError(err)
}

// openBoard finds the places of a sweep, the only one if it is not named.
func openBoard(ctx context.Context, nc *nats.Conn, id string) (b *board, err error) {
	b = &board{id: id}
	if b.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(5*time.Second)); err != nil {
		return nil, err
	}
	if b.id == "" {
		var ids []string
		names := b.js.KeyValueStoreNames(ctx)
		for name := range names.Name() {
			if id, ok := strings.CutPrefix(strings.TrimPrefix(name, "KV_"), prefix); ok {
				ids = append(ids, id)
			}
		}
		switch {
		case names.Error() != nil:
			return nil, boardError(names.Error())
		case len(ids) == 0:
			return nil, errNoSweep
		case len(ids) > 1:
			return nil, badinput.Errorf("%w: choose one by --sweep %s", errSeveral, clean(strings.Join(ids, ", or ")))
		}
		b.id = ids[0]
	}
	if b.kv, err = b.js.KeyValue(ctx, bucket(b.id)); err == nil {
		b.blobs, err = b.js.ObjectStore(ctx, bucket(b.id))
	}
	if err == nil {
		b.todo, err = b.js.Consumer(ctx, bucket(b.id), "workers")
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) ||
		errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, errNoSweep
	}
	return b, boardError(err)
}

var (
	errNoSweep = badinput.Errorf("the server has no such sweep")
	errSeveral = errors.New("there are several sweeps")
)

// remove removes everything of a sweep from a server.
func (b *board) remove(ctx context.Context) error {
	return boardError(errors.Join(b.js.DeleteKeyValue(ctx, bucket(b.id)), b.js.DeleteObjectStore(ctx, bucket(b.id)),
		b.js.DeleteStream(ctx, bucket(b.id))))
}

func boardError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return badinput.Errorf("the server has no JetStream: %w", err)
	}
	const noRoom = 10047 // not among the names of the client
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == noRoom {
		return badinput.Errorf("the sweep's server has too little room: lower --limit, or remove what sweeps before have left there")
	}
	return &serverError{err}
}

// serverError is what a server answers, or that it does not: it says nothing of a cell, and passes.
type serverError struct{ cause error }

func (s *serverError) Error() string { return fmt.Sprintf("the sweep's server: %v", cleaned{s.cause}) }
func (s *serverError) Unwrap() error { return s.cause }

// agree checks that who computes by something gives the same bits as all others of the sweep; the first one decides.
func (b *board) agree(ctx context.Context, computes string) error {
	for {
		var h head
		revision, err := b.get(ctx, headKey, &h)
		if err != nil || h.Mixed || h.Computes == computes {
			return err
		}
		if h.Computes != "" {
			return badinput.Errorf("the sweep is computed by %s, and here that is %s, which gives other last digits: set GFNEM_SIMD to "+
				"the lowest instructions of all machines, or give the sweep --mixed", clean(h.Computes), computes)
		}
		h.Computes = computes
		if err = b.update(ctx, headKey, h, revision); !errors.Is(err, errStale) {
			return err
		}
	}
}

// put stores a value as JSON.
func (b *board) put(ctx context.Context, key string, v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		_, err = b.kv.Put(ctx, key, data)
	}
	return boardError(err)
}

// update stores a value as JSON in place of a revision, 0 if there is none; errStale if it is not the newest.
func (b *board) update(ctx context.Context, key string, v any, revision uint64) error {
	data, err := json.Marshal(v)
	if err == nil {
		_, err = b.kv.Update(ctx, key, data, revision)
	}
	return changeError(err)
}

// get reads a value and returns its revision.
func (b *board) get(ctx context.Context, key string, v any) (revision uint64, err error) {
	e, err := b.kv.Get(ctx, key)
	if err != nil {
		return 0, boardError(err)
	}
	return e.Revision(), boardError(disk.Decode(e.Value(), v))
}

// post tells workers of a cell that is to do.
func (b *board) post(ctx context.Context, key string) error {
	_, err := b.js.Publish(ctx, subject(b.id), []byte(key))
	return boardError(err)
}

// offer puts a cell on the board, in place of what revision of it is there; 0 if none is.
func (b *board) offer(ctx context.Context, key string, e entry, revision uint64) error {
	e.State, e.Worker, e.Host, e.Program, e.Result, e.Error, e.BadInput, e.Broken = todo, "", "", "", nil, "", false, nil
	if err := b.update(ctx, key, e, revision); err != nil {
		return err
	}
	return b.post(ctx, key)
}

// errStale says that somebody else has changed an entry: a claim that was renewed too late is refused.
var errStale = errors.New("the claim is stale: somebody else has the cell")

func changeError(err error) error {
	if errors.Is(err, jetstream.ErrKeyExists) {
		return errStale
	}
	return boardError(err)
}

// hold is a cell that a worker has claimed.
type hold struct {
	*board
	key string

	mu       sync.Mutex
	entry    entry
	revision uint64
}

// claim claims a cell that is to do; nil if it is not, or somebody else was faster.
func (b *board) claim(ctx context.Context, key string, by entry) (*hold, error) {
	h := &hold{board: b, key: key}
	var err error
	if h.revision, err = b.get(ctx, key, &h.entry); errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	} else if err != nil || h.entry.State != todo {
		return nil, err
	}
	e := h.entry
	e.State, e.Epoch, e.Worker, e.Host, e.Program = claimed, e.Epoch+1, by.Worker, by.Host, by.Program
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	h.entry = e
	h.revision, err = b.kv.Update(ctx, key, data, h.revision)
	if err = changeError(err); errors.Is(err, errStale) {
		return nil, nil
	}
	return h, err
}

// change changes a claimed cell; errStale if the claim was lost. If an answer was lost, the same may be asked again.
func (h *hold) change(ctx context.Context, f func(*entry)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		next := h.entry
		f(&next)
		data, err := json.Marshal(next)
		if err != nil {
			return err
		}
		revision, err := h.kv.Update(ctx, h.key, data, h.revision)
		if err == nil {
			h.entry, h.revision = next, revision
			return nil
		}
		if err = changeError(err); !errors.Is(err, errStale) {
			return err
		}
		// Perhaps it was ourselves, and the answer was lost.
		now, err := h.kv.Get(ctx, h.key)
		if err != nil {
			return boardError(err)
		}
		var other entry
		if err := disk.Decode(now.Value(), &other); err != nil {
			return boardError(err)
		}
		if bytes.Equal(now.Value(), data) {
			h.entry, h.revision = next, now.Revision()
			return nil
		}
		if other.State != claimed || other.Epoch != h.entry.Epoch || other.Worker != h.entry.Worker {
			return errStale
		}
		h.entry, h.revision = other, now.Revision()
	}
}

// now returns the cell as it was changed last.
func (h *hold) now() entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.entry
}
