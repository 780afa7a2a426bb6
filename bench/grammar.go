package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/grammar/induce"
)

// Grammar is the time of one kind of iteration of GFlowNet-EM for grammars.
type Grammar struct {
	Iteration string  `json:"iteration"` // "E" or "E and M"
	MedianMS  float64 `json:"median_ms"`
	MinMS     float64 `json:"min_ms"`
	Reps      int     `json:"reps"`
	// FirstS is how long the first few took, programs being compiled.
	FirstS float64 `json:"first_s"`
	// Parts are the medians of programs, each waited for, in milliseconds.
	Parts map[string]float64 `json:"parts_ms"`
}

// GrammarSize is what RunGrammar measures.
type GrammarSize struct {
	Config induce.Config
	Words  int // of the vocabulary
}

// RunGrammar measures iterations with and without an M-step, for about the given time each.
func RunGrammar(b compute.Backend, size GrammarSize, about time.Duration, each func(Grammar) error) error {
	t, err := induce.NewTrial(b, size.Config, size.Words)
	if err != nil {
		return err
	}
	defer t.Close()
	for _, kind := range []struct {
		name     string
		maximize bool
	}{{"E", false}, {"E and M", true}} {
		g, err := iterations(t, kind.maximize, about)
		if err != nil {
			return fmt.Errorf("iteration %s: %w", kind.name, err)
		}
		g.Iteration = kind.name
		if err := each(g); err != nil {
			return err
		}
	}
	return nil
}

func iterations(t *induce.Trial, maximize bool, about time.Duration) (g Grammar, err error) {
	const warmup, least = 12, 10 // programs come in several sizes
	begin := time.Now()
	for range warmup {
		if _, _, err := t.Iterate(maximize, false); err != nil {
			return g, err
		}
	}
	g.FirstS = time.Since(begin).Seconds()
	var times []time.Duration
	for begin := time.Now(); len(times) < least || time.Since(begin) < about; {
		d, _, err := t.Iterate(maximize, false)
		if err != nil {
			return g, err
		}
		times = append(times, d)
	}
	parts := map[string][]time.Duration{}
	for range least {
		_, each, err := t.Iterate(maximize, true)
		if err != nil {
			return g, err
		}
		for name, d := range each {
			parts[name] = append(parts[name], d)
		}
	}
	ms := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2]) / float64(time.Millisecond)
	}
	g.MedianMS, g.Reps, g.Parts = ms(times), len(times), map[string]float64{}
	g.MinMS = float64(times[0]) / float64(time.Millisecond)
	for name := range parts {
		g.Parts[name] = ms(parts[name])
	}
	return g, nil
}
