package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/suggest"
	"github.com/gfnem/gfnem/report"
)

// Comparison is runs by their settings: what is the same in all of them, what differs, and figures averaged over seeds.
type Comparison struct {
	Runs    []Run // those that count, without broken ones
	Broken  []Run
	Keys    []string // that make a setting
	Groups  []Group  // by value of the keys, in order
	Figures []string // that tables show, the headline first
}

// Options choose what is compared. All may be left out.
type Options struct {
	By      []string // keys that make a setting; nil means those that differ
	Figures []string // of tables; nil means the headline
}

// Compare groups runs by setting.
func Compare(runs []Run, o Options) (*Comparison, error) {
	c := &Comparison{}
	for _, r := range runs {
		if r.Status == Broken {
			c.Broken = append(c.Broken, r)
		} else {
			c.Runs = append(c.Runs, r)
		}
	}
	if len(c.Runs) == 0 {
		return nil, badinput.Errorf("there are no runs to compare")
	}
	if c.Keys = o.By; c.Keys == nil {
		c.Keys = Differ(c.Runs)
	}
	known := c.keys()
	for _, key := range c.Keys {
		if !slices.Contains(known, key) {
			return nil, unknown("key", key, known)
		}
	}
	c.Groups = GroupBy(c.Runs, c.Keys)
	slices.SortStableFunc(c.Groups, func(a, b Group) int { return slices.CompareFunc(a.Values, b.Values, byValue) })
	if c.Figures = o.Figures; c.Figures == nil {
		if headline, _ := Headline(c.Runs); headline != "" {
			c.Figures = []string{headline}
		}
	}
	all := c.AllFigures()
	for _, name := range c.Figures {
		if !slices.Contains(all, name) {
			return nil, unknown("figure", name, all)
		}
	}
	return c, nil
}

func unknown(what, name string, known []string) error {
	if near, ok := suggest.Nearest(name, known); ok {
		return badinput.Errorf("unknown %s %q; did you mean %q?", what, name, near)
	}
	return badinput.Errorf("unknown %s %q; known: %s", what, name, strings.Join(known, ", "))
}

// byValue puts numbers in their order, and before words.
func byValue(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	switch {
	case errX == nil && errY == nil:
		return cmp.Compare(x, y)
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	}
	return natural(a, b)
}

// keys lists those of all configurations.
func (c *Comparison) keys() []string {
	all := map[string]bool{taskKey: true}
	for _, r := range c.Runs {
		for key := range r.Config {
			all[key] = true
		}
	}
	return sortedKeys(all)
}

// AllFigures lists the names of everything that can be averaged: the headline, results, and the last values of metrics.
func (c *Comparison) AllFigures() []string {
	headline, _ := Headline(c.Runs)
	results, last := Figures(c.Runs)
	all := []string{headline}
	if headline == "" {
		all = nil
	}
	for _, name := range append(results, last...) {
		if !slices.Contains(all, name) && !slices.Contains(Repeats, name) {
			all = append(all, name)
		}
	}
	return all
}

// Notes say what a reader of the averages must know.
func (c *Comparison) Notes() (notes []string) {
	seeds, differ := c.Groups[0].seeds(), false
	for _, g := range c.Groups {
		differ = differ || g.seeds() != seeds
	}
	if differ {
		notes = append(notes, "not all settings have the same seeds: part of a difference may be theirs")
	}
	for _, r := range c.Runs {
		if r.Status != Finished {
			notes = append(notes, fmt.Sprintf("%s is %s at step %d of %d: what it has counts", r.Dir, r.Status, r.Step, r.Total))
		}
	}
	for _, r := range c.Broken {
		notes = append(notes, fmt.Sprintf("%s is left out: %s", r.Dir, r.Wrong))
	}
	return notes
}

// seeds are what a group's repetitions are told apart by.
func (g Group) seeds() string {
	var all []string
	for _, r := range g.Runs {
		id := fmt.Sprint(r.Seed)
		for _, key := range Repeats {
			id += " " + r.Config[key]
		}
		all = append(all, id)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// Table shows the settings and the figures that were asked for.
func (c *Comparison) Table() *report.Table {
	t := &report.Table{Title: fmt.Sprintf("%s by setting", report.Count(len(c.Runs), "run")), Notes: []string{"mean ± standard deviation over runs (divisor n−1); n: how many runs are averaged"}}
	t.Notes = append(t.Notes, c.Notes()...)
	names := slices.Concat(c.Keys, c.Figures, []string{"n"})
	if len(c.Keys) == 0 {
		names = append([]string{"setting"}, names...)
	}
	t.Columns = report.Columns(names...)
	for _, g := range c.Groups {
		var row []report.Cell
		if len(c.Keys) == 0 {
			row = append(row, report.Text("all runs"))
		}
		for _, v := range g.Values {
			row = append(row, value(v))
		}
		for _, name := range c.Figures {
			s := g.Stat(name)
			row = append(row, report.MeanSpread(s.Mean, s.Std))
		}
		t.Add(append(row, report.Int(g.count(c.Figures)))...)
	}
	return t
}

// count is how many runs have the first of some figures, or how many there are.
func (g Group) count(figures []string) int {
	if len(figures) == 0 {
		return len(g.Runs)
	}
	return g.Stat(figures[0]).N
}

// value is that of a key as a cell.
func value(v string) report.Cell {
	if v == "" {
		return report.Cell{}
	}
	if x, err := strconv.ParseFloat(v, 64); err == nil && finite(x) {
		decimals := 0
		if _, after, ok := strings.Cut(strconv.FormatFloat(x, 'f', -1, 64), "."); ok {
			decimals = len(after)
		}
		if decimals <= 6 {
			return report.Number(x, decimals)
		}
	}
	return report.Text(v)
}

// setting is a group as JSON.
type setting struct {
	Values  map[string]string `json:"values"`
	Runs    []string          `json:"runs"`
	Seeds   []uint64          `json:"seeds"`
	Figures map[string]stated `json:"figures"`
}

type stated struct {
	Mean report.Cell `json:"mean"`
	Std  report.Cell `json:"std"`
	N    int         `json:"n"`
}

// MarshalJSON implements json.Marshaler: every figure of every setting; a standard deviation of one run is null.
func (c *Comparison) MarshalJSON() ([]byte, error) {
	var out struct {
		Keys     []string  `json:"keys"`
		Settings []setting `json:"settings"`
		Notes    []string  `json:"notes,omitempty"`
	}
	out.Keys, out.Notes = append([]string{}, c.Keys...), c.Notes()
	for _, g := range c.Groups {
		s := setting{Values: map[string]string{}, Figures: map[string]stated{}}
		for i, key := range c.Keys {
			s.Values[key] = g.Values[i]
		}
		for _, r := range g.Runs {
			s.Runs, s.Seeds = append(s.Runs, r.Dir), append(s.Seeds, r.Seed)
		}
		for _, name := range c.AllFigures() {
			if v := g.Stat(name); v.N > 0 {
				s.Figures[name] = stated{report.Number(v.Mean, 0), report.Number(v.Std, 0), v.N}
			}
		}
		out.Settings = append(out.Settings, s)
	}
	return json.Marshal(out)
}

// Rows are a table for other programs, its head first: for each setting the values of the keys, n, and the mean and
// standard deviation of every figure; empty where there is none.
func (c *Comparison) Rows() [][]string {
	all := c.AllFigures()
	head := append(slices.Clone(c.Keys), "n")
	for _, name := range all {
		head = append(head, name, name+" std")
	}
	out := [][]string{head}
	number := func(x float64) string {
		if math.IsNaN(x) {
			return ""
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	for _, g := range c.Groups {
		row := append(slices.Clone(g.Values), strconv.Itoa(len(g.Runs)))
		for _, name := range all {
			s := g.Stat(name)
			row = append(row, number(s.Mean), number(s.Std))
		}
		out = append(out, row)
	}
	return out
}
