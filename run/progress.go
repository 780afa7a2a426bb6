package run

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress tells a person how far a run is: with a bar on a terminal, with a line now and then elsewhere. It is
// advice, so that a failure to write it is no failure of the run. It is not safe for concurrent use.
type Progress struct {
	Every time.Duration // the least time between two lines; 10 s unless it is set

	w     io.Writer
	bar   *progressbar.ProgressBar // nil if w is no terminal
	total int64
	label string
	now   func() time.Time

	first     int64 // the step from which the rate counts
	firstTime time.Time
	step      int64 // of the last Set
	stepTime  time.Time
	text      string
	said      int64 // the step of the last line
	saidTime  time.Time
}

// NewProgress returns the progress towards a number of steps. If w is nil it is silent.
func NewProgress(w io.Writer, total int64, label string) *Progress {
	p := &Progress{Every: 10 * time.Second, w: w, total: total, label: label, now: time.Now}
	if f, ok := w.(*os.File); ok && total > 0 && term.IsTerminal(int(f.Fd())) {
		p.bar = newBar(w, total)
	}
	return p
}

// newBar leaves the numbers to us: its own rate would count the steps made before a run was resumed.
func newBar(w io.Writer, total int64) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionShowDescriptionAtLineEnd(),
		progressbar.OptionUseANSICodes(true),
	)
}

// Expect changes the number of steps, which some runs can only estimate.
func (p *Progress) Expect(total int64) {
	if p.bar != nil && total != p.total {
		p.bar.ChangeMax64(total)
	}
	p.total = total
}

// Restart lets the rate count from the last step on, since the next ones are of another kind.
func (p *Progress) Restart() { p.first, p.firstTime = p.step, p.stepTime }

// Set says that a number of steps are done, with a few words on how it goes. The rate counts from the first Set, or the
// last Restart: a run that starts at step n begins with Set(n, "").
func (p *Progress) Set(step int64, text string) {
	if p.w == nil {
		return
	}
	now := p.now()
	if p.firstTime.IsZero() {
		p.first, p.firstTime = step, now
		p.said, p.saidTime = step, now
	}
	p.step, p.stepTime, p.text = step, now, text
	if p.bar != nil {
		p.draw(now)
		return
	}
	if now.Sub(p.saidTime) >= p.Every {
		p.say(now)
	}
}

// During calls f, in which the step stays as it is, perhaps for long. It says meanwhile what is being done, and since when.
func (p *Progress) During(text string, f func() error) error {
	if p.w == nil {
		return f()
	}
	p.Set(p.step, text)
	pause := p.Every
	if p.bar != nil {
		pause = time.Second
	}
	tick := time.NewTicker(pause)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			now := p.now()
			p.text = fmt.Sprintf("%s, %s", text, now.Sub(p.stepTime).Round(time.Second))
			if p.bar != nil {
				p.draw(now)
			} else {
				p.say(now)
			}
		}
	}()
	defer func() {
		tick.Stop()
		close(over)
		<-ended // from here on nobody else uses p
	}()
	return f()
}

// Clear ends the progress, leaves no bar and says no more.
func (p *Progress) Clear() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
	}
}

// Done ends the progress at the last step that was Set.
func (p *Progress) Done() {
	switch {
	case p.w == nil || p.firstTime.IsZero():
	case p.bar != nil:
		_ = p.bar.Exit()
		fmt.Fprintln(p.w)
	case p.step != p.said:
		p.say(p.now())
	}
}

func (p *Progress) draw(now time.Time) {
	p.bar.Describe(p.line(now))
	_ = p.bar.Set64(min(p.step, p.total)) // a Progress is advice
}

func (p *Progress) say(now time.Time) {
	p.said, p.saidTime = p.step, now
	fmt.Fprintln(p.w, p.line(now))
}

// line returns label, steps, rate, time left and text.
func (p *Progress) line(now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d/%d", p.label, p.step, p.total)
	seconds := now.Sub(p.firstTime).Seconds()
	if done := p.step - p.first; done > 0 && seconds > 0 {
		rate := float64(done) / seconds
		fmt.Fprintf(&b, "  %.3g/s", rate)
		if left := float64(p.total-p.step) / rate; left > 0 {
			fmt.Fprintf(&b, "  %s left", time.Duration(left*float64(time.Second)).Round(time.Second))
		}
	}
	if p.text != "" {
		b.WriteString("  " + p.text)
	}
	return b.String()
}
