package sweep

import (
	"errors"
	"testing"

	"github.com/gfnem/gfnem/internal/disk/disktest"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"points=100, run 3 of Jürgens-Rechner: 12 % \"x\"": "points=100, run 3 of Jürgens-Rechner: 12 % \"x\"",
		"\x1b[2Jgfnem: all is well\r\n":                    `\x1b[2Jgfnem: all is well\r\n`,
		"a\u202eb\u0085\xff":                               `a\u202eb\u0085\ufffd`,
	} {
		if got := clean(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

// What a worker says of itself, and of a cell, reaches the terminal without what that would obey.
func TestNamesOfOthers(t *testing.T) {
	const odd, shown = "\x1b]0;rogue\a\n", `\x1b]0;rogue\a\n`
	var log said
	plan := plan(t, oneCell)
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Log: &log})
	ended := make(chan error, 1)
	go func() {
		_, err := plan.Run(t.Context(), p.grid(plan.Task))
		ended <- err
	}()
	h := rogue(t, p)
	if err := h.change(t.Context(), func(e *entry) { e.Worker, e.State, e.Program = odd, done, odd }); err != nil {
		t.Fatal(err)
	}
	h = rogue(t, p)
	if err := h.change(t.Context(), func(e *entry) { e.State, e.Error = failed, odd }); err != nil {
		t.Fatal(err)
	}
	var failures *Failures
	if err := <-ended; !errors.As(err, &failures) || err.Error() != "base, run 0: "+shown {
		t.Errorf("error %q", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	log.has(t, "warning: base, run 0: what "+shown+" handed in is refused: it is not the cell: it was made by another build of the program ("+shown+")")
	log.has(t, "warning: base, run 0 failed: "+shown)
	w := Worker{Program: "this"}
	if err := w.fits(head{Format: format, Program: odd}); err == nil || clean(err.Error()) != err.Error() {
		t.Errorf("error %q", err)
	}
}
