package induce

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/grammar/forest"
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
		d, err = treebank.SyntheticDataset(treebank.ContextFree, 0)
	case small:
		d, err = smallDataset()
	case "synthetic-ncfg":
		d, err = treebank.SyntheticDataset(treebank.ParentDependent, 0)
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

// batch is sentences of about the same length, padded to a common one.
type batch struct {
	words, lengths *tensors.Tensor // [B,n], [B] int32
	lengthOf       []int32         // the same: to read a tensor that has been sent to a card is to wait for it
	size           int             // sentences that count; the rest repeats the last one
	tokens         int             // of those: words, and one more for the end of each sentence
	n              int
	sentences      []treebank.Sentence
}

// observed are the sentences as programs take them.
func (b batch) observed() forest.SentenceTensors {
	return forest.SentenceTensors{Words: b.words, Lengths: b.lengths}
}

// longest is the greatest number of words.
func (b batch) longest() int { return int(slices.Max(b.lengthOf)) }

// longestOf is the greatest number of words, 0 without sentences.
func longestOf(sentences []treebank.Sentence) (n int) {
	for _, s := range sentences {
		n = max(n, len(s.Words))
	}
	return n
}

// tokensOf counts words, and one more for the end of each sentence.
func tokensOf(sentences []treebank.Sentence) (n int) {
	for _, s := range sentences {
		n += len(s.Words) + 1
	}
	return n
}

// newBatch packs sentences, repeating the last one until there are rows of them.
func newBatch(sentences []treebank.Sentence, rows, bucket, most int) batch {
	b := batch{size: len(sentences), tokens: tokensOf(sentences), sentences: sentences}
	longest := longestOf(sentences)
	b.n = min((longest+bucket-1)/bucket*bucket, most)
	b.n = max(b.n, longest, 2)
	words, lengths := make([]int32, rows*b.n), make([]int32, rows)
	for i := range rows {
		s := sentences[min(i, len(sentences)-1)]
		copy(words[i*b.n:], s.Words)
		lengths[i] = int32(len(s.Words))
	}
	b.lengthOf = lengths
	b.words = tensors.FromFlatDataAndDimensions(words, rows, b.n)
	b.lengths = tensors.FromValue(lengths)
	return b
}

// sampler gives the batch of every update, as a pure function of its number: every epoch is a new order of the sentences, in
// pools that are sorted by length, whose batches come in a new order. Sentences that do not fill a batch are left out.
type sampler struct {
	*Config
	sentences []treebank.Sentence
	epoch     uint64
	order     [][]treebank.Sentence // of the epoch; nil at first
}

// perEpoch is the number of batches of an epoch.
func (s *sampler) perEpoch() uint64 { return uint64(len(s.sentences) / s.Batch) }

func (s *sampler) at(update uint64) batch {
	perEpoch := s.perEpoch()
	if e := update / perEpoch; s.order == nil || e != s.epoch {
		s.epoch, s.order = e, s.shuffle(e)
	}
	return newBatch(s.order[update%perEpoch], s.Batch, s.Bucket, s.MaxLength)
}

func (s *sampler) shuffle(epoch uint64) [][]treebank.Sentence {
	r := rng.New(s.Seed, "grammar/epoch", epoch)
	all := slices.Clone(s.sentences)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var out [][]treebank.Sentence
	for pool := range slices.Chunk(all, s.Pool*s.Batch) {
		if s.Pool > 1 {
			slices.SortStableFunc(pool, func(a, b treebank.Sentence) int { return cmp.Compare(len(a.Words), len(b.Words)) })
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
