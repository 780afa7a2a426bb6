package induce

import (
	"cmp"
	"errors"
	"io/fs"
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

// openData reads the data set of a configuration: sentences from two words up to the greatest length, and the words
// that occur in them; and the whole data set.
func openData(c *Config) (data, whole *treebank.Dataset, err error) {
	if err := c.open(); err != nil {
		return nil, nil, err
	}
	return c.opened.Between(2, c.MaxLength).Compact(), c.opened, nil // no nonterminal covers a single word
}

// builtIn are names of data, and of grammars, that the program has.
var builtIn = []string{small, "synthetic", "synthetic-ncfg"}

// open reads what Data names, unless that was done before.
func (c *Config) open() (err error) {
	if c.opened != nil {
		return nil
	}
	switch {
	case c.Data == "synthetic":
		c.opened, err = synthetic.Treebank(grammar.CFG, 0)
	case c.Data == small:
		c.opened, err = synthetic.SmallTreebank()
	case c.Data == "synthetic-ncfg":
		c.opened, err = synthetic.Treebank(grammar.NCFG, 0)
	case c.ofFiles():
		return c.make()
	default:
		c.opened, err = treebank.Load(c.Data)
		if _, e := os.Stat(c.Data); c.opened == nil && errors.Is(e, fs.ErrNotExist) {
			err = badinput.Errorf("there is no %s: data names a file of sentences or trees, a folder of such files, or a data set", c.Data)
		}
		if err == nil && c.Text != usualText {
			err = badinput.Errorf("%s is a data set: what section text of the configuration says was decided when it was made", c.Data)
		}
	}
	if err != nil {
		c.opened = nil
	}
	if here, e := os.Getwd(); err != nil && e == nil && !filepath.IsAbs(c.Data) {
		err = badinput.Errorf("%w; data = %q is relative to the folder that the program runs in, %s", err, c.Data, here)
	}
	return err
}

// heldOut are the validation and the test sentences of a data set.
func heldOut(d *treebank.Dataset) (out []*treebank.Split) {
	for _, name := range []string{treebank.Valid, treebank.Test} {
		if split, err := d.Split(name); err == nil && len(split.Sentences) > 0 {
			out = append(out, split)
		}
	}
	return out
}

// measureOn evaluates on sentences of other lengths than those of the training, the shortest first. Words that were not
// there become <unk>.
func (s *Session) measureOn(whole *treebank.Dataset) error {
	d := *whole.Between(2, s.Eval.MaxLength)
	d.Splits = slices.DeleteFunc(slices.Clone(d.Splits), func(x treebank.Split) bool { return x.Name == treebank.Train })
	known, err := translate(&d, s.Words)
	if err != nil {
		return err
	}
	for _, split := range known.Splits {
		slices.SortStableFunc(split.Sentences, func(a, b treebank.Sentence) int { return cmp.Compare(len(a.Words), len(b.Words)) })
	}
	if s.measured = heldOut(known); s.measured == nil {
		return badinput.Errorf("%s has no validation or test sentences of 2 to %d words", s.Config.Data, s.Eval.MaxLength)
	}
	s.Exact.Area = s.Exact.Rows * wholeBatch * wholeBatch
	return nil
}

// wholeBatch is the number of words up to which batches of an evaluation have as many sentences as others.
const wholeBatch = 40

// sampler gives the batch of every update, as a pure function of its number: every epoch is a new order of the
// sentences, in pools that are sorted by length, whose batches come in a new order. Sentences that do not fill a batch
// are left out.
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
