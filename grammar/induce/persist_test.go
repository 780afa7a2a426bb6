package induce

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/treebank"
)

// persistent is a training whose moves go on where they were.
func persistent(trees string) Config {
	c := smallGFN()
	c.Moves.Persist, c.Wake.Samples, c.Policy.Trees = true, 2, trees
	return c
}

// Chains begin at fresh trees and, the next time that their sentence comes, where they have ended, whatever the batch
// and its room for words. Chains of other sentences are left alone.
func TestChainsPersist(t *testing.T) {
	t.Parallel()
	for _, trees := range []string{Labelled, Shapes} {
		s := tinySession(t, persistent(trees))
		makeGrammar(t, s)
		step := s.loop.E.(gfnStep)
		all := s.sampler.sentences
		batch := func(room int, numbers ...int) parse.Padded {
			var some []treebank.Sentence
			for _, i := range numbers {
				some = append(some, all[i])
			}
			b := parse.Batches{Rows: len(numbers), Bucket: room, Most: room}.Pad(some)
			b.Numbers = numbers
			return b
		}
		var short []int // sentences that fit in a small room, too
		for i, x := range all {
			if len(x.Words) <= 4 {
				short = append(short, i)
			}
		}
		some := short[:s.Batch]
		first := step.walker(em.Moment{}, batch(5, some...))
		if err := first.run(true, 0); err != nil {
			t.Fatal(err)
		}
		if first.resumed != 0 {
			t.Errorf("%s: %g of all chains go on from nowhere", trees, first.resumed)
		}
		// In another room, another order, and beside other sentences.
		mixed := append([]int{short[s.Batch], short[s.Batch+1]}, some[2:]...)
		mixed[2], mixed[3] = mixed[3], mixed[2]
		again := step.walker(em.Moment{Iteration: 1}, batch(4, mixed...))
		again.choose(again.stepsBack(true, 0))
		if err := again.walk(); err != nil {
			t.Fatal(err)
		}
		fresh := readTrees(again.walks.Forest)
		if err := again.goOn(); err != nil {
			t.Fatal(err)
		}
		if want := float64(s.Batch-2) / float64(s.Batch); again.resumed != want {
			t.Errorf("%s: %g of all chains go on, want %g", trees, again.resumed, want)
		}
		ended, now := readTrees(first.walks.Forest), readTrees(again.walks.Forest)
		row := map[int]int{}
		for i, number := range some {
			row[number] = i
		}
		moved := 0
		for i, number := range mixed {
			for k := range 2 {
				want := fresh[2*i+k]
				if from, ok := row[number]; ok {
					want = ended[2*from+k]
				}
				if now[2*i+k] != want {
					t.Errorf("%s: chain %d of sentence %d is at %s, want %s", trees, k, number, now[2*i+k], want)
				}
				if now[2*i+k] != fresh[2*i+k] {
					moved++
				}
			}
		}
		if moved == 0 {
			t.Errorf("%s: all chains are at fresh trees", trees)
		}
		logR, _ := rewardsOf(t, &iteration{walker: again}, again.walks.Forest)
		for i, v := range widened(again.logR) {
			closeTo(t, trees+": log R where chains go on", v, logR[i], 1e-5)
		}
	}
}

// readTrees writes the trees that walks stand at.
func readTrees(f forest.ForestTensors) []string {
	c := &chains{walker: &walker{walks: forest.WalkTensors{RouteTensors: forest.RouteTensors{Forest: f}}}, rows: f.Length.Shape().Dim(0)}
	c.batch.SentenceTensors.Words = tensors.FromShape(f.Root.Shape())
	return c.shapes()
}
