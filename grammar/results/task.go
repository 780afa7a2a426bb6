// Package results is what is made of a training of a grammar at its end: measures, report.html, and tables of the paper
// beside ours.
//
// Where things are:
//
//	task.go        the task as commands see it
//	evaluate.go    how good a grammar is, lengths.go on which sentences, and print.go, which says so
//	report*.go     report.html
//	table*.go      tables of the paper beside ours
package results

import (
	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/run"
)

// Task learns a grammar, and shows what came of it.
type Task struct{ induce.Task }

var _ run.Uneven = Task{}

// Start implements run.Task.
func (t Task) Start(b compute.Backend, config any) (run.Session, error) {
	s, err := t.Task.Start(b, config)
	if err != nil {
		return nil, err
	}
	return session{s}, nil
}

// session is a training that can be looked at.
type session struct{ *induce.Session }

var _ run.Session = session{}
