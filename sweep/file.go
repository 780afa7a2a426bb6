package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/input"
	"github.com/gfnem/gfnem/internal/suggest"
	"github.com/gfnem/gfnem/run"
)

// Plan is what a sweep's file asks for: every combination of the values of its axes, a row each, with every seed.
type Plan struct {
	File    string
	Task    run.Task
	Axes    []string // keys
	Rows    []Row
	Seeds   []uint64
	Metrics []string // to tabulate; nil means all numbers of the results
	Halving *Halving // nil means that all cells are trained to their end

	metricsAt string // where they are named, for errors
}

// Row is a setting.
type Row struct {
	Name   string   // of its folder
	Values []string // of each axis, as TOML writes them
	Cells  []run.Cell
}

const maxFile, maxCells = 1 << 20, 100_000

// fileKeys are the keys of a sweep's file.
var fileKeys = []string{"task", "preset", "seeds", "set", "axes", "table", "halving"}

// reader reads a sweep's file.
type reader struct {
	path string
	meta toml.MetaData
	top  map[string]toml.Primitive
}

func parse(text string) (r *reader, err error) {
	r = &reader{}
	r.meta, err = toml.Decode(text, &r.top)
	return r, err
}

// at says where a value stands.
func (r *reader) at(value toml.Primitive) string { return r.path + config.Line(r.meta, value) }

// errorf is an error about a key and its value.
func (r *reader) errorf(key string, value toml.Primitive, format string, args ...any) error {
	return badinput.Errorf("%s: key %q: %w", r.at(value), key, fmt.Errorf(format, args...))
}

// scalar reads a value of a type, if there is one.
func scalar[T any](r *reader, table map[string]toml.Primitive, section, key, want string, to *T) error {
	value, ok := table[key]
	if !ok {
		return nil
	}
	if err := r.meta.PrimitiveDecode(value, to); err != nil {
		return r.errorf(section+key, value, "want %s", want)
	}
	return nil
}

// known returns an error for a key of a table that means nothing.
func (r *reader) known(table map[string]toml.Primitive, section string, keys ...string) error {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if slices.Contains(keys, key) {
			continue
		}
		if near, ok := suggest.Nearest(key, keys); ok {
			return badinput.Errorf("%s: unknown key %q; did you mean %q?", r.at(table[key]), section+key, section+near)
		}
		return badinput.Errorf("%s: unknown key %q; known: %s", r.at(table[key]), section+key, strings.Join(keys, ", "))
	}
	return nil
}

// section reads a table.
func (r *reader) section(key string) (table map[string]toml.Primitive, err error) {
	value, ok := r.top[key]
	if !ok {
		return nil, nil
	}
	if table, ok = r.tableOf(value); !ok {
		return nil, r.errorf(key, value, "want a table")
	}
	return table, nil
}

// tableOf reads a value that may be a table.
func (r *reader) tableOf(value toml.Primitive) (table map[string]toml.Primitive, ok bool) {
	var got any
	_ = r.meta.PrimitiveDecode(value, &got) // anything fits
	if _, ok := got.(map[string]any); !ok {
		return nil, false
	}
	return table, r.meta.PrimitiveDecode(value, &table) == nil
}

// Load reads a sweep's file. What is wrong with it is an error that names key and line.
func Load(path string, tasks []run.Task) (*Plan, error) {
	data, err := input.Read(path, maxFile)
	if err != nil {
		return nil, badinput.Errorf("read the sweep: %w", err)
	}
	r, err := parse(string(data))
	if e, ok := errors.AsType[toml.ParseError](err); ok {
		return nil, badinput.Errorf("%s:%d: %s", path, e.Position.Line, e.Message)
	} else if err != nil {
		return nil, badinput.Errorf("%s: %w", path, err)
	}
	r.path = path
	if err := r.known(r.top, "", fileKeys...); err != nil {
		return nil, err
	}
	p := &Plan{File: path}
	preset, err := r.base(p, tasks)
	if err != nil {
		return nil, err
	}
	if err := r.rows(p, preset); err != nil {
		return nil, err
	}
	if err := r.table(p); err != nil {
		return nil, err
	}
	return p, r.halving(p)
}

// base reads the task and its preset.
func (r *reader) base(p *Plan, tasks []run.Task) (preset string, err error) {
	var name string
	if _, ok := r.top["task"]; !ok {
		return "", badinput.Errorf("%s: key \"task\" is missing", r.path)
	}
	if err := errors.Join(scalar(r, r.top, "", "task", "the name of a task", &name),
		scalar(r, r.top, "", "preset", "the name of a preset", &preset)); err != nil {
		return "", err
	}
	var names []string
	for _, t := range tasks {
		if names = append(names, t.Name()); t.Name() == name && p.Task == nil {
			p.Task = t
		}
	}
	if p.Task == nil {
		return "", r.errorf("task", r.top["task"], "%q is not one of %s", name, strings.Join(names, ", "))
	}
	if known := p.Task.Presets(); preset != "" && !slices.Contains(known, preset) {
		return "", r.errorf("preset", r.top["preset"], "%q is not one of %s", preset, strings.Join(known, ", "))
	}
	return cmp.Or(preset, p.Task.Presets()[0]), nil
}

// rows reads what is set, the axes and the seeds, and makes all cells.
func (r *reader) rows(p *Plan, preset string) error {
	set, err := r.settings("set")
	if err != nil {
		return err
	}
	axes, err := r.settings("axes")
	if err != nil {
		return err
	}
	var base []config.Layer
	for _, s := range set {
		if len(s.values) != 1 {
			return badinput.Errorf("%s: key %q: want one value; several belong into [axes]", s.where, s.key)
		}
		base = append(base, s.layer(0))
	}
	if err := r.seeds(p, preset); err != nil {
		return err
	}
	rows := 1
	for _, a := range axes {
		p.Axes = append(p.Axes, a.key)
		if a.key == "seed" {
			return badinput.Errorf("%s: key \"axes.seed\": seeds are given by the key \"seeds\"", a.where)
		}
		if i := slices.IndexFunc(set, func(s setting) bool { return s.key == a.key }); i >= 0 {
			return badinput.Errorf("%s: key %q is in [set], too", a.where, "axes."+a.key)
		}
		if rows *= len(a.values); rows*len(p.Seeds) > maxCells {
			return badinput.Errorf("%s: key %q: these are more than %d cells", a.where, "axes."+a.key, maxCells)
		}
	}
	names := make(map[string]bool)
	for n := range rows {
		row, layers := Row{}, slices.Clone(base)
		for i, left := len(axes)-1, n; i >= 0; i-- { // the last axis changes fastest
			k := left % len(axes[i].values)
			left /= len(axes[i].values)
			layers = append(layers, axes[i].layer(k))
			row.Values = append(row.Values, axes[i].values[k])
		}
		slices.Reverse(row.Values)
		row.Name = rowName(p.Axes, row.Values, names)
		for _, seed := range p.Seeds {
			c := p.Task.Config(preset)
			all := layers
			if r.hasSeed(c) {
				all = append(slices.Clone(layers), config.At{Where: r.path, Setting: fmt.Sprintf("seed=%d", seed)})
			}
			if err := config.Resolve(c, all...); err != nil {
				if strings.HasPrefix(err.Error(), r.path) {
					return err
				}
				return badinput.Errorf("%s: row %s: %w", r.path, row.Name, err)
			}
			row.Cells = append(row.Cells, run.Cell{Row: row.Name, Index: int(seed), Config: c})
		}
		p.Rows = append(p.Rows, row)
	}
	return nil
}

func (r *reader) hasSeed(c any) bool { return slices.Contains(config.Keys(c), "seed") }

// seeds reads the seeds: how many, or which.
func (r *reader) seeds(p *Plan, preset string) error {
	value, ok := r.top["seeds"]
	if !ok {
		p.Seeds = []uint64{0}
		return nil
	}
	const want = "want how many, such as 5, or which, such as [1, 2, 3] or {from = 1, to = 3}"
	var count int64
	if r.meta.PrimitiveDecode(value, &count) == nil {
		if count < 1 || count > maxCells {
			return r.errorf("seeds", value, want)
		}
		for k := range count {
			p.Seeds = append(p.Seeds, uint64(k))
		}
	} else {
		values, err := r.values("seeds", value)
		if err != nil {
			return err
		}
		taken := make(map[uint64]bool)
		for _, v := range values {
			seed, ok := v.(int64)
			if !ok || seed < 0 {
				return r.errorf("seeds", value, want)
			}
			if taken[uint64(seed)] {
				return r.errorf("seeds", value, "%d occurs twice", seed)
			}
			taken[uint64(seed)] = true
			p.Seeds = append(p.Seeds, uint64(seed))
		}
	}
	if len(p.Seeds) > 1 && !r.hasSeed(p.Task.Config(preset)) {
		return r.errorf("seeds", value, "the task %s has no key seed, so that all runs of a row are the same", p.Task.Name())
	}
	return nil
}

// table reads what is to be tabulated.
func (r *reader) table(p *Plan) error {
	table, err := r.section("table")
	if err != nil {
		return err
	}
	if err := r.known(table, "table.", "metrics"); err != nil {
		return err
	}
	p.metricsAt = r.path
	if value, ok := table["metrics"]; ok {
		p.metricsAt = r.at(value)
	}
	return scalar(r, table, "table.", "metrics", "a list of names", &p.Metrics)
}

// halving reads the rule by which settings are given up.
func (r *reader) halving(p *Plan) error {
	if _, ok := r.top["halving"]; !ok {
		return nil
	}
	table, err := r.section("halving")
	if err != nil {
		return err
	}
	h := &Halving{Better: "high", Factor: 3, Rungs: 3}
	if err := errors.Join(r.known(table, "halving.", "metric", "better", "factor", "rungs"),
		scalar(r, table, "halving.", "metric", "the name of a metric", &h.Metric),
		scalar(r, table, "halving.", "better", `"high" or "low"`, &h.Better),
		scalar(r, table, "halving.", "factor", "an integer", &h.Factor),
		scalar(r, table, "halving.", "rungs", "an integer", &h.Rungs)); err != nil {
		return err
	}
	switch {
	case h.Metric == "":
		return r.errorf("halving", r.top["halving"], "metric is missing: by what are settings compared?")
	case h.Better != "high" && h.Better != "low":
		return r.errorf("halving.better", table["better"], `%q is not "high" or "low"`, h.Better)
	case h.Factor < 2 || h.Factor > 100:
		return r.errorf("halving.factor", table["factor"], "%d is not between 2 and 100", h.Factor)
	case h.Rungs < 2 || h.Rungs > 10:
		return r.errorf("halving.rungs", table["rungs"], "%d is not between 2 and 10", h.Rungs)
	}
	p.Halving = h
	return nil
}

var unusual = regexp.MustCompile(`[^A-Za-z0-9=.,+_-]+`)

// rowName is the name of a row's folder, which no other row has.
func rowName(axes, values []string, taken map[string]bool) string {
	const most = 100
	var parts []string
	for i, key := range axes {
		parts = append(parts, key+"="+values[i])
	}
	exact := strings.Join(parts, ",")
	name := cmp.Or(strings.Trim(unusual.ReplaceAllString(strings.ReplaceAll(exact, `"`, ""), "_"), "."), "base")
	if len(name) > most || taken[strings.ToLower(name)] {
		name = name[:min(len(name), most)] + "-" + disk.DigestOf([]byte(exact)).SHA256[:8]
	}
	taken[strings.ToLower(name)] = true
	return name
}

// Cells returns all cells, row by row.
func (p *Plan) Cells() (cells []run.Cell) {
	for _, row := range p.Rows {
		cells = append(cells, row.Cells...)
	}
	return cells
}
