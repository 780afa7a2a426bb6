package bench

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gfnem/gfnem/internal/input"
)

// Baseline is the results of another implementation, by workload.
type Baseline map[string]Result

// ReadBaseline reads results, one JSON object a line. Of several for one workload, with different numbers of threads
// perhaps, the best median counts.
func ReadBaseline(path string) (Baseline, error) {
	text, err := input.Read(path, 1<<24)
	if err != nil {
		return nil, err
	}
	b := Baseline{}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var r Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		if r.Workload == "" || r.MedianMS <= 0 {
			return nil, fmt.Errorf(`%s:%d: want an object with "workload" and "median_ms"`, path, i+1)
		}
		if old, ok := b[r.Workload]; !ok || r.MedianMS < old.MedianMS {
			b[r.Workload] = r
		}
	}
	if len(b) == 0 {
		return nil, fmt.Errorf("%s: no measurement", path)
	}
	return b, nil
}
