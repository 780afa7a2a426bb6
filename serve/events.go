package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gfnem/gfnem/internal/disk"
)

// Events come no more often than eventEvery, and where nothing happens a comment keeps the connection.
const (
	eventEvery = 500 * time.Millisecond
	keepAlive  = 15 * time.Second
)

// events tells a page, as server-sent events, when something has changed: runs, or what they log.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	stop := s.index.watch()
	defer stop()
	version, changed, reading := s.index.next()
	for {
		if _, err := fmt.Fprintf(w, "data: {\"version\":%d,\"reading\":%d}\n\n", version, reading); err != nil {
			return
		}
		if err := out.Flush(); err != nil {
			return
		}
		for waiting := true; waiting; {
			select {
			case <-r.Context().Done():
				return
			case <-s.ended:
				return
			case <-changed:
				waiting = false
			case <-time.After(keepAlive):
				if _, err := fmt.Fprint(w, ": still here\n\n"); err != nil || out.Flush() != nil {
					return
				}
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		case <-time.After(eventEvery):
		}
		version, changed, reading = s.index.next()
	}
}

// sweepStatus is the file in which a sweep says how it stands.
const sweepStatus = "status.json"

// workers answers with what a sweep in the folder says of its workers, and when; null where there is no sweep.
func (s *server) workers(w http.ResponseWriter, _ *http.Request) {
	path := filepath.Join(s.options.Dir, sweepStatus)
	data, err := disk.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		reply(w, nil)
		return
	}
	var status any
	if err == nil {
		err = json.Unmarshal(data, &status)
	}
	if err != nil {
		s.fail(w, http.StatusInternalServerError, fmt.Errorf("%s: %w", sweepStatus, err))
		return
	}
	written := time.Time{}
	if info, err := os.Stat(path); err == nil {
		written = info.ModTime()
	}
	reply(w, map[string]any{"status": status, "written": written})
}
