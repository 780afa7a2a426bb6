package run

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// clock is a time that passes when told.
type clock struct{ time.Time }

func (c *clock) now() time.Time           { return c.Time }
func (c *clock) pass(d time.Duration)     { c.Time = c.Add(d) }
func newClock() *clock                    { return &clock{time.Unix(0, 0)} }
func (c *clock) drive(p *Progress) *clock { p.now = c.now; return c }

func TestProgressLines(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, 1000, "wake")
	c := newClock().drive(p)
	p.Set(500, "") // resumed
	for step := int64(501); step <= 550; step++ {
		c.pass(500 * time.Millisecond)
		p.Set(step, "loss 0.5")
	}
	c.pass(time.Second)
	p.Done()
	want := `wake 520/1000  2/s  4m0s left  loss 0.5
wake 540/1000  2/s  3m50s left  loss 0.5
wake 550/1000  1.92/s  3m54s left  loss 0.5
`
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestProgressExpect: what is left follows what is expected.
func TestProgressExpect(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, 20, "wake")
	c := newClock().drive(p)
	p.Set(0, "")
	for step := int64(1); step <= 2; step++ {
		c.pass(10 * time.Second)
		p.Expect(20 * step)
		p.Set(10*step, "")
	}
	want := "wake 10/20  1/s  10s left\nwake 20/40  1/s  20s left\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}

	b.Reset()
	p.bar = newBar(&b, 20)
	p.Expect(200)
	if got := p.bar.GetMax64(); got != 200 {
		t.Errorf("the bar ends at %d, want 200", got)
	}
}

// TestProgressRestart: steps of another kind, before, do not count.
func TestProgressRestart(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, 10000, "wake")
	c := newClock().drive(p)
	p.Set(0, "")
	c.pass(time.Minute)
	p.Set(6000, "")
	p.Restart()
	c.pass(time.Minute)
	p.Set(6060, "")
	want := "wake 6000/10000  100/s  40s left\nwake 6060/10000  1/s  1h5m40s left\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// lines receives what is written.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// TestProgressDuring: in a long step there is a line now and then, with the time that it has taken so far.
func TestProgressDuring(t *testing.T) {
	out := make(lines, 1000)
	p := NewProgress(out, 5, "sentences")
	p.Every = 10 * time.Millisecond
	at := time.Unix(0, 0)
	p.now = func() time.Time { at = at.Add(10 * time.Second); return at }
	p.Set(2, "")
	failed := errors.New("failed")
	err := p.During("1 of 500 words", func() error {
		for _, want := range []string{"", ", 10s", ", 20s", ", 30s"} {
			if got := <-out; got != "sentences 2/5  1 of 500 words"+want+"\n" {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		return failed
	})
	if err != failed {
		t.Error(err)
	}
	p = NewProgress(nil, 5, "sentences")
	if err := p.During("", func() error { return failed }); err != failed {
		t.Error(err)
	}
}

// TestProgressClear: a bar shows what takes long, too, and can leave no trace.
func TestProgressClear(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, 5, "sentences")
	p.bar = newBar(&b, 5)
	if err := p.During("1 of 500 words", func() error { time.Sleep(1200 * time.Millisecond); return nil }); err != nil {
		t.Error(err)
	}
	p.Clear()
	if got := b.String(); !strings.Contains(got, "sentences 0/5  1 of 500 words, 1s") || !strings.HasSuffix(got, "\033[2K\r") {
		t.Errorf("got %q", got)
	}
}

func TestProgressDone(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, 4, "eval")
	c := newClock().drive(p)
	for step := int64(0); step <= 4; step++ {
		p.Set(step, "")
		c.pass(10 * time.Second)
	}
	p.Done() // nothing new to say
	want := "eval 1/4  0.1/s  30s left\neval 2/4  0.1/s  20s left\neval 3/4  0.1/s  10s left\neval 4/4  0.1/s\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestProgressBar(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, 100, "wake")
	p.bar = newBar(&b, 100)
	c := newClock().drive(p)
	p.Set(50, "")
	c.pass(10 * time.Second)
	p.Set(101, "over")
	p.Done()
	if got := b.String(); !bytes.Contains([]byte(got), []byte("wake 101/100  5.1/s  over")) || got[len(got)-1] != '\n' {
		t.Errorf("got %q", got)
	}
}

func TestProgressSilent(t *testing.T) {
	p := NewProgress(nil, 10, "wake")
	p.Set(3, "text")
	p.Done()
	var b bytes.Buffer
	p = NewProgress(io.Writer(&b), 10, "wake")
	p.Done()
	if b.Len() > 0 {
		t.Errorf("nothing happened, but it said %q", b.String())
	}
}
