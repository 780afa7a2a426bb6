package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/run"
)

func TestLoad(t *testing.T) {
	p := plan(t, `task = "count"
preset = "long"
seeds = [4, 2]
[set]
total = 5
[axes]
data = ["none", "a/b"]
add = {from = 1, to = 2, step = 0.5}
`)
	if !slices.Equal(p.Axes, []string{"data", "add"}) || !slices.Equal(p.Seeds, []uint64{4, 2}) {
		t.Errorf("axes %q, seeds %v", p.Axes, p.Seeds)
	}
	var names []string
	for _, row := range p.Rows {
		names = append(names, row.Name)
	}
	want := []string{"data=none,add=1.0", "data=none,add=1.5", "data=none,add=2.0", "data=a_b,add=1.0", "data=a_b,add=1.5", "data=a_b,add=2.0"}
	if !slices.Equal(names, want) {
		t.Errorf("rows %q", names)
	}
	cell := p.Rows[4].Cells[1]
	c := *cell.Config.(*countConfig)
	if here, _ := filepath.Abs("a/b"); c != (countConfig{Seed: 2, Total: 5, Add: 1.5, Data: here}) || cell.Index != 2 || len(p.Cells()) != 12 {
		t.Errorf("cell %+v of %d: %+v", cell, len(p.Cells()), c)
	}
}

func TestRanges(t *testing.T) {
	for text, want := range map[string]string{
		"{from = 1, to = 4}":                                "1 2 3 4",
		"{from = 1, to = 9, step = 4}":                      "1 5 9",
		"{from = 0.1, to = 0.3, step = 0.1}":                "0.1 0.2 0.3",
		"{from = 1, to = 9, count = 3}":                     "1 5 9",
		"{from = 1, to = 2, count = 3}":                     "1 1.5 2",
		`{from = 1e-3, to = 0.1, count = 5, scale = "log"}`: "0.001 0.00316227766017 0.01 0.0316227766017 0.1",
		`{from = 1, to = 1000, count = 4, scale = "log"}`:   "1 10 100 1000",
		`[3, 1, "x", true]`:                                 "3 1 x true",
		"{from = -1, to = 1, count = 3}":                    "-1 0 1",
	} {
		r, err := parse("a = " + text)
		if err != nil {
			t.Fatal(err)
		}
		values, err := r.values("a", r.top["a"])
		if got := strings.Trim(fmt.Sprint(values), "[]"); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

// What is wrong with a file is said with its line and key.
func TestLoadErrors(t *testing.T) {
	dir := disktest.MemoryDir(t)
	for text, want := range map[string]string{
		"":                                  `: key "task" is missing`,
		"task = 3":                          `:1: key "task": want the name of a task`,
		"task = \"cont\"":                   `:1: key "task": "cont" is not one of count`,
		"taks = \"count\"":                  `:1: unknown key "taks"; did you mean "task"?`,
		"task = \"count":                    `:1: strings cannot contain newlines`,
		"preset = \"x\"":                    `:2: key "preset": "x" is not one of short, long`,
		"seeds = 0":                         `:2: key "seeds": want how many, such as 5, or which, such as [1, 2, 3] or {from = 1, to = 3}`,
		"seeds = [1, -1]":                   `:2: key "seeds": want how many, such as 5, or which, such as [1, 2, 3] or {from = 1, to = 3}`,
		"seeds = [1, 1]":                    `:2: key "seeds": 1 occurs twice`,
		"set = 3":                           `:2: key "set": want a table`,
		"[set]\ntotl = 3":                   `:3: unknown key "totl"; did you mean "total"?`,
		"[set]\ntotal = 0":                  `:3: total = 0 is not between 1 and 1000000`,
		"[set]\ntotal = [1]":                `:3: key "total": want an integer, got an array of 1`,
		"[axes]\n\nadd = []":                `:4: key "axes.add": the list is empty`,
		"[axes]\nadd = 1":                   `:3: key "axes.add": want a list, such as [1, 2], or a range, such as {from = 1, to = 8, count = 4}`,
		"[axes]\nadd = [1, 1]":              `:3: key "axes.add": 1 occurs twice`,
		"[axes]\nadd = [1, 2e9]":            `:3: add = 2000000000 is not between -1000 and 1000`,
		"[axes]\nadd = [\"x\"]":             `:3: key "add": want a number, got string "x"`,
		"[axes]\nad = [1]":                  `:3: unknown key "ad"; did you mean "add"?`,
		"[axes]\nseed = [1]":                `:3: key "axes.seed": seeds are given by the key "seeds"`,
		"[axes]\nadd = [1]\n[set]\nadd = 2": `:3: key "axes.add" is in [set], too`,
		"[axes]\nadd = {from = 1}":          `:3: key "axes.add": a range goes from a number to a larger one`,
		"[axes]\nadd = {from = 1, to = 2, cnt = 3}":                        `:3: unknown key "axes.add.cnt"; did you mean "axes.add.count"?`,
		"[axes]\nadd = {from = 1, to = 2, count = 2, step = 1}":            `:3: key "axes.add": count and step say the same: give one of them`,
		"[axes]\nadd = {from = 0, to = 2, count = 2, scale = \"log\"}":     `:3: key "axes.add": a range on a log scale has a count, and begins above 0`,
		"[axes]\nadd = {from = 0, to = 2, step = 1e-9}":                    `:3: key "axes.add": a range has from 2 to 100000 values`,
		"[axes]\nadd = {from = 0, to = 900}\ntotal = {from = 1, to = 900}": `:4: key "axes.total": these are more than 100000 cells`,
		"[table]\nmetric = [\"x\"]":                                        `:3: unknown key "table.metric"; did you mean "table.metrics"?`,
		"[table]\nmetrics = \"x\"":                                         `:3: key "table.metrics": want a list of names`,
		"[halving]\nbetter = \"low\"":                                      `:2: key "halving": metric is missing: by what are settings compared?`,
		"[halving]\nmetric = \"x\"\nbetter = \"best\"":                     `:4: key "halving.better": "best" is not "high" or "low"`,
		"[halving]\nmetric = \"x\"\nrungs = 1":                             `:4: key "halving.rungs": 1 is not between 2 and 10`,
	} {
		if !strings.HasPrefix(text, "ta") || strings.HasPrefix(text, "[table") {
			if text != "" {
				text = "task = \"count\"\n" + text
			}
		}
		path := write(t, filepath.Join(dir, "sweep.toml"), text+"\n")
		_, err := Load(path, []run.Task{count{}})
		testkit.BadInput(t, err, path+want)
	}
	_, err := Load(filepath.Join(dir, "none.toml"), nil)
	testkit.BadInput(t, err, "read the sweep: stat "+filepath.Join(dir, "none.toml")+": no such file or directory")
}

// A metric that no result has is said when the first results are there, and costs nothing but the same command again.
func TestUnknownMetric(t *testing.T) {
	p := plan(t, strings.Replace(small, `"Steps"`, `"Stesp"`, 1))
	_, err := p.Run(t.Context(), run.Grid{Dir: disktest.MemoryDir(t), Task: p.Task, Workers: 1})
	testkit.BadInput(t, err, p.File+`:6: key "table.metrics": results have no "Stesp"; did you mean "Steps"?`)
}

// Successive halving: the same settings go on whoever makes them, whatever interrupts them, and those that go on end as
// if they had not paused.
func TestHalving(t *testing.T) {
	const text = `task = "count"
preset = "long"
seeds = 2
[set]
total = 90
[axes]
add = [1, 7, 3, 5, 2, 6, 4, 8, 9]
[halving]
metric = "Sum"
better = "high"
`
	p := plan(t, text)
	dir, want := plain(t, p)
	var table struct {
		Rows []struct {
			Row     string
			Trained float64
			Metrics map[string]struct{ Mean float64 }
		}
	}
	if err := json.Unmarshal([]byte(want), &table); err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, row := range table.Rows {
		got += fmt.Sprintf("%s: %.3g, %g steps; ", row.Row, row.Trained, row.Metrics["Steps"].Mean)
	}
	// 9 settings for 10 steps, 3 of them for 30, one to the end.
	if got != "add=1: 0.111, 10 steps; add=7: 0.333, 30 steps; add=3: 0.111, 10 steps; add=5: 0.111, 10 steps; "+
		"add=2: 0.111, 10 steps; add=6: 0.111, 10 steps; add=4: 0.111, 10 steps; add=8: 0.333, 30 steps; add=9: 1, 90 steps; " {
		t.Error(got)
	}
	whole := plan(t, "task = \"count\"\npreset = \"long\"\nseeds = 2\nset.total = 90\naxes.add = [9]\n")
	alone, _ := plain(t, whole)
	for _, name := range []string{"metrics.jsonl", "result.json"} {
		if read(t, filepath.Join(dir, "add=9", "1", name)) != read(t, filepath.Join(alone, "add=9", "1", name)) {
			t.Errorf("%s is not that of a training without pauses", name)
		}
	}
	again := disktest.MemoryDir(t)
	for stop := 1; ; stop++ { // interrupted again and again
		steps := 0
		ctx, cancel := context.WithCancelCause(t.Context())
		task := count{step: func(countConfig, uint64) error {
			if steps++; steps == 150 {
				cancel(run.ErrInterrupted)
			}
			return nil
		}}
		q := plan(t, text, task)
		_, err := q.Run(ctx, run.Grid{Dir: again, Task: q.Task, Workers: 1})
		cancel(nil)
		if err == nil {
			if stop < 3 {
				t.Error("it was not interrupted")
			}
			break
		} else if !errors.Is(err, run.ErrInterrupted) {
			t.Fatal(err)
		}
	}
	var log said
	pool := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Workers: 2, Log: &log})
	if _, err := p.Run(t.Context(), pool.grid(p.Task)); err != nil {
		t.Fatal(err)
	}
	pool.finish(t)
	for _, other := range []string{again, pool.Dir} {
		if got := read(t, filepath.Join(other, "table.json")); got != want {
			t.Errorf("the table is\n%s, want\n%s", got, want)
		}
	}
	log.has(t, "rung 2 of 3: 3 settings, to 0.333 of their steps")
	changed := plan(t, strings.Replace(text, "[halving]", "[halving]\nfactor = 2", 1))
	_, err := changed.Run(t.Context(), run.Grid{Dir: dir, Task: p.Task, Workers: 1})
	testkit.BadInput(t, err, dir+" was begun with another [halving], other axes or other seeds: choose another --out")
}
