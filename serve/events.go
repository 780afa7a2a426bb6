package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		s.fail(w, statusOf(errStreams), errStreams)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	out.SetReadDeadline(time.Time{}) // a client that listens says nothing more
	stop := s.index.watch()
	defer stop()
	version, changed, reading := s.index.next()
	for {
		out.SetWriteDeadline(time.Now().Add(takenWithin))
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
				out.SetWriteDeadline(time.Now().Add(takenWithin))
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

// sweeping is what a sweep says of its cells and workers, and when.
type sweeping struct {
	Name    string    `json:"name"`
	Status  any       `json:"status"`
	Written time.Time `json:"written"`
}

// workers answers with what the sweeps below the folder say.
func (s *server) workers(w http.ResponseWriter, r *http.Request) {
	runs, _, _ := s.index.snapshot(r.Context())
	folders := map[string]bool{s.options.Dir: true}
	for _, one := range runs {
		for dir := filepath.Dir(one.Dir); !folders[dir] && s.name(dir) != ".." && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			folders[dir] = true
		}
	}
	out := []sweeping{}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		path := filepath.Join(dir, sweepStatus)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		one := sweeping{Name: s.name(dir)}
		data, e := disk.ReadFile(path)
		if err = cmp.Or(err, e); err == nil {
			one.Written = info.ModTime()
			err = json.Unmarshal(data, &one.Status)
		}
		if err != nil {
			s.options.Log(fmt.Sprintf("error: %s: %v", path, err)) // the others are shown
			continue
		}
		out = append(out, one)
	}
	reply(w, out)
}
