package model

import (
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/rng"
)

// made are sentences of our making, of two to four words.
func made(seed uint64, n int) (sentences []string) {
	words := []string{"ab", "dec", "fc"}
	for r := rng.New(seed, "sentences"); len(sentences) < n; {
		s := ""
		for range 2 + r.IntN(3) {
			s += words[r.IntN(len(words))]
		}
		if len(s) <= most {
			sentences = append(sentences, s)
		}
	}
	return sentences
}

// Observe turns sentences into observations, [B,10] int32.
func Observe(sentences ...string) *tensors.Tensor {
	x := make([]int32, len(sentences)*most)
	for i, s := range sentences {
		for t := range s {
			x[i*most+t] = int32(s[t]-'a') + 1
		}
	}
	return tensors.FromFlatDataAndDimensions(x, len(sentences), most)
}

// Spaced writes a sentence with a space wherever a latent says that a word ends.
func Spaced(s string, cut []int32) string {
	out := ""
	for t := range s {
		if out += s[t : t+1]; t < len(s)-1 && cut[t] == 1 {
			out += " "
		}
	}
	return out
}
