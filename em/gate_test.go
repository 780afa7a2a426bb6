package em

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// play drives a gate as a learner does and writes an E for every E-update and an M for every M-update.
func play(g Gate, losses ...float64) string {
	var s GateState
	var m uint64
	trace := ""
	for _, loss := range losses {
		trace += "E"
		for due := g.observe(&s, uint64(strings.Count(trace, "E")-1), loss, m); due; due = g.updated(&s) {
			trace += "M"
			m++
		}
	}
	return trace
}

func TestGateBlocks(t *testing.T) {
	nan := math.NaN()
	ones := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	for _, c := range []struct {
		gate   Gate
		losses []float64
		want   string
	}{
		{Blocks{}, ones(4), "EMEMEMEM"},
		{Blocks{E: 3}, ones(7), "EEEMEEEME"},
		{Blocks{M: 3}, ones(3), "EMMMEMMMEMMM"},
		{Blocks{E: 2, M: 2}, ones(5), "EEMMEEMME"},
		{Blocks{E: 2, M: 2, First: 4}, ones(9), "EEEEMMEEMMEEMME"},
		{Blocks{E: 3, First: 1}, ones(7), "EMEEEMEEEM"},
		{Blocks{First: 3}, ones(5), "EEEMEMEM"},
		{Blocks{First: math.MaxInt}, ones(5), "EEEEE"},
		{Blocks{E: 2, Below: 1}, []float64{0, 5, 5, 0.5, 0, 1, 1, 0.9}, "EEEEMEEEEM"}, // the last loss of a block counts
		{Blocks{E: 2, Below: 1, First: 3}, []float64{0, 0, 5, 5, 5, 5, 0}, "EEEEEEEM"},
		{Blocks{E: 2, Below: 1, First: 3}, []float64{0, 0, 5, 5, 0}, "EEEEEM"}, // the second block is an ordinary one
		{Blocks{Below: 1}, []float64{nan, 0, nan, 2}, "EEMEE"},                 // a skipped update says nothing
		{Blocks{E: 2}, []float64{nan, nan, nan}, "EEME"},
	} {
		if got := play(c.gate, c.losses...); got != c.want {
			t.Errorf("%+v with %v: %s, want %s", c.gate, c.losses, got, c.want)
		}
	}
}

// slowGate is the published loop (algorithm 2; the code's order of steps): the moving average starts at 0, the threshold
// is read with the M-updates so far, and what the test says holds for the next iteration.
func slowGate(from, to, over float64, losses []float64) string {
	average, g, m, trace := 0.0, 0.0, false, ""
	for _, loss := range losses {
		trace += "E"
		average = 0.9*average + 0.1*loss
		alpha := max(to, from+g/over*(to-from))
		next := average < alpha
		if m {
			trace += "M"
			g++
		}
		m = next
	}
	return trace
}

func TestGateAdaptive(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		losses := make([]float64, 300)
		level := 10 * r.Float64()
		for i := range losses {
			level = max(0, level+r.NormFloat64())
			losses[i] = level
		}
		gate := Adaptive{}
		if got, want := play(gate, losses...), slowGate(6, 3, 10000, losses); got != want {
			t.Fatalf("zero threshold:\n%s, want\n%s", got, want)
		}
		gate.Threshold = Linear{From: 7, To: 1, Over: 60}
		if got, want := play(gate, losses...), slowGate(7, 1, 60, losses); got != want {
			t.Fatalf("falling threshold:\n%s, want\n%s", got, want)
		}
	}

	// By hand: averages 5, 7.5, 4.25, 2.125, 9.0625.
	gate := Adaptive{Decay: 0.5}
	if got := play(gate, 10, 10, 1, 0, 16, 0); got != "EEMEEMEME" {
		t.Errorf("%s, want EEMEEMEME", got)
	}
}

// The zero threshold is the paper's for its context-free grammar.
func TestGateThreshold(t *testing.T) {
	for m, threshold := range map[uint64]float64{0: 6, 1: 5.9997, 5000: 4.5, 10_000: 3, 50_000: 3} {
		for _, by := range []float64{-1e-6, 1e-6} {
			s := GateState{Average: threshold + by}
			Adaptive{Decay: 0.9}.observe(&s, 0, threshold+by, m)
			if s.Open != (by < 0) {
				t.Errorf("after %d M-updates an average of %.7g gives %v", m, s.Average, s.Open)
			}
		}
	}
}

func TestGateAverage(t *testing.T) {
	var s GateState
	var got []float64
	for _, loss := range []float64{10, 10, math.NaN(), 0} {
		Blocks{}.observe(&s, 0, loss, 0)
		got = append(got, s.Average)
	}
	for i, want := range []float64{1, 1.9, 1.9, 1.71} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("averages %v", got)
			break
		}
	}
	if got[1] != got[2] {
		t.Error("a skipped update moved the average")
	}
}

// A gate can be taken apart anywhere: its state is all it knows.
func TestGateState(t *testing.T) {
	losses := []float64{5, 0, 3, 8, 0, 0, 2, 9, 0, 0, 0}
	for _, gate := range []Gate{Blocks{E: 3, M: 2, First: 4, Below: 4}, Adaptive{Threshold: Constant(1)}} {
		var states []GateState
		var s GateState
		var m uint64
		for _, loss := range losses {
			states = append(states, s)
			for due := gate.observe(&s, 0, loss, m); due; due = gate.updated(&s) {
				m++
			}
		}
		if m == 0 {
			t.Fatalf("%+v never opens", gate)
		}
		last := states[len(states)-1]
		for i := range states {
			s := states[i]
			for _, loss := range losses[i : len(losses)-1] {
				for due := gate.observe(&s, 0, loss, 0); due; due = gate.updated(&s) {
				}
			}
			if d := cmp.Diff(last, s); d != "" {
				t.Errorf("%+v continued from %d (-want +got)\n%s", gate, i, d)
			}
		}
	}
}
