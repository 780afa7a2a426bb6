package chain

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/memory"
)

// Weights are potentials of a batch of sentences on the host, laid out to score single nodes of trees.
type Weights struct {
	parents bool
	nt, pt  int
	root    []float64 // [N]
	lengths []int
	// Rows are the distributions over rules: [N], or [N,P]. A block of two nonterminals is kept as logarithms, others
	// as probabilities.
	nn, np, pn, pp []float64   // [rows,N,N] [rows,N,T] [rows,N,T] (right child first) [rows,T,T]
	emit           [][]float64 // of each sentence: [n,T] or [n,N,T], relative to the greatest of each row
	shifts         [][]float64 // of each sentence: logarithms of the greatest, [n] or [n,N]
}

// Sentences is how many sentences there are.
func (s *Weights) Sentences() int { return len(s.lengths) }

// NewWeights takes the values of Potentials: root [N], rules [N,S,S] or [N,P,S,S], terms [B,n,T] or [B,n,T,N], all
// float32 or all float64, and the lengths of the sentences.
func NewWeights(p grammar.PotentialTensors, lengths []int32) (*Weights, error) {
	root, rules, terms := p.Root, p.Rules, p.Terms
	d := terms.Shape().Dimensions
	if len(d) != 3 && len(d) != 4 {
		return nil, fmt.Errorf("chain: terms of shape %s", terms.Shape())
	}
	symbols := rules.Shape().Dim(-1)
	s := &Weights{parents: len(d) == 4, pt: d[2], nt: symbols - d[2]}
	want := []int{s.nt, symbols, symbols}
	if s.parents {
		want = []int{s.nt, s.nt + 1, symbols, symbols}
	}
	if s.nt < 1 || len(lengths) != d[0] || root.Shape().CheckDims(s.nt) != nil || rules.Shape().CheckDims(want...) != nil {
		return nil, fmt.Errorf("chain: root %s, rules %s, terms %s and %d lengths do not fit",
			root.Shape(), rules.Shape(), terms.Shape(), len(lengths))
	}
	for i, l := range lengths {
		if l < 2 || int(l) > d[1] {
			return nil, fmt.Errorf("chain: sentence %d of %d words, in a batch of 2 to %d", i, l, d[1])
		}
		s.lengths = append(s.lengths, int(l))
	}
	if terms.DType() == dtypes.Float32 {
		return s, fill[float32](s, root, rules, terms)
	}
	return s, fill[float64](s, root, rules, terms)
}

func fill[F float32 | float64](s *Weights, root, rules, terms *tensors.Tensor) error {
	for _, v := range tensors.MustCopyFlatData[F](root) {
		s.root = append(s.root, float64(v))
	}
	rows := rules.Shape().Size() / ((s.nt + s.pt) * (s.nt + s.pt))
	size := s.nt + s.pt
	if err := memory.Need("the rules of Markov chains", 8, rows, size, size); err != nil {
		return err
	}
	s.nn, s.np = make([]float64, rows*s.nt*s.nt), make([]float64, rows*s.nt*s.pt)
	s.pn, s.pp = make([]float64, rows*s.nt*s.pt), make([]float64, rows*s.pt*s.pt)
	err := tensors.ConstFlatData(rules, func(flat []F) {
		parallel(rows, func(row int) { fillRow(s, row, flat) })
	})
	if err != nil {
		return err
	}
	if err := memory.Need("the words of Markov chains", 8, terms.Shape().Size()); err != nil {
		return err
	}
	s.emit, s.shifts = make([][]float64, len(s.lengths)), make([][]float64, len(s.lengths))
	return tensors.ConstFlatData(terms, func(flat []F) {
		size := terms.Shape().Size() / len(s.lengths)
		parallel(len(s.lengths), func(i int) { fillWords(s, i, flat[i*size:][:size]) })
	})
}

func fillRow[F float32 | float64](s *Weights, row int, flat []F) {
	n, t, size := s.nt, s.pt, s.nt+s.pt
	from := flat[row*size*size:][:size*size]
	for l := range n {
		for r := range n {
			s.nn[(row*n+l)*n+r] = float64(from[l*size+r])
		}
		for r := range t {
			s.np[(row*n+l)*t+r] = math.Exp(float64(from[l*size+n+r]))
			s.pn[(row*n+l)*t+r] = math.Exp(float64(from[(n+r)*size+l]))
		}
	}
	for l := range t {
		for r := range t {
			s.pp[(row*t+l)*t+r] = math.Exp(float64(from[(n+l)*size+n+r]))
		}
	}
}

func fillWords[F float32 | float64](s *Weights, sentence int, flat []F) {
	hosts := 1
	if s.parents {
		hosts = s.nt
	}
	n := s.lengths[sentence]
	words, shifts := make([]float64, n*hosts*s.pt), make([]float64, n*hosts)
	for i := range n {
		for x := range hosts {
			value := func(t int) float64 { return float64(flat[(i*s.pt+t)*hosts+x]) }
			shift := -1e30 // finite, also where no preterminal has the word
			for t := range s.pt {
				shift = max(shift, value(t))
			}
			at := i*hosts + x
			shifts[at] = shift
			for t := range s.pt {
				words[at*s.pt+t] = math.Exp(value(t) - shift)
			}
		}
	}
	s.emit[sentence], s.shifts[sentence] = words, shifts
}

// dotRows is x·y.
func dotRows(x, y []float64) float64 {
	var a, b, c, d float64
	y = y[:len(x)]
	i := 0
	for ; i+3 < len(x); i += 4 {
		a += x[i] * y[i]
		b += x[i+1] * y[i+1]
		c += x[i+2] * y[i+2]
		d += x[i+3] * y[i+3]
	}
	for ; i < len(x); i++ {
		a += x[i] * y[i]
	}
	return (a + b) + (c + d)
}
