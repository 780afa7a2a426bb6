// Package runtest checks that a job keeps the laws of run.Job:
//
//	func TestTraining(t *testing.T) { runtest.Job(t, func() run.Job { return newTraining(t) }, runtest.Options{}) }
package runtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/run"
)

// limit is the number of steps after which a job is to be done, unless Options say otherwise.
const limit = 1000

// Options says how far jobs are driven, and where they are stopped.
type Options struct {
	// Steps ends jobs that take longer; 0 means that a job is done after at most 1000.
	Steps int
	// Stops are the numbers of steps after which a job is saved and continued by another; nil means in the middle and
	// before the last step. One is saved before its first step in any case.
	Stops []int
}

// The laws, as they are reported.
const (
	lawRun    = "State, Restore and Step do not fail, and a state can be written and read"
	lawSteps  = "a job that is not done steps, the steps that it reports rise, and it is done in the end"
	lawSame   = "jobs that start alike go alike"
	lawState  = "State does not change the job"
	lawResume = "a job restored from a state continues as the job that returned it"
	lawArrays = "a job has all its arrays before the first step, in the shapes that they keep"
	lawOwn    = "Restore refuses a state that is not one of the job's own, and then changes nothing"
	lawTwice  = "a job restored from a state has that state, and being restored from it again changes nothing"
)

// Job fails t for every law that jobs break. Start starts one, always the same. States are compared to the bit, and so
// is what steps say. It returns a job at its end that was never stopped; if that could not be, it ends the test.
func Job(t *testing.T, start func() run.Job, o Options) run.Job {
	t.Helper()
	c := &checker{start: start, options: o}
	whole := c.check()
	for _, v := range c.broken {
		t.Errorf("runtest: broken law: %s", v)
	}
	if whole == nil {
		t.FailNow()
	}
	return whole
}

// checker collects what it finds.
type checker struct {
	start   func() run.Job
	options Options
	broken  []string
}

// broke records that a law was broken; only the first example is kept.
func (c *checker) broke(law, format string, args ...any) {
	if !slices.ContainsFunc(c.broken, func(old string) bool { return strings.HasPrefix(old, law+": ") }) {
		c.broken = append(c.broken, law+": "+fmt.Sprintf(format, args...))
	}
}

// check returns a job at its end that was never stopped, or nil.
func (c *checker) check() run.Job {
	job := c.start()
	whole, ok := c.drive(job, 0, run.State{})
	if !ok {
		return nil
	}
	total := len(whole.ticks)
	stops := c.options.Stops
	if stops == nil {
		stops = []int{total / 2, total - 1}
	}
	stops = slices.Compact(slices.Sorted(slices.Values(stops)))
	stops = slices.DeleteFunc(stops, func(k int) bool { return k <= 0 })
	for _, k := range stops {
		if k >= total {
			c.broke(lawSteps, "it has %d steps and cannot be stopped after %d", total, k)
			return job
		}
	}
	first, ok := c.save(c.start(), 0)
	if !ok {
		return job
	}
	if d := otherArrays(first, whole.end); d != "" {
		c.broke(lawArrays, "%s", d)
	}
	// One job is restored before its first step and saved at every stop.
	if again, ok := c.restored(first); ok {
		if stopped, ok := c.drive(again, 0, first, stops...); ok {
			if d := stopped.difference(whole); d != "" {
				c.blame(whole, stops, d)
			}
			for i, k := range stops {
				c.resume(whole, k, stopped.saved[i])
			}
		}
	}
	c.refuses(whole.end)
	c.twice(0, first)
	c.resume(whole, total, whole.end)
	return job
}

// resume restores a state that was saved after k steps, and compares the rest with that of a job never stopped.
func (c *checker) resume(whole course, k int, s run.State) {
	job, ok := c.restored(s)
	if !ok {
		return
	}
	once, ok := c.drive(job, k, s)
	if !ok {
		return
	}
	if d := once.difference(whole); d != "" {
		c.broke(lawResume, "saved after %d steps: %s", k, d)
	}
	if job, ok = c.twice(k, s); !ok || k < len(whole.ticks)-1 {
		return
	}
	if again, ok := c.drive(job, k, s); ok {
		if d := again.difference(once); d != "" {
			c.broke(lawTwice, "saved after %d steps: %s", k, d)
		}
	}
}

// refuses tries states that are like a given one.
func (c *checker) refuses(s run.State) {
	job := c.start()
	before, ok := c.save(job, 0)
	if !ok {
		return
	}
	damaged := Damaged(s)
	for _, what := range slices.Sorted(maps.Keys(damaged)) {
		if err := job.Restore(damaged[what]); err == nil {
			c.broke(lawOwn, "with %s it is restored", what)
			return
		}
		after, ok := c.save(job, 0)
		if !ok {
			return
		}
		if d := unlike(after, before); d != "" {
			c.broke(lawOwn, "with %s: %s", what, d)
			return
		}
	}
}

// twice restores a state that was saved after k steps again and again.
func (c *checker) twice(k int, s run.State) (job run.Job, ok bool) {
	if job, ok = c.restored(s); !ok {
		return nil, false
	}
	for range 2 {
		got, ok := c.save(job, s.Step)
		if !ok {
			return nil, false
		}
		if d := unlike(got, s); d != "" {
			c.broke(lawTwice, "saved after %d steps: %s", k, d)
			return nil, false
		}
		if err := job.Restore(got); err != nil {
			c.broke(lawRun, "Restore after %d steps, again: %v", k, err)
			return nil, false
		}
	}
	return job, true
}

// blame finds out why a job that was restored at its beginning and saved at some stops differs from one that was not.
func (c *checker) blame(whole course, stops []int, difference string) {
	if again, ok := c.drive(c.start(), 0, run.State{}); ok {
		if d := again.difference(whole); d != "" {
			c.broke(lawSame, "%s", d)
			return
		}
	}
	if saved, ok := c.drive(c.start(), 0, run.State{}, stops...); ok {
		if d := saved.difference(whole); d != "" {
			c.broke(lawState, "saved after %v steps: %s", stops, d)
			return
		}
	}
	c.broke(lawResume, "saved before the first step: %s", difference)
}

// course is what a job went through after some steps.
type course struct {
	from  int
	ticks []string    // what each step said
	saved []run.State // at the stops
	end   run.State
}

// difference says how a course differs from the rest of another; "" if it does not.
func (c course) difference(other course) string {
	rest := other.ticks[c.from-other.from:]
	for i := range min(len(c.ticks), len(rest)) {
		if c.ticks[i] != rest[i] {
			return fmt.Sprintf("step %d says %s, want %s", c.from+i+1, c.ticks[i], rest[i])
		}
	}
	if len(c.ticks) != len(rest) {
		return fmt.Sprintf("it ends after %d steps, want %d", c.from+len(c.ticks), c.from+len(rest))
	}
	return unlike(c.end, other.end)
}

// unlike says where a state differs from the one that is wanted; "" if nowhere.
func unlike(got, want run.State) string {
	if run.StateHash(got) == run.StateHash(want) {
		return ""
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(got.Arrays)), maps.Keys(want.Arrays))
	slices.Sort(names)
	for _, name := range names {
		a, isA := got.Arrays[name]
		b, isB := want.Arrays[name]
		if isA != isB || a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) || !bytes.Equal(a.Data, b.Data) {
			return fmt.Sprintf("array %q differs", name)
		}
	}
	return fmt.Sprintf("step %d and extra %s, want step %d and %s", got.Step, got.Extra, want.Step, want.Extra)
}

// otherArrays says which array of a state another one has not, or has in another shape; "" if there is none.
func otherArrays(first, end run.State) string {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(end.Arrays))) { // what the run itself lists comes last
		if _, ok := first.Arrays[name]; !ok {
			return fmt.Sprintf("%q is there at the end alone: declare it when the job is prepared", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(first.Arrays)) {
		a, b := first.Arrays[name], end.Arrays[name]
		if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
			return fmt.Sprintf("%q is %s %v at first and %s %v at the end", name, a.DType, a.Shape, b.DType, b.Shape)
		}
	}
	return ""
}

// drive drives a job that has made some steps, and is in a state, to its end.
func (c *checker) drive(job run.Job, from int, s run.State, stops ...int) (out course, ok bool) {
	out.from = from
	at, most := s.Step, c.options.Steps
	if most == 0 {
		most = limit
	}
	for k := from; ; k++ {
		if slices.Contains(stops, k) {
			once, ok := c.save(job, at)
			if !ok {
				return out, false
			}
			again, ok := c.save(job, at)
			if !ok {
				return out, false
			}
			if d := unlike(again, once); d != "" {
				c.broke(lawState, "called twice after %d steps: %s", k, d)
			}
			out.saved = append(out.saved, once)
		}
		if job.Done() {
			break
		}
		if k == most {
			if c.options.Steps == 0 {
				c.broke(lawSteps, "it is not done after %d: set Options.Steps", k)
			}
			break
		}
		tick, err := job.Step()
		if err != nil {
			c.broke(lawRun, "step %d: %v", k+1, err)
			return out, false
		}
		if tick.Step <= at {
			c.broke(lawSteps, "step %d reports %d, the one before %d", k+1, tick.Step, at)
		}
		at = tick.Step
		out.ticks = append(out.ticks, fmt.Sprintf("%+v", tick))
	}
	out.end, ok = c.save(job, at)
	return out, ok
}

// save returns the state of a job after the step that it reported last, written and read again.
func (c *checker) save(job run.Job, step uint64) (run.State, bool) {
	s, err := job.State()
	if err == nil {
		s.Step = step
		s, err = copied(s)
	}
	if err != nil {
		c.broke(lawRun, "State at step %d: %v", step, err)
	}
	return s, err == nil
}

// restored starts a job and restores a copy of a state.
func (c *checker) restored(s run.State) (run.Job, bool) {
	job := c.start()
	s, err := copied(s)
	if err == nil {
		err = job.Restore(s)
	}
	if err != nil {
		c.broke(lawRun, "Restore at step %d: %v", s.Step, err)
	}
	return job, err == nil
}

// copied writes a state and reads it again.
func copied(s run.State) (run.State, error) {
	var b, extra bytes.Buffer
	if err := run.WriteSafetensors(&b, s.Arrays); err != nil {
		return run.State{}, err
	}
	arrays, err := run.ParseSafetensors(b.Bytes())
	if err != nil {
		return run.State{}, err
	}
	if s.Extra != nil {
		if err := json.Compact(&extra, s.Extra); err != nil {
			return run.State{}, fmt.Errorf("extra state: %w", err)
		}
	}
	return run.State{Step: s.Step, Arrays: arrays, Extra: extra.Bytes()}, nil
}
