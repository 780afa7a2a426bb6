package task_test

import (
	"math"
	"testing"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
)

// A session keeps the laws of a job, whatever ends it.
func TestSessionIsAJob(t *testing.T) {
	b := open(t)
	for name, change := range map[string]func(c *config){
		"M-steps": func(*config) {},
	} {
		c := config{Updates: 6, Rows: 20}
		change(&c)
		t.Run(name, func(t *testing.T) {
			runtest.Job(t, func() run.Job {
				s, err := toy.Start(b, &c)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(s.Close)
				return s
			}, runtest.Options{})
		})
	}
	_, _ = math.Pi, em.Never
}
