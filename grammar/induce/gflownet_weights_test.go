package induce

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/internal/testkit"
)

// weightedGFN learns from several walks of each sentence, by their weights.
func weightedGFN(samples int) Config {
	c := smallGFN()
	c.Wake.Samples, c.MStep.Weights, c.Moves.Count = samples, true, 0
	c.Optim.Warmup = 40 // the first update changes nothing
	return c
}

// The mean weight of walks is p(x), whether they explore or not. A normal number is as far off as allowed once in
// 150,000 times, and there are 8 sentences. Weights without P_B, by which a tree counts as often as there are ways to
// make it, are caught.
func TestWeightsOfWalks(t *testing.T) {
	t.Parallel()
	const walks = 1000
	for what, change := range map[string]func(c *Config){
		"CFG":                func(c *Config) { c.Policy.UniformBack, c.Wake.Beta = true, 0.5 },
		"Non-CFG, exploring": func(c *Config) { c.Model.Grammar, c.Wake.Epsilon = string(grammar.NCFG), 0.2 },
	} {
		config := weightedGFN(walks)
		config.Seed, config.Moves.Balance, config.Model.Width = testkit.Seed(t), 0, 64
		change(&config)
		s := tinySession(t, config)
		makeGrammar(t, s)
		b := s.sampler.at(0)
		for it := range s.sampler.perEpoch() { // the batch with the longest sentences
			if c := s.sampler.at(it); parse.Tokens(c.Sentences) > parse.Tokens(b.Sentences) {
				b = c
			}
		}
		logX, err := s.Exact.LogLikelihoods(b.Sentences)
		if err != nil {
			t.Fatal(err)
		}
		w := s.loop.E.(gfnStep).walker(em.Moment{}, b)
		if err := w.run(true, 0); err != nil {
			t.Fatal(err)
		}
		logW, back := widened(w.latents.LogW), widened(w.walks.MadeBack)
		caught := 0
		for i, want := range logX {
			off := func(log func(row int) float64) float64 {
				var all []float64
				for k := range walks {
					all = append(all, log(i*walks+k))
				}
				e := gfn.EstimateLogZ(all)
				return math.Abs(math.Expm1(e.LogZ-want)) / e.StdErr / math.Exp(e.LogZ-want)
			}
			if d := off(func(row int) float64 { return logW[row] }); !(d < sigmas) {
				t.Errorf("%s: the mean weight of sentence %d is %.1f standard errors off", what, i, d)
			}
			if d := off(func(row int) float64 { return logW[row] - back[row] }); d > sigmas {
				caught++
			}
		}
		if caught == 0 {
			t.Errorf("%s: weights without P_B pass", what)
		}
	}
}

// The loss of a weighted M-step and the effective sample size are those of plain loops over the scores of trees.
func TestWeightedMStep(t *testing.T) {
	t.Parallel()
	const walks = 6
	config := weightedGFN(walks)
	config.Wake.Beta = 1
	s := tinySession(t, config)
	makeGrammar(t, s)
	b := s.sampler.at(0)
	w := awake(t, s, true)
	route := w.learning.Wake
	logR, _ := rewardsOf(t, &iteration{walker: w.walker}, route.Forest)
	steps := along(t, s.gfn, w.learning.Words, route.Forest, route.Made, false)
	loss, even, ess := 0.0, 0.0, 0.0
	rows := len(b.LengthOf)
	for i := range rows {
		var total, squares, of float64
		for row := i * walks; row < (i+1)*walks; row++ {
			weight := math.Exp(logR[row] + sum(steps.logPB[row]) - sum(steps.logPF[row]) - logR[i*walks])
			total, squares, of = total+weight, squares+weight*weight, of-weight*logR[row]
			even -= logR[row] / walks / float64(rows)
		}
		loss, ess = loss+of/total/float64(rows), ess+total*total/squares/float64(rows)
	}
	out, err := s.loop.M.Maximize(em.Moment{}, b, w.latents)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "loss", out.Loss, loss, 1e-3)
	closeTo(t, "effective sample size", out.Metrics["m/ess"], ess, 1e-3)
	if !(math.Abs(loss-even) > 0.01) || !(ess > 1.01 && ess < walks-0.01) {
		t.Errorf("weights make no difference: loss %v, with equal ones %v, effective sample size %v", loss, even, ess)
	}
}

// A batch of several walks of each sentence has them in a row, and objectives compare those of one sentence.
func TestSeveralWalks(t *testing.T) {
	t.Parallel()
	for _, objective := range []string{"vargrad", "rws"} {
		config := smallGFN()
		config.Wake.Samples, config.Wake.Objective, config.Wake.Beta, config.Optim.Warmup = 3, objective, 1, 40
		s := tinySession(t, config)
		b := s.sampler.at(0)
		w := awake(t, s, true)
		words, few := tensors.MustCopyFlatData[int32](w.learning.Words), tensors.MustCopyFlatData[int32](b.Words)
		lengths, n := tensors.MustCopyFlatData[int32](w.walks.Forest.Length), b.Room()
		for i := range words {
			if words[i] != few[i/n/3*n+i%n] {
				t.Fatalf("word %d is %d, want %d", i, words[i], few[i/n/3*n+i%n])
			}
		}
		if len(lengths) != 3*len(b.LengthOf) {
			t.Fatalf("%d walks", len(lengths))
		}
		for i, length := range lengths {
			if length != b.LengthOf[i/3] {
				t.Fatalf("row %d has %d words, want %d", i, length, b.LengthOf[i/3])
			}
		}
		logR, _ := rewardsOf(t, w, w.learning.Wake.Forest)
		paths := along(t, s.gfn, w.learning.Words, w.learning.Wake.Forest, w.learning.Wake.Made, false)
		zeta := func(row int) float64 { return logR[row] + sum(paths.logPB[row]) - sum(paths.logPF[row]) }
		want := mean(len(b.LengthOf), func(i int) float64 {
			center := mean(3, func(k int) float64 { return zeta(3*i + k) })
			total := 3 * mean(3, func(k int) float64 { return math.Exp(zeta(3*i+k) - center) })
			return mean(3, func(k int) float64 {
				if objective == "vargrad" {
					return math.Pow(zeta(3*i+k)-center, 2)
				}
				return -3 * math.Exp(zeta(3*i+k)-center) / total * sum(paths.logPF[3*i+k])
			})
		})
		closeTo(t, objective, w.losses.Wake, want, 1e-4)
		steps(t, s, 4)
		if s.loop.State().Skipped != 0 || s.loop.State().M == 0 {
			t.Errorf("%+v", s.loop.State())
		}
	}
}

// Losses that train no flows make no estimate of log p(x) from them.
func TestFlowsOfLosses(t *testing.T) {
	for objective, none := range map[string]bool{"subtb": false, "tb": false, "vargrad": true, "none": true} {
		c := weightedGFN(2)
		c.Wake.Objective = objective
		s := tinySession(t, c)
		log := map[string]float64{}
		if err := s.measure(log); err != nil {
			t.Fatal(err)
		}
		if _, ok := log["valid/flow_per_word"]; ok == none || s.Network.NoFlows != none {
			t.Errorf("%s: %v", objective, log)
		}
	}
}
