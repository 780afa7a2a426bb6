package parse

import (
	"cmp"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/treebank"
)

// Padded is sentences of about the same length, padded to a common one.
type Padded struct {
	forest.SentenceTensors                     // [B,n], [B]
	LengthOf               []int32             // the lengths on the host: to read a tensor that has been sent to a card is to wait for it
	Sentences              []treebank.Sentence // those that count; the other rows repeat the last one
	Numbers                []int               // of these in their data set; nil if nobody has said
}

// Room is n, the number of words that rows have room for.
func (p Padded) Room() int { return p.Words.Shape().Dim(1) }

// Longest is the greatest number of words.
func (p Padded) Longest() int { return int(slices.Max(p.LengthOf)) }

// Repeat returns the batch with every row so many times in a row. The same sentences count.
func (p Padded) Repeat(times int) Padded {
	if times == 1 {
		return p
	}
	out := p
	words, n := tensors.MustCopyFlatData[int32](p.Words), p.Room()
	var rows []int32
	out.LengthOf = nil
	for i, length := range p.LengthOf {
		for range times {
			rows, out.LengthOf = append(rows, words[i*n:][:n]...), append(out.LengthOf, length)
		}
	}
	out.SentenceTensors = forest.SentenceTensors{
		Words: tensors.FromFlatDataAndDimensions(rows, len(out.LengthOf), n), Lengths: tensors.FromValue(out.LengthOf),
	}
	return out
}

// Tokens counts words, and one more for the end of each sentence.
func Tokens(sentences []treebank.Sentence) (n int) {
	for _, s := range sentences {
		n += len(s.Words) + 1
	}
	return n
}

// Longest is the greatest number of words, 0 without sentences.
func Longest(sentences []treebank.Sentence) (n int) {
	for _, s := range sentences {
		n = max(n, len(s.Words))
	}
	return n
}

// Batches says how sentences are put into batches.
type Batches struct {
	Rows   int // sentences of a batch
	Bucket int // batches have room for a multiple of so many words
	Most   int // and for no more than these, unless a sentence has more; 0 means any
	// Area is the greatest product of the rows and the squared room of a batch, which memory grows with: longer
	// sentences come in smaller batches. 0 means any.
	Area int
}

// SetBatches implements Parser.
func (b *Batches) SetBatches(rows, bucket int) { b.Rows, b.Bucket = rows, bucket }

// room is the number of words that a batch with a sentence of so many words has room for.
func (b Batches) room(longest int) int {
	n := (longest + b.Bucket - 1) / b.Bucket * b.Bucket
	if b.Most > 0 {
		n = min(n, b.Most)
	}
	return max(n, longest, 2)
}

// rows is the number of rows of a batch with room for n words.
func (b Batches) rows(n int) int {
	if b.Area == 0 {
		return b.Rows
	}
	return max(1, min(b.Rows, b.Area/(n*n)))
}

// Pad packs sentences, repeating the last one until there are enough rows.
func (b Batches) Pad(sentences []treebank.Sentence) Padded {
	n := b.room(Longest(sentences))
	rows := b.rows(n)
	words, lengths := make([]int32, rows*n), make([]int32, rows)
	for i := range rows {
		s := sentences[min(i, len(sentences)-1)]
		copy(words[i*n:], s.Words)
		lengths[i] = int32(len(s.Words))
	}
	return Padded{
		SentenceTensors: forest.SentenceTensors{
			Words: tensors.FromFlatDataAndDimensions(words, rows, n), Lengths: tensors.FromValue(lengths),
		},
		LengthOf: lengths, Sentences: sentences,
	}
}

// each packs sentences in their order, or those of about the same length together, and says where they came from.
func (b Batches) each(
	sentences []treebank.Sentence, byLength bool, do func(number int, at []int, x Padded) error,
) error {
	order := make([]int, len(sentences))
	for i := range order {
		order[i] = i
	}
	if byLength {
		words := func(i int) int { return len(sentences[i].Words) }
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(words(i), words(j)) })
	}
	for number := 0; len(order) > 0; number++ {
		var part []treebank.Sentence
		for _, from := range order {
			if more := append(part, sentences[from]); len(part) == 0 || len(more) <= b.rows(b.room(Longest(more))) {
				part = more
				continue
			}
			break
		}
		if err := do(number, order[:len(part)], b.Pad(part)); err != nil {
			return err
		}
		order = order[len(part):]
	}
	return nil
}

// fill puts numbers of a batch where its sentences came from.
func fill(out []float64, at []int, from *tensors.Tensor) {
	values := tensors.MustCopyFlatData[float64](from)
	for i, to := range at {
		out[to] = values[i]
	}
}

// NatsPerWord is the negative of a sum of log-likelihoods by the number of words and sentence ends.
func NatsPerWord(logP []float64, sentences []treebank.Sentence) float64 {
	nll := 0.0
	for _, v := range logP {
		nll -= v
	}
	return nll / float64(Tokens(sentences))
}
