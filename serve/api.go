package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"time"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/internal/crash"
	"github.com/gfnem/gfnem/internal/memory"
)

// errNoRun says that there is no run of a name, and nothing else about the disk.
var errNoRun = errors.New("there is no run of this name: /api/runs lists them")

// refuse answers with an error: an object with its status and one line.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	writeJSON(w, map[string]any{"error": map[string]any{"status": status, "message": text}})
}

// writeJSON writes a value without the escapes that HTML needs. That the client is gone is no error of ours.
func writeJSON(w io.Writer, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.Encode(v)
}

// reply answers with a value as JSON.
func reply(w http.ResponseWriter, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // a number that is not finite
		refuse(w, http.StatusInternalServerError, "the answer cannot be written: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(b.Bytes())
}

// statusOf is the HTTP status of an error.
func statusOf(err error) int {
	var tooMuch *memory.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errNoRun), errors.Is(err, fs.ErrNotExist), errors.Is(err, errNoQuestion), errors.Is(err, errNoModel):
		return http.StatusNotFound
	case errors.As(err, &tooLarge), errors.Is(err, errTooMany):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errMediaType):
		return http.StatusUnsupportedMediaType
	case errors.Is(err, errBusy):
		return http.StatusTooManyRequests
	case errors.Is(err, errTooSlow), errors.Is(err, errClosing), errors.Is(err, errFull), errors.Is(err, errStreams), errors.As(err, &tooMuch):
		return http.StatusServiceUnavailable
	case isInput(err):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

var (
	errNoQuestion = errors.New("models of this run cannot be asked this")
	errNoModel    = errors.New("the run has not saved its model yet")
	errTooMany    = errors.New("the request asks for too much at once")
	errMediaType  = errors.New("the request must be JSON: send Content-Type: application/json")
)

// question answers POST /api/{question}: an object with the run and what the question takes.
func (s *server) question(w http.ResponseWriter, r *http.Request) {
	begin, name := time.Now(), r.PathValue("question")
	counted := name
	if !s.questions[name] {
		counted = "unknown" // which names there are is ours to say, not the client's
	}
	answer, err := s.ask(name, r, w)
	if err == nil {
		reply(w, answer)
		s.stats.answered(counted, http.StatusOK, time.Since(begin))
		return
	}
	s.stats.answered(counted, statusOf(err), time.Since(begin))
	s.fail(w, statusOf(err), err)
}

// fail answers with an error, of which the details are logged if it is a mistake of ours.
func (s *server) fail(w http.ResponseWriter, status int, err error) {
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if status == http.StatusInternalServerError {
		s.options.Log("error: " + err.Error())
		var panicked *crash.Error
		if errors.As(err, &panicked) {
			s.options.Log(string(panicked.Stack))
			err = errors.New("a mistake of the program, see its log")
		}
	}
	refuse(w, status, err.Error())
}

// ask reads a request and asks the model of its run.
func (s *server) ask(name string, r *http.Request, w http.ResponseWriter) (any, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, errMediaType
	}
	if !s.stats.enter(s.options.Queue) {
		return nil, errBusy
	}
	defer s.stats.leave()
	ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
	defer cancel()
	body, done, err := s.bodies.read(w, r, s.options.Bytes)
	defer done()
	if err != nil {
		return nil, err
	}
	run, body, err := splitRun(body)
	if err != nil {
		return nil, err
	}
	return s.answerOf(ctx, run, name, body)
}

// answerOf asks the model of a run.
func (s *server) answerOf(ctx context.Context, run, name string, body []byte) (any, error) {
	dir, err := s.folder(run)
	if err != nil {
		return nil, err
	}
	for {
		m, in, err := s.models.of(dir)
		if err != nil {
			return nil, err
		}
		j := &job{ctx: ctx, size: 1}
		if name == aboutQuestion {
			j.ask, j.request = aboutAll, struct{}{}
		} else {
			q, ok := command.FindQuestion(in.Questions(), name)
			if !ok {
				return nil, errNoQuestion
			}
			if j.request, err = q.Read(body); err != nil {
				return nil, err
			}
			j.ask = q.Ask
			if sized, ok := j.request.(command.Sized); ok {
				if j.size = max(sized.Size(), 1); j.size > s.options.Items {
					return nil, fmt.Errorf("%w: %d, where the limit is %d", errTooMany, j.size, s.options.Items)
				}
			}
			if joined, ok := j.request.(command.Joined); ok {
				if kind := joined.Join(); kind != "" {
					j.kind = name + " " + kind
				}
			}
		}
		answer, err := m.do(j)
		if errors.Is(err, errClosing) && ctx.Err() == nil && !s.closing.Load() {
			continue // the model made room for another one at this moment
		}
		return answer, err
	}
}

// aboutQuestion is what every model can be asked: what a page says of it.
const aboutQuestion = "about"

func aboutAll(m command.Model, requests []any) ([]any, error) {
	out := make([]any, len(requests))
	for i := range out {
		out[i] = m.About()
	}
	return out, nil
}

// splitRun takes the key "run" out of a request.
func splitRun(body []byte) (run string, rest []byte, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return "", nil, badRequest("the request is not a JSON object: %v", err)
	}
	text := cmp.Or(string(fields["run"]), `"."`)
	if err := json.Unmarshal([]byte(text), &run); err != nil {
		return "", nil, badRequest("run: %v", err)
	}
	delete(fields, "run")
	rest, err = json.Marshal(fields)
	return run, rest, err
}
