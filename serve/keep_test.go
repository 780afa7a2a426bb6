package serve

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/catalog"
)

// journals makes runs that have logged so many metrics at so many steps.
func journals(t *testing.T, runs, metrics, steps int) string {
	t.Helper()
	dir := t.TempDir()
	for r := range runs {
		made, err := run.Create(filepath.Join(dir, fmt.Sprint("run-", r)), run.Options{Task: "none"})
		if err != nil {
			t.Fatal(err)
		}
		if err := made.Close(); err != nil {
			t.Fatal(err)
		}
		var text []byte
		for step := range steps {
			text = fmt.Appendf(text, `{"step":%d`, step)
			for m := range metrics {
				text = fmt.Appendf(text, `,"m%d":%d.5`, m, (step*(m+3)+r)%101)
			}
			text = append(text, "}\n"...)
		}
		if err := os.WriteFile(filepath.Join(made.Dir(), "metrics.jsonl"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// All curves together take no more memory than they may. Those that were let go come back when they are asked for, as
// they were; if more are asked for than there is room for, some stay as a few places show them, and none is read in
// vain.
func TestRoomForCurves(t *testing.T) {
	const runs, metrics = 6, 20
	dir := journals(t, runs, metrics, 900)
	quiet := func(string) {}
	open := func(most int64) *index {
		x := newIndex(dir, most, quiet)
		x.list()
		x.read(context.Background())
		return x
	}
	all := open(1 << 40)
	most := all.held.Load() / 5
	few := open(most)
	see := func(x *index, metric string) (text []string, whole int) {
		now := x.clock.Add(1)
		for r := range runs {
			if x.entry(filepath.Join(dir, fmt.Sprint("run-", r))).look(metric, now, func(c *curve) {
				text = append(text, fmt.Sprint(c.cells, c.logs, c.width, c.last))
			}) {
				whole++
			}
		}
		return text, whole
	}
	check := func() {
		t.Helper()
		if few.held.Load() > most {
			t.Fatalf("%d bytes of curves, of %d", few.held.Load(), most)
		}
		sum := int64(0)
		for _, e := range few.all() {
			sum += sizeOf(e.curves)
			if e.glance.curve != nil {
				sum += e.glance.bytes()
			}
		}
		if sum != few.held.Load() {
			t.Fatalf("%d bytes, counted as %d", sum, few.held.Load())
		}
	}
	check()
	for m := range metrics {
		metric := fmt.Sprint("m", m)
		if _, whole := see(few, metric); whole < runs {
			few.read(context.Background())
		}
		check()
		got, whole := see(few, metric)
		if want, _ := see(all, metric); whole != runs || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s: %d of %d curves are whole, or they differ", metric, whole, runs)
		}
	}
	// Ask for everything at once, again and again.
	held := map[string]bool{}
	for round := range 4 {
		now := few.clock.Add(1)
		for _, e := range few.all() {
			for m := range metrics {
				e.look(fmt.Sprint("m", m), now, func(*curve) {})
			}
		}
		few.read(context.Background())
		check()
		here := map[string]bool{}
		for _, h := range few.holds() {
			here[h.dir+h.name] = true
		}
		if round > 1 && fmt.Sprint(here) != fmt.Sprint(held) {
			t.Errorf("round %d: other curves are there than before", round)
		}
		held = here
	}
	if len(held) == 0 {
		t.Error("no curve is there")
	}
}

// A run with more metrics than can be known says so.
func TestTooManyMetrics(t *testing.T) {
	dir := journals(t, 1, mostNames+1, 1)
	x := newIndex(dir, 1<<40, func(string) {})
	x.list()
	x.read(context.Background())
	e := x.entry(filepath.Join(dir, "run-0"))
	if e.problem() == "" || len(e.curves) != mostNames {
		t.Errorf("%d metrics, %q", len(e.curves), e.problem())
	}
}

// What was logged rarely is known by its last value, though the end of the journal does not have it.
func TestRareMetrics(t *testing.T) {
	dir := journals(t, 1, 20, 2000)
	path := filepath.Join(dir, "run-0", "metrics.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = append([]byte("{\"step\":0,\"eval/f1\":0.25}\n{\"step\":0,\"eval/f1\":0.5}\n"), text...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	x := newIndex(dir, 1<<40, func(string) {})
	x.list()
	close(x.listed)
	find := func() (catalog.Run, float64, bool) {
		runs, _, _ := x.snapshot(t.Context())
		v, ok := runs[0].Figure("eval/f1")
		return runs[0], v, ok
	}
	if _, _, ok := find(); ok {
		t.Fatal("the end of the journal has everything, so that this test shows nothing")
	}
	x.read(context.Background())
	r, v, ok := find()
	q, err := parseQuery("eval/f1>0.4")
	if err != nil || !ok || v != 0.5 || !q.holds("run-0", r) || logged([]catalog.Run{r})["eval/f1"] != 1 {
		t.Errorf("eval/f1 is %v, %v, %v", v, ok, err)
	}
}

// A journal that is gone is news once, however often its curves are asked for; it is none any more when it is back.
func TestJournalGone(t *testing.T) {
	dir := journals(t, 1, 2, 10)
	x := newIndex(dir, 1<<40, func(string) {})
	x.list()
	x.read(context.Background())
	e := x.entry(filepath.Join(dir, "run-0"))
	journal := filepath.Join(e.dir, "metrics.jsonl")
	if err := os.Rename(journal, journal+".away"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if more := e.again([]string{"m0"}); more != (i == 0) {
			t.Errorf("time %d: news %v", i, more)
		}
		if e.read() || e.problem() == "" {
			t.Errorf("time %d: there is news, or no word of the journal: %q", i, e.problem())
		}
	}
	if err := os.Rename(journal+".away", journal); err != nil {
		t.Fatal(err)
	}
	if more := e.again([]string{"m0"}); !more || e.problem() != "" {
		t.Errorf("news %v: %q", more, e.problem())
	}
}
