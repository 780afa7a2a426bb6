package serve

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/catalog"
)

// listed is a run as lists have it.
type listed struct {
	Name     string            `json:"name"`
	Task     string            `json:"task"`
	Status   string            `json:"status"`
	Step     uint64            `json:"step"`
	Total    uint64            `json:"total"`
	Seed     uint64            `json:"seed"`
	Updated  time.Time         `json:"updated"`
	Headline *run.Headline     `json:"headline,omitempty"`
	Config   map[string]string `json:"config,omitempty"` // keys in which runs differ
	Wrong    string            `json:"wrong,omitempty"`
	Report   bool              `json:"report"`
}

// list is the answer to GET /api/runs.
type list struct {
	Runs    []listed `json:"runs"`
	All     int      `json:"all"`     // without the query
	Keys    []string `json:"keys"`    // of the configuration, in which these runs differ
	Metrics []string `json:"metrics"` // that they log
	Metric  string   `json:"metric"`  // of these, the one to look at first
	Asked   []string `json:"asked"`   // tasks whose models can be asked
	Version uint64   `json:"version"`
	Reading int      `json:"reading"` // runs whose curves have not been read whole yet
}

// name is that of a run for clients: its folder below the one that is served, with slashes.
func (s *server) name(dir string) string {
	below, err := filepath.Rel(s.options.Dir, dir)
	if err != nil {
		return dir
	}
	return filepath.ToSlash(below)
}

// listRuns answers with the runs that a query holds of.
func (s *server) listRuns(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query().Get("q"))
	if err != nil {
		s.fail(w, statusOf(err), err)
		return
	}
	all, version, reading := s.index.snapshot(r.Context())
	out := list{Runs: []listed{}, All: len(all), Version: version, Reading: reading, Asked: s.asked()}
	chosen := s.choose(all, q, r.URL.Query()["name"])
	if out.Keys = catalog.Differ(chosen); out.Keys == nil {
		out.Keys = []string{}
	}
	metrics := logged(chosen)
	for _, one := range chosen {
		l := listed{
			Name: s.name(one.Dir), Task: one.Task, Status: string(one.Status), Step: one.Step, Total: one.Total,
			Seed: one.Seed, Updated: one.Updated, Wrong: one.Wrong, Config: map[string]string{},
		}
		if h := one.Headline; h != nil && !math.IsNaN(h.Value) && !math.IsInf(h.Value, 0) {
			l.Headline = h
		}
		for _, key := range out.Keys {
			if v, ok := lookUp(key, l.Name, one); ok {
				l.Config[key] = v
			}
		}
		l.Report = hasReport(one.Dir)
		out.Runs = append(out.Runs, l)
	}
	out.Metrics = slices.AppendSeq([]string{}, maps.Keys(metrics))
	slices.Sort(out.Metrics)
	out.Metric = first(metrics)
	reply(w, out)
}

// logged counts how many runs log a metric.
func logged(runs []catalog.Run) map[string]int {
	out := map[string]int{}
	for _, one := range runs {
		for name := range one.Last {
			out[name]++
		}
	}
	return out
}

// first is the metric that most runs log, of those that are a likelihood or a loss, if there are such.
func first(metrics map[string]int) string {
	told := func(name string) int {
		return slices.IndexFunc([]string{"grad", "loss", "bound", "loglik"}, func(part string) bool { return strings.Contains(name, part) })
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if best == "" || cmp.Or(cmp.Compare(min(told(name), 1), min(told(best), 1)), cmp.Compare(metrics[name], metrics[best]), cmp.Compare(told(name), told(best))) > 0 {
			best = name
		}
	}
	return best
}

// asked lists the tasks whose models can be asked.
func (s *server) asked() []string {
	names := []string{}
	for _, t := range s.options.Tasks {
		if _, ok := t.(command.Inspector); ok {
			names = append(names, t.Name())
		}
	}
	return names
}

// choose returns the runs that a query holds of, and of these the named ones, if there are names.
func (s *server) choose(all []catalog.Run, q query, names []string) (out []catalog.Run) {
	for _, one := range all {
		name := s.name(one.Dir)
		if q.holds(name, one) && (len(names) == 0 || slices.Contains(names, name)) {
			out = append(out, one)
		}
	}
	return out
}

// curvesRequest asks for a metric of many runs on shared steps.
type curvesRequest struct {
	Metric  string   `json:"metric"` // "" is the one to look at first
	Query   string   `json:"q"`
	Runs    []string `json:"runs"`    // none: all that the query holds of
	Group   []string `json:"group"`   // keys: a mean and a band for each group of runs
	Grouped bool     `json:"grouped"` // also without keys: one group of all
	Smooth  float64  `json:"smooth"`  // 0: least and greatest values; from there up to 1: means, smoothed
	Log     bool     `json:"log"`     // of the steps
	Points  int      `json:"points"`
}

// drawnSeries describes one series of the answer.
type drawnSeries struct {
	Name    string `json:"name"`
	Runs    int    `json:"runs"`
	Partial bool   `json:"partial,omitempty"` // from a few places only, until all has been read
}

// curves answers with a length, a JSON object of that many bytes, and numbers in single precision: the steps, then each
// series; of groups the mean, the mean less its standard deviation over runs, and the mean and that.
func (s *server) curves(w http.ResponseWriter, r *http.Request) {
	var q curvesRequest
	body, err := readBody(w, r, 1<<20)
	if err == nil {
		if e := json.Unmarshal(body, &q); e != nil {
			err = badRequest("the request is not one for curves: %v", e)
		}
	}
	var terms query
	if err == nil {
		terms, err = parseQuery(q.Query)
	}
	if err == nil && (q.Points < 0 || q.Points > 2000 || !(q.Smooth >= 0 && q.Smooth < 1)) {
		err = badRequest("points are from 0 to 2000, and smooth from 0 to below 1")
	}
	if err != nil {
		s.fail(w, statusOf(err), err)
		return
	}
	all, version, reading := s.index.snapshot(r.Context())
	chosen := s.choose(all, terms, q.Runs)
	q.Metric = cmp.Or(q.Metric, first(logged(chosen)))
	select {
	case s.drawing <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	d := s.draw(q, chosen)
	<-s.drawing
	head, err := json.Marshal(struct {
		Metric  string        `json:"metric"`
		Series  []drawnSeries `json:"series"`
		Points  int           `json:"points"`
		Parts   int           `json:"parts"` // 1, or 3 of groups
		Version uint64        `json:"version"`
		Reading int           `json:"reading"`
	}{q.Metric, d.series, len(d.x), d.parts, version, reading})
	if err != nil {
		s.fail(w, http.StatusInternalServerError, err)
		return
	}
	for len(head)%4 != 0 {
		head = append(head, ' ')
	}
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	out = append(out, head...)
	for _, row := range append([][]float64{d.x}, d.rows...) {
		for _, v := range row {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(out)
}

// drawing is curves on shared steps.
type drawing struct {
	x      []float64
	series []drawnSeries
	rows   [][]float64
	parts  int
}

// draw lays out the curves of runs.
func (s *server) draw(q curvesRequest, runs []catalog.Run) drawing {
	g := grid{low: math.Inf(1), high: math.Inf(-1), n: 300, log: q.Log}
	if q.Points > 0 {
		g.n = max(q.Points/2, 2)
	}
	if len(runs) > 200 && !q.Grouped && len(q.Group) == 0 {
		g.n = min(g.n, 200) // so many cannot be told apart anyway
	}
	type one struct {
		curve
		run   catalog.Run
		whole bool
	}
	all := make([]one, len(runs))
	var wg sync.WaitGroup
	for part := range slices.Chunk(all, len(all)/runtime.GOMAXPROCS(0)+1) {
		from := runs[:len(part)]
		runs = runs[len(part):]
		wg.Go(func() {
			for i, r := range from {
				if part[i].run = r; s.index.entry(r.Dir) != nil {
					part[i].curve, part[i].whole = s.index.entry(r.Dir).curve(q.Metric)
				}
			}
		})
	}
	wg.Wait()
	var found []one
	for _, c := range all {
		if low, high, ok := c.span(); ok {
			g.low, g.high = min(g.low, low), max(g.high, high)
			found = append(found, c)
		}
	}
	d := drawing{series: []drawnSeries{}, parts: 1}
	if len(found) == 0 {
		return d
	}
	grouped := q.Grouped || len(q.Group) > 0
	smooth := 1.0
	if q.Smooth > 0 {
		smooth = math.Pow(float64(g.n)/2, q.Smooth)
	}
	plain := q.Smooth == 0 && !grouped
	for i := range g.n {
		if d.x = append(d.x, g.edge(float64(i))); plain {
			d.x = append(d.x, g.edge(float64(i)+.5))
		}
	}
	if !grouped {
		for _, c := range found {
			d.series = append(d.series, drawnSeries{s.name(c.run.Dir), 1, !c.whole})
			row := extremes(c.on(g))
			if !plain {
				row = means(c.on(g), smooth)
			}
			d.rows = append(d.rows, row)
		}
		return d
	}
	d.parts = 3
	at, order := map[string][]one{}, []string{}
	for _, c := range found {
		values := []string{}
		for _, key := range q.Group {
			v, _ := lookUp(key, s.name(c.run.Dir), c.run)
			values = append(values, fmt.Sprintf("%s=%s", key, v))
		}
		label := "all runs"
		if len(values) > 0 {
			label = strings.Join(values, " ")
		}
		if at[label] == nil {
			order = append(order, label)
		}
		at[label] = append(at[label], c)
	}
	for _, label := range order {
		var rows [][]float64
		partial := false
		for _, c := range at[label] {
			rows = append(rows, filled(means(c.on(g), smooth)))
			partial = partial || !c.whole
		}
		mean, low, high := band(rows)
		d.series = append(d.series, drawnSeries{label, len(rows), partial})
		d.rows = append(d.rows, mean, low, high)
	}
	return d
}

// band is the mean of rows, and that less and more one standard deviation, of those that have a value there.
func band(rows [][]float64) (mean, low, high []float64) {
	for i := range rows[0] {
		var values []float64
		for _, row := range rows {
			if !math.IsNaN(row[i]) {
				values = append(values, row[i])
			}
		}
		st := catalog.StatOf(values)
		spread := st.Std
		if st.N < 2 {
			spread = 0
		}
		mean, low, high = append(mean, st.Mean), append(low, st.Mean-spread), append(high, st.Mean+spread)
	}
	return mean, low, high
}
