// Package serve shows runs in a browser and lets other programs ask their models, over HTTP.
//
//	err := serve.Run(ctx, serve.Options{Dir: "runs", Tasks: tasks, Backend: open})
//
// The page lists all runs below a folder, with their curves, live; and looks inside of models. It is plain HTML with
// scripts and styles of ours and uPlot, all of it in the binary. The questions that models answer are those of tasks
// that implement command.Inspector: package serve knows no task.
//
// Where things are:
//
//	serve.go, guard.go           the server; who may ask it
//	pages.go                     HTML
//	index.go, entry.go, curve.go runs and their curves, kept up to date and downsampled
//	keep.go                      how much memory curves take
//	runs.go, query.go, events.go what pages ask of them
//	api.go, openapi.go, stats.go questions to models; their description; counters
//	models.go, asker.go          opened models; requests that are answered together
//	stoppable.go, limits.go      ends work that nobody waits for; how much is read at once
package serve

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run"
)

// Options say what is served, and how much of it.
type Options struct {
	Dir     string     // runs in it and below it
	Tasks   []run.Task // of runs whose models can be asked
	Backend func() (compute.Backend, error)
	Token   string            // that clients must have; "" is for a server that answers to its own machine alone
	Log     func(line string) // what a user should know; may be nil

	// Limits of questions to models. Zero means the usual.
	Timeout time.Duration // from question to answer: 30 s
	Bytes   int64         // of a request: 8 MiB
	Items   int           // sentences, images and the like of a request: 1024
	Queue   int           // requests that wait: 256
	Models  int           // in memory: 4

	Curves  int64 // bytes of memory for curves: 512 MiB
	Total   int64 // bytes of all requests that are read and answered at once: 64 MiB
	Streams int   // clients that listen to events: 200
}

func (o Options) withDefaults() Options {
	o.Timeout, o.Bytes = cmp.Or(o.Timeout, 30*time.Second), cmp.Or(o.Bytes, 8<<20)
	o.Items, o.Queue, o.Models = cmp.Or(o.Items, 1024), cmp.Or(o.Queue, 256), cmp.Or(o.Models, 4)
	o.Curves, o.Total, o.Streams = cmp.Or(o.Curves, 512<<20), cmp.Or(o.Total, 64<<20), cmp.Or(o.Streams, 200)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}

// server is what handlers share.
type server struct {
	options Options
	real    string // Dir without links
	index   *index
	models  *models
	stats   *stats
	// questions are the names of what models of any task can be asked.
	questions map[string]bool
	drawing   chan struct{} // is held while curves are laid out, which takes memory
	bodies    bodies
	streams   chan struct{} // has room for as many clients as may listen

	closing atomic.Bool
	ended   chan struct{} // closed when clients should not wait for more
}

// Server serves a folder by its Handler, until it is closed.
type Server struct {
	s    *server
	stop context.CancelFunc
	done chan struct{}
}

// New prepares to serve a folder, and begins to look at it.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	real, err := filepath.EvalSymlinks(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &server{options: o, real: real, stats: newStats(), ended: make(chan struct{})}
	s.questions, s.drawing = map[string]bool{aboutQuestion: true}, make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, t := range o.Tasks {
		if in, ok := t.(command.Inspector); ok {
			for _, q := range in.Questions() {
				s.questions[q.Name] = true
			}
		}
	}
	s.bodies.most, s.streams = o.Total, make(chan struct{}, o.Streams)
	s.index, s.models = newIndex(o.Dir, o.Curves, o.Log), newModels(o, s.stats)
	ctx, stop := context.WithCancel(context.Background())
	out := &Server{s, stop, make(chan struct{})}
	go func() {
		defer close(out.done)
		s.index.run(ctx)
	}()
	return out, nil
}

// Handler answers requests.
func (v *Server) Handler() http.Handler { return v.s.guard(v.s.routes()) }

func (s *server) routes() http.Handler {
	m := http.NewServeMux()
	for pattern, h := range s.handlers() {
		m.HandleFunc(pattern, h)
	}
	return m
}

// handlers answer requests, by pattern.
func (s *server) handlers() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /healthz":          func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]string{"status": "ok"}) },
		"GET /metrics":          s.stats.ServeHTTP,
		"GET /api/openapi.json": s.openAPI,
		"GET /api/runs":         s.listRuns,
		"GET /api/events":       s.events,
		"GET /api/status":       s.workers,
		"POST /api/curves":      s.curves,
		"POST /api/{question}":  s.question,
		"/api/": func(w http.ResponseWriter, r *http.Request) {
			refuse(w, http.StatusNotFound, "there is nothing here: /api/openapi.json says what there is")
		},
		"GET /{$}":              s.home,
		"GET /run":              s.runPage,
		"GET /report/{path...}": s.report,
		"GET /static/":          assets(),
	}
}

// stopWaiting ends what goes on until clients leave.
func (v *Server) stopWaiting() {
	if v.s.closing.CompareAndSwap(false, true) {
		close(v.s.ended)
	}
}

// Close waits for what is being computed, and closes all models. Handlers must have returned.
func (v *Server) Close() {
	v.stopWaiting()
	v.stop()
	<-v.done
	v.s.models.close()
}

// CheckAddress refuses to serve other machines without a token.
func CheckAddress(listen, token string) error {
	host, _, err := net.SplitHostPort(listen)
	switch {
	case err != nil:
		return badinput.Errorf("--listen %s: give HOST:PORT, such as 127.0.0.1:8080: %w", listen, err)
	case token == "" && !isLoopback(host):
		return badinput.Errorf("--listen %s can be reached from other machines, so a token is needed: set GFNEM_TOKEN to a secret of 16 characters or more",
			listen)
	case token != "" && len(token) < 16:
		return badinput.Errorf("a token of %d characters can be guessed: give 16 or more", len(token))
	}
	return nil
}

// Run serves at an address until the context ends, and then finishes what runs, for as long as grace. It says at which
// address when it listens.
func Run(ctx context.Context, listen string, o Options, grace time.Duration, at func(addr string)) error {
	if err := CheckAddress(listen, o.Token); err != nil {
		return err
	}
	v, err := New(o)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		v.Close()
		return badinput.Errorf("--listen %s: %w", listen, err)
	}
	h := &http.Server{
		Handler: v.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 16,
	}
	h.RegisterOnShutdown(v.stopWaiting)
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	at(l.Addr().String())
	select {
	case err = <-failed:
	case <-ctx.Done():
		end, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if err = h.Shutdown(end); errors.Is(err, context.DeadlineExceeded) {
			h.Close()
		}
	}
	v.Close()
	return err
}
