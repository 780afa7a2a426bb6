package bench

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/input"
)

// Figures are the results of a program, by workload.
type Figures map[string]Result

// ReadFigures reads results, one JSON object a line. Of several rounds of a workload on as many threads the median counts,
// and of several numbers of threads the best.
func ReadFigures(path string) (Figures, error) {
	text, err := input.Read(path, 1<<24)
	if err != nil {
		return nil, err
	}
	type setting struct {
		workload string
		threads  int
	}
	rounds := map[setting][]Result{}
	for i, line := range strings.Split(string(text), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var r Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, badinput.Errorf("%s:%d: %w", path, i+1, err)
		}
		if r.Workload == "" || r.MedianMS <= 0 {
			return nil, badinput.Errorf(`%s:%d: want an object with "workload" and "median_ms"`, path, i+1)
		}
		at := setting{r.Workload, r.Threads}
		rounds[at] = append(rounds[at], r)
	}
	best := Figures{}
	for at, all := range rounds {
		slices.SortFunc(all, func(a, b Result) int { return cmp.Compare(a.MedianMS, b.MedianMS) })
		r := all[len(all)/2]
		for _, x := range all {
			r.MinMS = min(r.MinMS, x.MinMS)
		}
		if old, ok := best[at.workload]; !ok || r.MedianMS < old.MedianMS {
			best[at.workload] = r
		}
	}
	if len(best) == 0 {
		return nil, badinput.Errorf("%s: no measurement", path)
	}
	return best, nil
}
