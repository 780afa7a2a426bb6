package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/run/catalog"
)

// Lines that are none of metrics hide no others: they are counted, also when they come bit by bit, and the first is
// named. What was read can be read again.
func TestFollowerPassesOver(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "metrics.jsonl")
	f := catalog.Follower{Dir: dir}
	var got, all []string
	next := func() error {
		got = nil
		return f.Next(func() { t.Error("begins anew") }, func(step float64, name []byte, y float64) {
			got = append(got, fmt.Sprintf("%g %s %g", step, name, y))
		})
	}
	text := ""
	for _, one := range []struct{ more, want, wrong string }{
		{"{\"step\":1,\"a\":2}\n{\"step\":2,\"a\":3,\"b\":4}\n", "1 a 2;2 a 3;2 b 4", ""},
		{"nonsense\n{\"step\":3,\"a\":5}\n", "3 a 5", "line 3 is left out"},
		{"", "", "line 3 is left out"},
		{"{\"step\":4,\"a\":6}\n\n{\"step\":5,\"a\":", "4 a 6", "2 lines are left out, the first of them line 3"},
		{"7}\n", "5 a 7", "2 lines are left out, the first of them line 3"},
	} {
		text += one.more
		must(t, os.WriteFile(path, []byte(text), 0o600))
		err := next()
		if strings.Join(got, ";") != one.want || (err == nil) != (one.wrong == "") || err != nil && !strings.Contains(err.Error(), one.wrong) {
			t.Errorf("after %q: %q, %v", one.more, got, err)
		}
		all = append(all, got...)
	}
	var again []string
	must(t, f.Again(func(step float64, name []byte, y float64) {
		again = append(again, fmt.Sprintf("%g %s %g", step, name, y))
	}))
	if !slices.Equal(again, all) {
		t.Errorf("read again: %q, not %q", again, all)
	}
}

// Groups are those of any key that a run has a value of, and say when they have none.
func TestGroupByValue(t *testing.T) {
	runs := []catalog.Run{
		{Dir: "a", Task: "x", Seed: 1, Config: map[string]string{"rate": "0.1"}, Status: catalog.Finished},
		{Dir: "b", Task: "y", Seed: 2, Status: catalog.Stopped},
		{Dir: "c", Task: "x", Seed: 1, Status: catalog.Broken},
		{Dir: "d", Task: "x", Seed: 1, Config: map[string]string{"rate": "0.1"}, Status: catalog.Stopped},
	}
	for _, one := range []struct{ key, want string }{
		{"rate", "rate=0.1: a d; without rate: b"}, {"seed", "seed=1: a d; seed=2: b"}, {"task", "task=x: a d; task=y: b"},
		{"status", "status=finished: a; status=stopped: b d"},
	} {
		var groups []string
		for _, g := range catalog.GroupBy(runs, []string{one.key}) {
			text := g.Label([]string{one.key}) + ":"
			for _, r := range g.Runs {
				text += " " + r.Dir
			}
			groups = append(groups, text)
		}
		if got := strings.Join(groups, "; "); got != one.want {
			t.Errorf("by %s: %s, not %s", one.key, got, one.want)
		}
	}
}
