package induce

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/grammar/synthetic"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// openData reads the data set of a configuration: sentences from two words up to the greatest length, and the words that occur
// in them.
func openData(c Config) (*treebank.Dataset, error) {
	var d *treebank.Dataset
	var err error
	switch c.Data {
	case "synthetic":
		d, err = synthetic.Treebank(grammar.CFG, 0)
	case small:
		d, err = synthetic.SmallTreebank()
	case "synthetic-ncfg":
		d, err = synthetic.Treebank(grammar.NCFG, 0)
	default:
		d, err = treebank.Load(c.Data)
	}
	if err != nil {
		if here, e := os.Getwd(); e == nil && !filepath.IsAbs(c.Data) {
			err = badinput.Errorf("%w; data = %q is relative to the folder that the program runs in, %s", err, c.Data, here)
		}
		return nil, err
	}
	return d.Between(2, c.MaxLength).Compact(), nil // no nonterminal covers a single word
}

// sampler gives the batch of every update, as a pure function of its number: every epoch is a new order of the sentences, in
// pools that are sorted by length, whose batches come in a new order. Sentences that do not fill a batch are left out.
type sampler struct {
	*Config
	sentences []treebank.Sentence
	epoch     uint64
	order     [][]int // of the epoch, by number of the sentence; nil at first
}

// perEpoch is the number of batches of an epoch.
func (s *sampler) perEpoch() uint64 { return uint64(len(s.sentences) / s.Batch) }

func (s *sampler) at(update uint64) parse.Padded {
	perEpoch := s.perEpoch()
	if e := update / perEpoch; s.order == nil || e != s.epoch {
		s.epoch, s.order = e, s.shuffle(e)
	}
	numbers := s.order[update%perEpoch]
	var some []treebank.Sentence
	for _, i := range numbers {
		some = append(some, s.sentences[i])
	}
	b := s.batches().Pad(some)
	b.Numbers = numbers
	return b
}

func (s *sampler) shuffle(epoch uint64) [][]int {
	r := rng.New(s.Seed, "grammar/epoch", epoch)
	all := make([]int, len(s.sentences))
	for i := range all {
		all[i] = i
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var out [][]int
	for pool := range slices.Chunk(all, s.Pool*s.Batch) {
		if s.Pool > 1 {
			slices.SortStableFunc(pool, func(a, b int) int { return cmp.Compare(len(s.sentences[a].Words), len(s.sentences[b].Words)) })
		}
		for part := range slices.Chunk(pool, s.Batch) {
			if len(part) == s.Batch {
				out = append(out, part)
			}
		}
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
