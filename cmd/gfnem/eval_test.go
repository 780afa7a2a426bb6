package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/run"
)

// measured is what JSON says of the state behind a result.
type measured struct {
	Sum      uint64   `json:"sum"`
	Hash     string   `json:"state_sha256"`
	Step     uint64   `json:"step"`
	Total    uint64   `json:"total"`
	Finished *bool    `json:"finished"`
	Fallback []string `json:"fallback"`
}

func measuredBy(t *testing.T, args ...string) (m measured, besides string) {
	t.Helper()
	out, besides := told(t, exitOK, args...)
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return m, besides
}

// TestHashOfWhatWasMeasured lets the run go on, and the session change, while it is measured.
func TestHashOfWhatWasMeasured(t *testing.T) {
	fake(t)
	dir, hash := trainFake(t, 10, 3)
	evaluating = func(s *fakeSession) error {
		r, err := run.Open(dir)
		if err != nil {
			return err
		}
		defer r.Close()
		if _, _, err := r.Load(); err != nil {
			return err
		}
		_, err = advance(r, s)
		return err
	}
	m, _ := measuredBy(t, "eval", dir, "--json")
	if m.Sum != 6 || m.Hash != hash || m.Step != 3 {
		t.Errorf("%+v is printed with the sum 6 of step 3, whose state is %s", m, hash)
	}
}

// damageNewest damages the newest checkpoint of a run.
func damageNewest(t *testing.T, dir string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "state", "????????????", "state.json"))
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	if err := os.WriteFile(found[len(found)-1], []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestEvalSaysWhatItMeasured: the step, whether the training is finished, and why it is not the newest checkpoint.
func TestEvalSaysWhatItMeasured(t *testing.T) {
	fake(t)
	for _, c := range []struct {
		total, step int
		damaged     bool
		at          uint64
		finished    bool
		text        string
		warnings    int
	}{
		{10, 10, false, 10, true, "", 0},
		{10, 4, false, 4, false, "Note: the training is not finished: this is step 4 of 10.\n", 0},
		{10, 10, true, 9, false, "Note: checkpoint 10 is damaged", 1},
	} {
		dir, _ := trainFake(t, c.total, c.step)
		if c.damaged {
			damageNewest(t, dir)
		}
		m, besides := measuredBy(t, "eval", dir, "--json")
		if m.Step != c.at || m.Total != uint64(c.total) || m.Finished == nil || *m.Finished != c.finished || len(m.Fallback) != c.warnings {
			t.Errorf("%+v: eval --json says %+v", c, m)
		}
		if n := strings.Count(besides, "warning: checkpoint 10 is damaged"); n != c.warnings || strings.Count(besides, "\n") != n {
			t.Errorf("%+v: besides, eval says %q", c, besides)
		}
		out, _ := told(t, exitOK, "eval", dir)
		if !strings.Contains(out, c.text) || c.text == "" && strings.Contains(out, "Note") {
			t.Errorf("%+v: eval says %q", c, out)
		}
		if c.damaged && !strings.Contains(out, "; this is an older one, of step 9.\n") {
			t.Errorf("%+v: eval says %q", c, out)
		}
		_, besides = told(t, exitOK, "report", dir)
		if got := strings.Contains(besides, "warning: the training is not finished: this is step"); got == c.finished {
			t.Errorf("%+v: besides, report says %q", c, besides)
		}
		// To resume is to mend: the same state, with one warning where one is left to give.
		m, besides = measuredBy(t, "resume", dir, "--json")
		if m.Step != uint64(c.total) || m.Finished == nil || !*m.Finished || m.Fallback != nil || m.Sum != 55 || strings.Contains(besides, "warning") {
			t.Errorf("%+v: resume --json says %+v, and besides %q", c, m, besides)
		}
	}
}
