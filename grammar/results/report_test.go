package results

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// reported trains a tiny grammar in a folder and returns its report.
func reported(t *testing.T, c induce.Config, data *treebank.Dataset) (dir, page string) {
	t.Helper()
	s := tinySession(t, c, data)
	text, err := config.Encode(&s.Config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Create(filepath.Join(t.TempDir(), "run"), run.Options{Task: "grammar", Config: text})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Drive(t.Context(), s, time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	res, err := s.Evaluate()
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for range 2 {
		if err := s.Report(r, r.Dir(), res); err != nil {
			t.Fatal(err)
		}
		html, err := os.ReadFile(filepath.Join(r.Dir(), "report.html"))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, string(html))
	}
	if pages[0] != pages[1] {
		t.Error("the same run has two reports")
	}
	return r.Dir(), pages[0]
}

// files says which figures a folder has.
func files(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, f := range found {
		out[strings.TrimSuffix(filepath.Base(f), ".svg")] = true
	}
	return out
}

func TestReport(t *testing.T) {
	c := tinyConfig(induce.MCEM)
	c.Prior.On, c.Model.Grammar, c.Updates, c.Prior.Updates, c.Eval.Every = true, string(grammar.NCFG), 30, 20, 10
	data := tinyData(t)
	truth := -50.0
	data.Splits[1].TrueLogProb = &truth
	dir, page := reported(t, c, data)
	made := files(t, dir)
	for _, name := range []string{"loss", "nll", "f1", "acceptance", "prior", "labels", "tree-1", "tree-3"} {
		if !made[name] {
			t.Errorf("no figure %s", name)
		}
	}
	for _, text := range []string{
		"valid: 20 sentences", "test: 12 sentences", "right-branching, on the whole split", "the true distribution", "rotations",
		"energy gap", "constituents of the gold tree", "log p(x,z) = −", "log p(z|x) = −", "below ROOT", "Rules of the most used", "Words of the most used",
		"cat", "method = &#34;mcem&#34;",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("the report does not say %q", text)
		}
	}
}

// The report of a GFlowNet has its losses, the gate, and trees that it has drawn beside the most probable ones.
func TestReportGFN(t *testing.T) {
	c := tinyGFN(2, grammar.CFG)
	c.Prior.On, c.Prior.Updates, c.Eval.Every, c.Updates = true, 20, 5, 10
	dir, page := reported(t, c, tinyData(t))
	made := files(t, dir)
	for _, name := range strings.Fields("loss nll f1 acceptance prior wake balance sleep gate m-steps labels labels-gfn tree-1") {
		if !made[name] {
			t.Errorf("no figure %s", name)
		}
	}
	for _, text := range []string{
		"iterations", "threshold", "moves back and forth", "bound by the GFlowNet", "flow estimate, no bound", "draws of the GFlowNet",
		"draw 4", "log q(z) = −", "log p(x,z) = −", "KL over trees, at least", "most probable derivation",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("the report does not say %q", text)
		}
	}
}

// What is not known is left out of a report: no gold trees, no validation sentences, no evaluations on the way.
func TestReportOfLittle(t *testing.T) {
	c := tinyConfig(induce.Marginal)
	c.Updates = 3
	data := tinyData(t)
	data.Splits = append(data.Splits[:1], data.Splits[2])
	for i := range data.Splits {
		data.Splits[i].Gold = false
		for k := range data.Splits[i].Sentences {
			data.Splits[i].Sentences[k].Gold = nil
		}
	}
	dir, page := reported(t, c, data)
	made := files(t, dir)
	for name, want := range map[string]bool{
		"loss": true, "tree-1": true, "labels": true, "nll": false, "f1": false, "acceptance": false, "prior": false,
	} {
		if made[name] != want {
			t.Errorf("figure %s is there: %t", name, made[name])
		}
	}
	for _, text := range []string{"gold tree", "right-branching", "valid:"} {
		if strings.Contains(page, text) {
			t.Errorf("a report without gold trees and validation sentences says %q", text)
		}
	}
}

func TestSpreadLengths(t *testing.T) {
	of := func(lengths ...int) (s []treebank.Sentence) {
		for _, n := range lengths {
			s = append(s, treebank.Sentence{Words: make([]int32, n)})
		}
		return s
	}
	for _, c := range []struct {
		sentences []treebank.Sentence
		want      string
	}{
		{of(9, 2, 3, 3, 5, 4, 20, 7), "[2 5 7 6]"}, // 3, 4, 7 and 20 of 3, 4, 5, 7, 9, 20
		{of(2, 2), "[0]"},
		{of(2, 6), "[1]"},
		{of(8, 5), "[1 0]"},
		{nil, "[]"},
	} {
		if got := fmt.Sprint(spreadLengths(c.sentences, 4)); got != c.want {
			t.Errorf("%v, want %s", got, c.want)
		}
	}
	if got := spreadLengths(of(3, 4, 5), 1); len(got) != 1 {
		t.Errorf("one sentence: %v", got)
	}
}

// Every constituent and every word is counted once, where it stands.
func TestCount(t *testing.T) {
	p := &parsed{
		Grammar: grammar.New(grammar.CFG, []string{"A", "B"}, []string{"S", "T"}, []string{"w"}),
		trees: []*grammar.Tree{
			{Left: []int{1, 0}, Right: []int{2, 3}, Label: []int{1, 0}, Tags: []int{0, 1, 1}},
			{Left: []int{0}, Right: []int{1}, Label: []int{1}, Tags: []int{1, 0}},
		},
	}
	p.count()
	got := fmt.Sprint(p.usage, p.tagged, p.below, p.host)
	if want := "[1 2] [2 3] [[1 0 0] [1 1 0]] [[1 1] [0 3]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTop(t *testing.T) {
	name := func(i int) string { return string(rune('a' + i)) }
	if got := top([]float64{0.1, 0.6, 0.296, 0.004}, 9, name); got != "b: 60 · c: 30 · a: 10" {
		t.Error(got)
	}
	if got := fmt.Sprint(shown([]float64{0, 3, 0, 5})); got != "[3 1]" {
		t.Error(got)
	}
}

func TestCurve(t *testing.T) {
	points := []run.Point{{Step: 20, Values: map[string]float64{"a": 1}}, {Step: 25}, {Step: 31, Values: map[string]float64{"a": 2, "b": 3}}}
	if x, y := curve(points, "a", 20); fmt.Sprint(x, y) != "[0 11] [1 2]" {
		t.Errorf("%v %v", x, y)
	}
}
