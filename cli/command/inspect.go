package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/run"
)

// Inspector lets others look into models of its runs: the page of the command serve, and programs in other languages
// over HTTP. What can be asked is listed without a model; a model is opened once, and is asked by one goroutine at a
// time.
type Inspector interface {
	Questions() []Question
	// Inspect opens the model of a run's newest checkpoint, with a line for each newer one that is damaged.
	Inspect(b compute.Backend, r *run.Run) (m Model, skipped []string, err error)
}

// Model is an opened one.
type Model interface {
	// About is what a page says of the model, as JSON.
	About() any
	Close()
}

// Question is something that a model can be asked, see Ask.
type Question struct {
	Name, About string
	// Request and Answer are the types of both, structs with tags "json" and "help".
	Request, Answer reflect.Type

	read func(body []byte) (any, error)
	ask  func(m Model, requests []any) ([]any, error)
}

// What a request can say of itself.
type (
	// Checked refuses what no model can answer.
	Checked interface{ Check() error }
	// Sized says how many answers it takes, and so how much work it is; others are 1.
	Sized interface{ Size() int }
	// Joined says which requests can be answered by one call of the model, those that return the same text. The others,
	// and with "" all, are answered alone: those whose random numbers depend on what else is computed at the same time.
	Joined interface{ Join() string }
)

// Ask declares a question. Fields of the request that are unknown are errors. The function answers several requests at
// once, with an answer for each; if it fails, requests are asked again one by one, so that errors meet those they are
// about.
func Ask[M Model, Q, A any](name, about string, answer func(m M, requests []Q) ([]A, error)) Question {
	return Question{
		Name: name, About: about, Request: reflect.TypeFor[Q](), Answer: reflect.TypeFor[A](),
		read: func(body []byte) (any, error) {
			var q Q
			d := json.NewDecoder(bytes.NewReader(body))
			d.DisallowUnknownFields()
			if err := d.Decode(&q); err != nil {
				return nil, badinput.Errorf("%s: %w", name, err)
			}
			if _, err := d.Token(); err != io.EOF {
				return nil, badinput.Errorf("%s: there is more than one JSON object", name)
			}
			if c, ok := any(q).(Checked); ok {
				if err := c.Check(); err != nil {
					return nil, badinput.Errorf("%s: %w", name, err)
				}
			}
			return q, nil
		},
		ask: func(m Model, requests []any) ([]any, error) {
			all := make([]Q, len(requests))
			for i, q := range requests {
				all[i] = q.(Q)
			}
			answers, err := answer(m.(M), all)
			if err != nil {
				return nil, err
			}
			if len(answers) != len(all) {
				return nil, fmt.Errorf("%s: %d answers to %d requests", name, len(answers), len(all))
			}
			out := make([]any, len(answers))
			for i := range answers {
				fillLists(reflect.ValueOf(&answers[i]).Elem())
				out[i] = answers[i]
			}
			return out, nil
		},
	}
}

// AskOne declares a question whose requests are answered one by one.
func AskOne[M Model, Q, A any](name, about string, answer func(m M, request Q) (A, error)) Question {
	return Ask(name, about, func(m M, requests []Q) ([]A, error) {
		var out []A
		for _, q := range requests {
			a, err := answer(m, q)
			if err != nil {
				return nil, err
			}
			out = append(out, a)
		}
		return out, nil
	})
}

// fillLists makes empty lists of those that are nil, so that they are lists in JSON too.
func fillLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillLists(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() || v.Type().Field(i).Anonymous {
				fillLists(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.IsNil() && v.CanSet() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		switch v.Type().Elem().Kind() {
		case reflect.Slice, reflect.Struct, reflect.Pointer:
			for i := range v.Len() {
				fillLists(v.Index(i))
			}
		}
	}
}

// Read reads a request, which is a JSON object, and checks it.
func (q Question) Read(body []byte) (any, error) { return q.read(body) }

// Ask asks a model.
func (q Question) Ask(m Model, requests []any) ([]any, error) { return q.ask(m, requests) }

// FindQuestion returns the one of a name.
func FindQuestion(all []Question, name string) (Question, bool) {
	i := slices.IndexFunc(all, func(q Question) bool { return q.Name == name })
	if i < 0 {
		return Question{}, false
	}
	return all[i], true
}
