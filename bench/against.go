package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// Baseline is the measurements of another implementation, by workload.
type Baseline map[string]Measurement

// ReadBaseline reads a file of measurements, one JSON object a line. Of several for one workload, with different numbers
// of threads perhaps, the best median counts.
func ReadBaseline(path string) (Baseline, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := Baseline{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var m Measurement
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if m.Workload == "" || m.MedianMS <= 0 {
			return nil, fmt.Errorf(`%s:%d: want an object with "workload" and "median_ms"`, path, n)
		}
		if old, ok := b[m.Workload]; !ok || m.MedianMS < old.MedianMS {
			b[m.Workload] = m
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(b) == 0 {
		return nil, fmt.Errorf("%s: no measurement", path)
	}
	return b, nil
}
