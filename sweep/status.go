package sweep

import (
	"encoding/json"
	"path/filepath"
	"sync"
	"time"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/run"
)

// StatusName is a file in a sweep's folder that says how it is going. It is replaced about once a second while the
// sweep runs, and is advice: results are what lies in the grid.
const StatusName = "status.json"

// Snapshot is what it says.
type Snapshot struct {
	Cells   Counts         `json:"cells"`
	Workers []WorkerStatus `json:"workers"`
	Time    time.Time      `json:"time"`
}

// status writes it.
type status struct {
	Snapshot
	dir     string
	mu      sync.Mutex
	at      map[string]int // where a worker stands among Workers
	written time.Time
}

// Counts are numbers of cells.
type Counts struct {
	Total   int `json:"total"`
	Done    int `json:"done"`
	Running int `json:"running"`
	Failed  int `json:"failed"`
}

// WorkerStatus is what a worker does.
type WorkerStatus struct {
	Name  string    `json:"name"`
	Host  string    `json:"host"`
	Cell  string    `json:"cell"` // its folder below the sweep's; "" if the worker has none
	Step  uint64    `json:"step"`
	Total uint64    `json:"total"`
	Seen  time.Time `json:"seen"`
}

func newStatus(dir string) *status {
	return &status{dir: dir, at: make(map[string]int), Snapshot: Snapshot{Workers: []WorkerStatus{}}}
}

// heard notes what an entry says of a worker.
func (s *status) heard(e entry) {
	if e.Worker == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.at[e.Worker]
	if !ok {
		i = len(s.Workers)
		s.at[e.Worker], s.Workers = i, append(s.Workers, WorkerStatus{Name: e.Worker, Host: e.Host})
	}
	w := &s.Workers[i]
	w.Seen = time.Now().UTC().Truncate(time.Millisecond)
	if w.Cell, w.Step, w.Total = "", 0, 0; e.State == claimed {
		w.Cell, w.Step, w.Total = filepath.ToSlash(run.Cell{Row: e.Row, Index: e.Index}.Path()), e.Step, e.Total
	}
}

// write writes the file, at most once a second unless it is the last time.
func (s *status) write(c *collection, last bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !last && time.Since(s.written) < time.Second {
		return nil
	}
	s.Time = time.Now().UTC().Truncate(time.Millisecond)
	s.written = s.Time
	s.Cells = Counts{Total: len(c.cells), Running: len(c.claimed)}
	s.Cells.Done = len(c.cells) - len(c.open)
	for _, err := range c.failed {
		if err != nil {
			s.Cells.Failed++
			s.Cells.Done--
		}
	}
	data, err := json.MarshalIndent(s.Snapshot, "", "  ")
	if err != nil {
		return err
	}
	return disk.WriteFile(filepath.Join(s.dir, StatusName), disk.Content(append(data, '\n')))
}
