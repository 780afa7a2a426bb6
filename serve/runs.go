package serve

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
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
	Name     string            `json:"name" help:"its folder, below the one that is served"`
	Task     string            `json:"task"`
	Status   string            `json:"status" help:"running, finished, stopped or broken"`
	Step     uint64            `json:"step"`
	Total    uint64            `json:"total" help:"steps; 0 if that is not known"`
	Seed     uint64            `json:"seed"`
	Updated  time.Time         `json:"updated" help:"when it saved last"`
	Headline *run.Headline     `json:"headline,omitempty" help:"its figure"`
	Config   map[string]string `json:"config,omitempty" help:"the keys in which runs differ"`
	Wrong    string            `json:"wrong,omitempty" help:"what could not be read"`
	Report   bool              `json:"report" help:"whether it has one"`
}

// list is the answer to GET /api/runs.
type list struct {
	Runs    []listed `json:"runs"`
	All     int      `json:"all" help:"how many there are without the query"`
	Keys    []string `json:"keys" help:"of the configuration, in which these runs differ"`
	Metrics []string `json:"metrics" help:"that they log"`
	Metric  string   `json:"metric" help:"of these, the one to look at first"`
	Asked   []string `json:"asked" help:"tasks whose models can be asked"`
	Version uint64   `json:"version" help:"greater whenever something has changed"`
	Reading int      `json:"reading" help:"runs that have not been read whole yet"`
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
			Seed: one.Seed, Updated: one.Updated, Wrong: s.wrong(one), Config: map[string]string{},
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

// wrong says what could not be read of a run, as somebody who looks at it wants to know.
func (s *server) wrong(r catalog.Run) string {
	text := r.Wrong
	if e := s.index.entry(r.Dir); e != nil {
		if journal := e.problem(); journal != "" {
			parts := slices.DeleteFunc(strings.Split(text, "; "), func(part string) bool {
				return part == "" || strings.HasPrefix(part, catalog.TailProblem) // it says the same of all of the journal
			})
			text = strings.Join(append(parts, journal), "; ")
		}
	}
	return strings.ReplaceAll(text, r.Dir+string(filepath.Separator), "")
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
	Metric  string   `json:"metric,omitempty" help:"if left out, the one to look at first"`
	Query   string   `json:"q,omitempty" help:"as of /api/runs"`
	Runs    []string `json:"runs,omitempty" help:"of these alone; if left out, all that the query holds of"`
	Group   []string `json:"group,omitempty" help:"keys: a mean and a band for each group of runs with the same values"`
	Grouped bool     `json:"grouped,omitempty" help:"also without keys: one group of all"`
	Smooth  float64  `json:"smooth,omitempty" help:"0: least and greatest values; more, below 1: means, smoothed"`
	Log     bool     `json:"log,omitempty" help:"a logarithmic axis of steps"`
	Points  int      `json:"points,omitempty" help:"of each curve, about; 600 if left out, at most 2000"`
}

// drawnSeries describes one series of the answer.
type drawnSeries struct {
	Name    string `json:"name"`
	Runs    int    `json:"runs"`
	Partial bool   `json:"partial,omitempty"` // from a few places only, until all has been read
	Other   int    `json:"other,omitempty"`   // values that are not finite: gaps, where nothing else was logged
}

// curves answers with a length, a JSON object of that many bytes, and numbers in single precision: the steps, then each
// series; of groups the mean, the mean less its standard deviation over runs, and the mean and that. NaN stands where
// nothing was logged, and infinity where nothing finite was.
func (s *server) curves(w http.ResponseWriter, r *http.Request) {
	var q curvesRequest
	body, done, err := s.bodies.read(w, r, 1<<20)
	defer done()
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
	d := func() drawing {
		defer func() { <-s.drawing }()
		return s.draw(q, chosen)
	}()
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

// drawn is a curve of a run that is being laid out.
type drawn struct {
	run       catalog.Run
	entry     *entry
	low, high float64 // its first and its last step
	series    drawnSeries
	row       []float64
}

// draw lays out the curves of runs.
func (s *server) draw(q curvesRequest, runs []catalog.Run) drawing {
	g := grid{low: math.Inf(1), high: math.Inf(-1), n: 300, log: q.Log}
	if q.Points > 0 {
		g.n = max(q.Points/2, 2)
	}
	grouped := q.Grouped || len(q.Group) > 0
	if len(runs) > 200 && !grouped {
		g.n = min(g.n, 200) // so many cannot be told apart anyway
	}
	all, now := make([]*drawn, len(runs)), s.index.clock.Add(1)
	inParts(len(runs), func(i int) {
		e := s.index.entry(runs[i].Dir)
		if e == nil {
			return
		}
		one := &drawn{run: runs[i], entry: e}
		whole := e.look(q.Metric, now, func(c *curve) {
			if low, high, ok := c.span(); ok {
				all[i], one.low, one.high, one.series.Other = one, low, high, c.other
			}
		})
		one.series.Name, one.series.Runs, one.series.Partial = s.name(runs[i].Dir), 1, !whole
	})
	all = slices.DeleteFunc(all, func(one *drawn) bool { return one == nil })
	d := drawing{series: []drawnSeries{}, parts: 1}
	if len(all) == 0 {
		return d
	}
	partial := false
	for _, one := range all {
		g.low, g.high = min(g.low, one.low), max(g.high, one.high)
		partial = partial || one.series.Partial
	}
	if partial {
		s.index.poke() // those that were let go are read again
	}
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
	inParts(len(all), func(i int) {
		all[i].entry.look(q.Metric, now, func(c *curve) {
			if plain {
				all[i].row = extremes(c.on(g))
			} else {
				all[i].row = means(c.on(g), smooth)
			}
		})
	})
	all = slices.DeleteFunc(all, func(one *drawn) bool { return one.row == nil }) // written anew meanwhile
	if grouped {
		d.group(q.Group, all)
		return d
	}
	for _, one := range all {
		d.series, d.rows = append(d.series, one.series), append(d.rows, one.row)
	}
	return d
}

// group draws the means and bands of curves with the same values of some keys.
func (d *drawing) group(keys []string, all []*drawn) {
	d.parts = 3
	at, runs := map[string]*drawn{}, make([]catalog.Run, len(all))
	for i, one := range all {
		at[one.run.Dir], runs[i] = one, one.run
	}
	for _, g := range catalog.GroupBy(runs, keys) {
		sum := drawnSeries{Name: g.Label(keys), Runs: len(g.Runs)}
		var members []catalog.Series
		for _, r := range g.Runs {
			one := at[r.Dir]
			members = append(members, series(d.x, one.row))
			sum.Partial, sum.Other = sum.Partial || one.series.Partial, sum.Other+one.series.Other
		}
		b := catalog.BandAt(members, d.x)
		low, high := make([]float64, len(d.x)), make([]float64, len(d.x))
		for i, m := range b.Mean {
			switch {
			case b.N[i] == 0:
				b.Mean[i], low[i], high[i] = gap, gap, gap
			case b.N[i] == 1:
				low[i], high[i] = m, m
			default:
				low[i], high[i] = m-b.Std[i], m+b.Std[i]
			}
		}
		d.series, d.rows = append(d.series, sum), append(d.rows, b.Mean, low, high)
	}
}

// inParts calls f for all numbers below n, several at a time.
func inParts(n int, f func(i int)) {
	var wg sync.WaitGroup
	part := n/runtime.GOMAXPROCS(0) + 1
	for from := 0; from < n; from += part {
		wg.Go(func() {
			for i := from; i < min(from+part, n); i++ {
				f(i)
			}
		})
	}
	wg.Wait()
}
