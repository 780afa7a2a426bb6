package run

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestGuard(t *testing.T) {
	var g Guard
	observe := func(updates string) (err error) {
		for _, u := range updates {
			if err != nil {
				t.Fatalf("stopped early in %q: %v", updates, err)
			}
			err = g.Observe(u == '+')
		}
		return err
	}
	if err := observe("----+----+-++"); err != nil {
		t.Fatal(err)
	}
	// Its counts travel through the state of a run.
	if err := observe("---"); err != nil {
		t.Fatal(err)
	}
	saved, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	g = Guard{}
	if err := json.Unmarshal(saved, &g); err != nil {
		t.Fatal(err)
	}
	err = observe("--")
	want := "loss, gradient or parameters are not finite: 5 updates in a row were skipped, 14 in all; " +
		"the last good state is kept"
	if !errors.Is(err, ErrNotFinite) || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestGuardLimit(t *testing.T) {
	g := Guard{Limit: 1}
	if err := g.Observe(true); err != nil {
		t.Error(err)
	}
	if err := g.Observe(false); err == nil {
		t.Error("no error at the limit")
	}
}
