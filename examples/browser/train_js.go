//go:build js

// The part that runs in the browser: a training of the mixture, as the command train mixture does it.
package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"syscall/js"

	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/mixture"
)

// shownPoints is how many points of the data set a page draws.
const shownPoints = 800

// message is what the page is told.
type message struct {
	Points  []mixture.Point `json:"points,omitempty"`
	True    mixture.Means   `json:"true,omitempty"`
	Means   mixture.Means   `json:"means,omitempty"`
	Step    uint64          `json:"step"`
	Total   uint64          `json:"total"`
	LogProb *float64        `json:"loglik,omitempty"`
	Done    bool            `json:"done,omitempty"`
	Wrong   string          `json:"wrong,omitempty"`
}

// tell sends a message to the page.
func tell(m message) {
	text, err := json.Marshal(m)
	if err != nil { // a number that is not finite
		text = []byte(`{"wrong":"the training has left the finite numbers"}`)
	}
	js.Global().Call("postMessage", string(text))
}

func main() {
	if err := train(js.Global().Get("location").Get("search").String()); err != nil {
		tell(message{Wrong: err.Error()})
	}
}

// train trains with the seed that the address of the script has.
func train(search string) error {
	c := mixture.QuickConfig()
	query, err := url.ParseQuery(strings.TrimPrefix(search, "?"))
	if err != nil {
		return err
	}
	if text := query.Get("seed"); text != "" {
		if c.Seed, err = strconv.ParseUint(text, 10, 62); err != nil {
			return fmt.Errorf("the seed is not a number: %w", err)
		}
	}
	data, means := mixture.Experiment{Problem: c.Model, Points: c.Points, Seed: c.Seed}.Draw(c.Run)
	b, err := engine.New("")
	if err != nil {
		return err
	}
	s, err := mixture.Task{}.Start(b, &c)
	if err != nil {
		return err
	}
	defer s.Close()
	_, total := s.Progress()
	tell(message{Points: data.X[:min(len(data.X), shownPoints)], True: c.Model.TrueMeans(), Means: means, Total: total})
	for !s.Done() {
		r, err := s.Step()
		if err != nil {
			return err
		}
		m := message{Step: r.Step, Total: total}
		if v, ok := r.Log["loglik"]; ok {
			m.LogProb, m.Means = &v, make(mixture.Means, len(means))
			for i := range m.Means {
				m.Means[i] = mixture.Point{r.Log[fmt.Sprintf("means/%d/x", i)], r.Log[fmt.Sprintf("means/%d/y", i)]}
			}
		}
		if m.Means != nil || m.Step%20 == 0 {
			tell(m)
		}
	}
	tell(message{Step: total, Total: total, Done: true})
	return nil
}
