package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/run"
)

// cellsOf are the configurations of a table, by row, for one seed.
func cellsOf(t *testing.T, table, preset string, set ...string) map[string]induce.Config {
	t.Helper()
	cells, err := findTable(table).cells(run.Study{Adjustments: run.Adjustments{Preset: preset, Set: set, Seeds: []uint64{5}}})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]induce.Config{}
	for _, c := range cells {
		out[c.Row] = *c.Config.(*induce.Config)
		if out[c.Row].Seed != 5 || c.Index != 5 {
			t.Errorf("%s has seed %d, index %d", c.Row, out[c.Row].Seed, c.Index)
		}
	}
	return out
}

// Every row is what its name says, and nothing else differs from the preset.
func TestTableRows(t *testing.T) {
	for _, preset := range []string{"quick", "paper"} {
		base := *Task{}.Config(preset).(*induce.Config)
		same := func(row string, got induce.Config, change func(c *induce.Config)) {
			t.Helper()
			want := base
			want.Seed = 5
			change(&want)
			if err := want.Validate(); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%s, %s:\n%+v, want\n%+v", preset, row, got, want)
			}
		}
		of := func(method, kind string, ebm bool) func(c *induce.Config) {
			return func(c *induce.Config) { c.Method, c.Model.Grammar, c.Prior.On = method, kind, ebm }
		}
		rows := cellsOf(t, "grammar", preset)
		for row, change := range map[string]func(c *induce.Config){
			"marginal": of("marginal", "cfg", false), "exact": of("exact", "cfg", false), "mcem": of("mcem", "cfg", false),
			"mcem-ebm": of("mcem", "cfg", true), "gfn": of("gfn", "cfg", false), "gfn-ebm": of("gfn", "cfg", true),
			"ncfg-mcem": of("mcem", "ncfg", false), "ncfg-gfn": of("gfn", "ncfg", false), "ncfg-marginal": of("marginal", "ncfg", false),
			"ncfg-exact": of("exact", "ncfg", false),
		} {
			same(row, rows[row], change)
		}
		for row, published := range map[string][2]float64{"gfn": {6, 3}, "gfn-ebm": {4, 2}, "ncfg-gfn": {7, 3.5}} {
			want := [2]float64{12, 6}
			if preset == "paper" {
				want = published
			}
			if c := rows[row]; c.Gate.Threshold != want[0] || c.Gate.ThresholdEnd != want[1] {
				t.Errorf("%s, %s: the threshold goes from %v to %v, want %v", preset, row, c.Gate.Threshold, c.Gate.ThresholdEnd, want)
			}
		}
		if len(rows) != 10 {
			t.Errorf("%d rows", len(rows))
		}

		asPublished(&base)
		rows = cellsOf(t, "grammar-threshold", preset)
		for row, want := range map[string][2]float64{"12-6": {12, 6}, "8-4": {8, 4}, "6-3": {6, 3}, "4-2": {4, 2}, "none": {1e300, 1e300}} {
			same(row, rows[row], func(c *induce.Config) { c.Method, c.Gate.Threshold, c.Gate.ThresholdEnd = induce.GFN, want[0], want[1] })
		}

		rows = cellsOf(t, "grammar-ablation", preset)
		for row, change := range map[string]func(c *induce.Config){
			"full": func(c *induce.Config) {}, "no-mcmc": func(c *induce.Config) { c.Moves.Count, c.Moves.ECount, c.Moves.Balance = 0, 0, 0 },
			"no-sleep": func(c *induce.Config) { c.Sleep.Weight = 0 }, "no-subtb": func(c *induce.Config) { c.Wake.Objective = "tb" },
			"no-exploration": func(c *induce.Config) { c.Wake.Beta, c.Wake.Epsilon = 1, 0 },
			"sleep-only":     func(c *induce.Config) { c.Wake.Objective, c.Moves.Balance = "none", 0 },
		} {
			same(row, rows[row], func(c *induce.Config) { c.Method = induce.GFN; change(c) })
		}
	}
	rows := cellsOf(t, "grammar-estep", "small")
	for row, want := range map[string]struct {
		objective         string
		explores, dreamed bool
	}{
		"subtb-sleep": {"subtb", true, true}, "subtb": {"subtb", true, false}, "tb": {"tb", true, false}, "tb-on-policy": {"tb", false, false},
		"hvi": {"hvi", false, false}, "sleep": {"none", true, true},
	} {
		c := rows[row]
		if c.Wake.Objective != want.objective || (c.Wake.Beta != 1 || c.Wake.Epsilon != 0) != want.explores || (c.Sleep.Weight > 0) != want.dreamed ||
			c.Fixed != "small" || c.Moves.Balance != 0 {
			t.Errorf("%s is %+v", row, c)
		}
	}
}

// Settings go to all rows but those that are what they are by another one, and one that would change nothing is
// refused.
func TestTableSettings(t *testing.T) {
	rows := cellsOf(t, "grammar-ablation", "quick", "sleep.weight=3", "updates=7", "data=synthetic-ncfg")
	for row, c := range rows {
		want := 3.0
		if row == "no-sleep" {
			want = 0
		}
		if c.Sleep.Weight != want || c.Updates != 7 || c.Data != "synthetic-ncfg" {
			t.Errorf("%s has sleep %v, %d updates, data %s", row, c.Sleep.Weight, c.Updates, c.Data)
		}
	}
	if c := cellsOf(t, "grammar", "quick", "gate.threshold=9")["gfn-ebm"]; c.Gate.Threshold != 9 {
		t.Errorf("threshold %v", c.Gate.Threshold)
	}
	for _, c := range []struct{ table, preset, set, want string }{
		{"grammar", "quick", "method=mcem", "--set method=mcem: every row asked for has method of its own"},
		{"grammar-threshold", "quick", "gate.threshold = 3", "every row asked for has gate.threshold of its own"},
		{"grammar", "quick", "seed=3", "--seeds"},
		{"grammar", "quick", "updats=3", `did you mean "updates"`},
		{"grammar", "quick", "optim.phi.rate=-1", "optim.phi.rate = -1 is not between"},
		{"grammar-estep", "quick", "updates=3", "needs a grammar that stays as it is"},
	} {
		_, err := findTable(c.table).cells(run.Study{Adjustments: run.Adjustments{Preset: c.preset, Set: config.Set{c.set}, Seeds: []uint64{0}}})
		var input *badinput.Error
		if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.set, err, c.want)
		}
	}
}

// tinyStudy is a grid of some seconds in a folder.
func tinyStudy(dir, table string, rows []string, set ...string) run.Study {
	return run.Study{
		Grid:  run.Grid{Dir: dir, Task: Task{}, Backend: simd(), Workers: 1, Every: time.Hour},
		Table: table, Rows: rows, Runs: 2, Seed: 3,
		Adjustments: run.Adjustments{Set: append(config.Set{"max_length=4", "updates=3", "batch=8", "eval.every=0", "policy.width=16", "policy.layers=1",
			"sleep.leaves=5", "sleep.steps=4"}, set...)},
	}
}

// A table is made once; asked for again, it is read, and new seeds are added to it.
func TestReproduceAgain(t *testing.T) {
	s := tinyStudy(t.TempDir(), "grammar-estep", []string{"subtb-sleep", "hvi"})
	made := func() string {
		t.Helper()
		r, err := Task{}.Reproduce(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := r.Print(&text); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"SubTB, exploration, sleep", "13.14 ± 1.55", "over seeds 3 4", "paper: subtb-sleep, hvi\n", "preset small"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("nothing is printed of %q in\n%s", want, text.String())
			}
		}
		return string(data)
	}
	first := made()
	if first != made() {
		t.Error("the second time it is another table")
	}
	var got struct {
		Rows []struct {
			Row  string
			Runs []Result
		}
	}
	if err := json.Unmarshal([]byte(first), &got); err != nil {
		t.Fatal(err)
	}
	for i, row := range []string{"subtb-sleep", "hvi"} {
		r := got.Rows[i]
		if r.Row != row || len(r.Runs) != 2 || r.Runs[0].Seed != 3 || r.Runs[1].Seed != 4 || r.Runs[1].Splits[1].Listed == nil || r.Runs[0].Updates != 3 {
			t.Errorf("row %+v", r)
		}
	}
	if got.Rows[0].Runs[0].Splits[1].Listed.Bound == got.Rows[1].Runs[0].Splits[1].Listed.Bound {
		t.Error("two objectives have the same bound")
	}

	// What was changed by hand is measured again, and a line says so.
	path := filepath.Join(s.Dir, "hvi", "4", "result.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, changed := range []string{strings.Replace(string(data), `"seed": 4`, `"seed": 444`, 1), "{}", ""} {
		if err := os.WriteFile(path, []byte(changed), 0o666); err != nil || changed == string(data) {
			t.Fatal("not changed", err)
		}
		var log strings.Builder
		s.Log = &log
		if made() != first {
			t.Errorf("the table believes a result that was changed to %.20q...", changed)
		}
		if !strings.Contains(log.String(), path+": ") || !strings.Contains(log.String(), ": it is measured again\n") {
			t.Errorf("a changed result: the log says %q", log.String())
		}
		if now, err := os.ReadFile(path); string(now) != string(data) {
			t.Errorf("the result was not written again: %v", err)
		}
	}
	s.Log = nil
	s.Set = append(s.Set, "sleep.weight=2")
	if _, err := (Task{}).Reproduce(context.Background(), s); err == nil || !strings.Contains(err.Error(), "was made with other settings") {
		t.Errorf("with other settings: error %v", err)
	}
	for _, name := range []string{"report.html", "bound.png", "variation.svg"} {
		if _, err := os.Stat(filepath.Join(s.Dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// fakeResult is one of a method with numbers that are easy to tell apart.
func fakeResult(method string, seed uint64, nll float64) json.RawMessage {
	f1 := func(trees string, x float64) F1 {
		return F1{Trees: trees, Sentence: x, Corpus: x + 1, Released: x - 10}
	}
	test := SplitResult{Name: "test", NLL: nll, LabelPerplexity: 4, F1: []F1{
		f1("viterbi", 50+nll), f1("mbr", 45+nll), f1("sample", 40+nll), f1("gfn", 30+nll), f1("right-branching", 61),
	}}
	if method == induce.GFN {
		test.GFlowNet = &parse.Bounds{Bound: parse.Measure{PerWord: nll + 1}}
	}
	data, err := json.Marshal(&Result{Method: method, Seed: seed, Updates: 8, Iterations: 20, Splits: []SplitResult{{Name: "valid", NLL: -7}, test}})
	if err != nil {
		panic(err)
	}
	return data
}

// Numbers are those of the test split, of the trees that the paper scores, mean and deviation over seeds.
func TestCompare(t *testing.T) {
	table := findTable("grammar")
	table.rows = slices.DeleteFunc(table.rows, func(r tableRow) bool { return r.key != "marginal" && r.key != "gfn" })
	s := run.Study{Adjustments: run.Adjustments{Preset: "quick", Seeds: []uint64{0, 1}}}
	cells, err := table.cells(s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newReproduced(table, s, cells, []json.RawMessage{
		fakeResult(induce.Marginal, 0, 3), fakeResult(induce.Marginal, 1, 5), fakeResult(induce.GFN, 0, 6), fakeResult(induce.GFN, 1, 6),
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, row := range r.Shown.Rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, c.String())
		}
		lines = append(lines, strings.Join(cells, "|"))
	}
	for i, want := range []string{
		"CFG, marginalisation|5.61 ± 0.01|4.000 ± 1.414|–|39.51 ± 7.01|34.00 ± 1.41|44.00 ± 1.41|54.00 ± 1.41|49.00 ± 1.41|4.0 ± 0.0|–|–",
		"CFG, GFlowNet-EM|5.70 ± 0.03|6.000 ± 0.000|7.000 ± 0.000|34.85 ± 3.39|26.00 ± 0.00|36.00 ± 0.00|56.00 ± 0.00|51.00 ± 0.00|4.0 ± 0.0|8|20",
		"right-branching|–|–|–|–|51.00|61.00",
	} {
		if i >= len(lines) || lines[i] != want {
			t.Errorf("row %d of\n%s\nwant\n%s", i, strings.Join(lines, "\n"), want)
		}
	}
	if r.Split != "test" || len(lines) != 3 {
		t.Errorf("split %s, %d rows", r.Split, len(lines))
	}
	if _, err := newReproduced(table, s, cells, []json.RawMessage{json.RawMessage(`{}`)}); err == nil {
		t.Error("an empty result is read")
	}
}

// Rows that train a GFlowNet may have fewer seeds than the others; every result goes to its row, and the table says so.
func TestUnevenRows(t *testing.T) {
	table := findTable("grammar")
	table.rows = slices.DeleteFunc(table.rows, func(r tableRow) bool { return !slices.Contains([]string{"exact", "gfn", "ncfg-exact"}, r.key) })
	for runs, want := range map[int]string{0: "exact 7,exact 8,exact 9,gfn 7,gfn 8,gfn 9,ncfg-exact 7,ncfg-exact 8,ncfg-exact 9",
		2: "exact 7,exact 8,exact 9,gfn 7,gfn 8,ncfg-exact 7,ncfg-exact 8,ncfg-exact 9"} {
		s := run.Study{Runs: runs, Adjustments: run.Adjustments{Preset: "quick", Seeds: []uint64{7, 8, 9}}}
		cells, err := table.cells(s)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var results []json.RawMessage
		for _, c := range cells {
			got = append(got, fmt.Sprint(c.Row, " ", c.Index))
			results = append(results, fakeResult(c.Config.(*induce.Config).Method, uint64(c.Index), float64(len(c.Row))))
		}
		if strings.Join(got, ",") != want {
			t.Errorf("cells %s, want %s", got, want)
		}
		r, err := newReproduced(table, s, cells, results)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			for _, one := range row.Runs {
				if one.nll() != float64(len(row.Key)) {
					t.Errorf("%s has a result of %v nats", row.Key, one.nll())
				}
			}
		}
		if said := strings.Contains(r.Shown.Notes[0], "GFlowNet over the first 2 of these"); said != (runs == 2) {
			t.Errorf("%d runs: the table says %q", runs, r.Shown.Notes[0])
		}
	}
}

func TestTableOrder(t *testing.T) {
	rows := []rowResult{{Key: "b"}, {Key: "c"}, {Key: "a"}}
	if got := order(rows, func(r rowResult) float64 { return float64(r.Key[0]) }); got != "a, b, c" || fmt.Sprint(rows[0].Key) != "b" {
		t.Errorf("order %s", got)
	}
}
