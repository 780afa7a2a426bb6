package induce

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/treebank"
)

// numbered makes sentences that can be told apart: sentence i has some words, all of them i.
func numbered(count int) []treebank.Sentence {
	out := make([]treebank.Sentence, count)
	for i := range out {
		out[i].Words = slices.Repeat([]int32{int32(i)}, 2+i*7%11)
	}
	return out
}

func TestNewBatch(t *testing.T) {
	some := []treebank.Sentence{{Words: []int32{5, 6}}, {Words: []int32{7, 8, 9}}}
	for _, c := range []struct {
		rows, bucket, most, n int
		words, lengths        string
	}{
		{3, 1, 9, 3, "[5 6 0 7 8 9 7 8 9]", "[2 3 3]"},
		{2, 4, 9, 4, "[5 6 0 0 7 8 9 0]", "[2 3]"},
		{2, 4, 3, 3, "[5 6 0 7 8 9]", "[2 3]"}, // no longer than the greatest length
		{2, 4, 2, 3, "[5 6 0 7 8 9]", "[2 3]"}, // but never too short for its sentences
	} {
		b := parse.Batches{Rows: c.rows, Bucket: c.bucket, Most: c.most}.Pad(some)
		if len(b.Sentences) != 2 || parse.Tokens(b.Sentences) != 7 || b.Room() != c.n {
			t.Errorf("%+v: %d sentences, %d tokens, %d columns", c, len(b.Sentences), parse.Tokens(b.Sentences), b.Room())
		}
		if d := b.Words.Shape().Dimensions; d[0] != c.rows || d[1] != c.n {
			t.Errorf("%+v: words of shape %v", c, d)
		}
		if got := fmt.Sprint(tensors.MustCopyFlatData[int32](b.Words)); got != c.words {
			t.Errorf("%+v: words %s", c, got)
		}
		if got := fmt.Sprint(tensors.MustCopyFlatData[int32](b.Lengths)); got != c.lengths {
			t.Errorf("%+v: lengths %s", c, got)
		}
	}
}

// Every epoch has every sentence at most once, and all but those that fill no batch.
func TestSamplerEpochs(t *testing.T) {
	for _, pool := range []int{1, 2, 100} {
		const sentences, batch = 53, 8
		c := &Config{Seed: 3, Batch: batch, Bucket: 4, MaxLength: 20, Pool: pool}
		s := &sampler{Config: c, sentences: numbered(sentences)}
		const perEpoch = sentences / batch
		var orders []string
		for epoch := range 4 {
			count := map[int32]int{}
			var order []int32
			for k := range perEpoch {
				b := s.at(uint64(epoch*perEpoch + k))
				if len(b.Sentences) != batch || len(b.LengthOf) != batch {
					t.Fatalf("a batch of %d sentences", len(b.Sentences))
				}
				for _, x := range b.Sentences {
					count[x.Words[0]]++
					order = append(order, x.Words[0])
				}
			}
			for id, times := range count {
				if times != 1 {
					t.Errorf("pool %d, epoch %d: sentence %d is used %d times", pool, epoch, id, times)
				}
			}
			if len(count) != perEpoch*batch {
				t.Errorf("pool %d, epoch %d: %d sentences are used", pool, epoch, len(count))
			}
			orders = append(orders, fmt.Sprint(order))
		}
		slices.Sort(orders)
		if len(slices.Compact(orders)) != 4 {
			t.Errorf("pool %d: two epochs have the same order", pool)
		}
	}
}

// A batch depends on nothing but its number, the seed and the sentences: not on what was asked before.
func TestSamplerIsPure(t *testing.T) {
	c := &Config{Seed: 3, Batch: 8, Bucket: 4, MaxLength: 20, Pool: 2}
	all := numbered(53)
	text := func(b parse.Padded) string {
		return fmt.Sprint(tensors.MustCopyFlatData[int32](b.Words), tensors.MustCopyFlatData[int32](b.Lengths))
	}
	forward := &sampler{Config: c, sentences: all}
	var want []string
	for u := range 20 {
		want = append(want, text(forward.at(uint64(u))))
	}
	jumping := &sampler{Config: c, sentences: all}
	for _, u := range []int{19, 0, 7, 6, 5, 18, 12, 1} {
		if text(jumping.at(uint64(u))) != want[u] {
			t.Errorf("batch %d is another after other batches", u)
		}
		if fresh := (&sampler{Config: c, sentences: all}); text(fresh.at(uint64(u))) != want[u] {
			t.Errorf("batch %d is another in a new sampler", u)
		}
	}
	for i, s := range numbered(53) {
		if !slices.Equal(s.Words, all[i].Words) {
			t.Fatal("the sampler changed the sentences it was given")
		}
	}
	other := *c
	other.Seed++
	if text((&sampler{Config: &other, sentences: all}).at(0)) == want[0] {
		t.Error("another seed has the same batch")
	}
}

// Batches of a sorted pool have sentences of about the same length.
func TestSamplerSortsPools(t *testing.T) {
	c := &Config{Batch: 4, Bucket: 1, MaxLength: 20, Pool: 100}
	shuffled := func(c *Config) (out [][]treebank.Sentence) {
		s := &sampler{Config: c, sentences: numbered(44)}
		for k := range s.perEpoch() {
			out = append(out, s.at(k).Sentences)
		}
		return out
	}
	order := shuffled(c)
	slices.SortFunc(order, func(a, b []treebank.Sentence) int { return len(a[0].Words) - len(b[0].Words) })
	longest := 0
	for _, b := range order {
		for _, s := range b {
			if len(s.Words) < longest {
				t.Errorf("the lengths of batches overlap: %d after %d", len(s.Words), longest)
			}
			longest = len(s.Words)
		}
	}
	mixed := *c
	mixed.Pool = 1
	spread := 0
	for _, b := range shuffled(&mixed) {
		for _, s := range b {
			spread = max(spread, len(s.Words)-len(b[0].Words))
		}
	}
	if spread < 3 {
		t.Errorf("batches of unsorted pools have lengths that differ by %d", spread)
	}
}

// Sentences of one word, which a data set may have, are left out: they have no tree.
func TestSingleWords(t *testing.T) {
	d := tinyData(t)
	valid := &d.Splits[1]
	few := len(valid.Sentences)
	total := -1.0
	valid.TrueLogProb = &total
	valid.Sentences = append([]treebank.Sentence{{Words: []int32{2}, Gold: []treebank.Span{}}}, valid.Sentences...)
	dir := t.TempDir() + "/data"
	if err := d.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	c := tinyConfig(Marginal)
	c.Data = dir
	got, _, err := openData(&c)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range got.Splits {
		short := 0
		if s.Name == treebank.Valid {
			short = 1
		}
		if len(s.Sentences) != len(d.Splits[i].Sentences)-short || s.Dropped.Short != short || s.TrueLogProb != nil {
			t.Errorf("%s: %d sentences, %d too short, of %d", s.Name, len(s.Sentences), s.Dropped.Short, few)
		}
		for _, x := range s.Sentences {
			if len(x.Words) < 2 {
				t.Errorf("%s has a sentence of %d word", s.Name, len(x.Words))
			}
		}
	}
}

// A path that is not found says where it was looked for.
func TestRelativeData(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	c := tinyConfig(Marginal)
	c.Data = "data/none"
	_, _, err := openData(&c)
	var input *badinput.Error
	if !errors.As(err, &input) || !strings.Contains(err.Error(), "relative to the folder that the program runs in, ") {
		t.Errorf("error %v", err)
	}
	c.Data = filepath.Join(dir, "none")
	if _, _, err := openData(&c); !errors.As(err, &input) || strings.Contains(err.Error(), "relative") {
		t.Errorf("error %v", err)
	}
}

// An evaluation can have other lengths than the training, with the words of that, the shortest sentences first.
func TestMeasureOn(t *testing.T) {
	whole := tinyData(t)
	c := tinyConfig(Marginal)
	c.MaxLength, c.Bucket, c.Eval.MaxLength = 3, 3, 4
	s, err := NewSession(simd(), c, whole.Between(2, 3).Compact())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hash := s.Data()["treebank"]
	if err := s.measureOn(whole); err != nil {
		t.Fatal(err)
	}
	for i, got := range s.HeldOut() {
		all, last, count := whole.Splits[i+1], 0, 0
		for _, x := range all.Sentences {
			if len(x.Words) <= 4 {
				count++
			}
		}
		for _, x := range got.Sentences {
			if len(x.Words) < last || len(x.Words) > 4 || len(x.Gold) != len(x.Words)-1 {
				t.Errorf("%s: %+v after a sentence of %d words", got.Name, x, last)
			}
			last = len(x.Words)
		}
		if got.Name != all.Name || len(got.Sentences) != count || last != 4 {
			t.Errorf("%s has %d sentences of up to %d words, want %d of %s", got.Name, len(got.Sentences), last, count, all.Name)
		}
	}
	if n := parse.Longest(s.Shown().Sentences); n != 3 || s.Data()["treebank"] != hash {
		t.Errorf("a report shows sentences of %d words; the data's hash was %s and is %v", n, hash, s.Data())
	}
	s.Eval.MaxLength = 2
	whole.Splits[1].Sentences, whole.Splits[2].Sentences = nil, nil
	if err := s.measureOn(whole); err == nil || !strings.Contains(err.Error(), "no validation or test sentences of 2 to 2 words") {
		t.Errorf("error %v", err)
	}
}
