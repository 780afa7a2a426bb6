package em

import (
	"errors"
	"fmt"
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/rows"
)

// latents are those of a batch, as G lists of K, one for each initial state; nothing for an envs.Sequence. If all
// observations have one initial state there is one list, and Z alone.
type latents[T any] struct {
	Z      []T // [G*K,...]; shorter lists are filled with their last latent
	Count  T   // [G] int32: how many there are
	Excess T   // [G] float64: the logarithm of how often each is listed
	Of     T   // [B] int32: which list an observation has
}

// listable is the largest number of states, or of combinations of choices, that are listed for one observation.
const listable = 1 << 17

// lister finds the latents of batches.
type lister struct {
	Classical
	backend *program.Set
	start   *program.Program[[]*tensors.Tensor, []*tensors.Tensor]
	choose  *program.Program[[]*tensors.Tensor, chosen[*tensors.Tensor]]

	known map[string]latentList // by initial state
	most  int                   // latents of any of them
	like  []*tensors.Tensor     // states

	initial []string // of the batch before
	batch   latents[*tensors.Tensor]
}

// latentList are the latents of one initial state, as rows; excess is the logarithm of how often each is listed.
type latentList struct {
	rows   []string
	excess float64
}

// chosen are the combinations of choices of one initial state, and which choices it has.
type chosen[T any] struct {
	Z    []T
	Open T
}

func newLister(c Classical, s *program.Set) *lister {
	l := &lister{Classical: c, backend: s, known: map[string]latentList{}}
	l.start = program.New[[]*tensors.Tensor, []*tensors.Tensor](s, "initial states", func(x gfn.Batch) gfn.State {
		return gfn.Initial(c.Env, x)
	})
	l.choose = program.New[[]*tensors.Tensor, chosen[*tensors.Tensor]](s, "combinations of choices", func(s gfn.State) chosen[*Node] {
		e := c.Env.(gfn.Product)
		values := Const(s[0].Graph(), combinations(e.Choices()))
		return chosen[*Node]{e.Choose(s.Repeat(values.Shape().Dim(0)), values), e.Open(s)}
	})
	return l
}

// of returns the latents of observations.
func (l *lister) of(x []*tensors.Tensor) (none latents[*tensors.Tensor], err error) {
	if _, ok := l.Env.(envs.Sequence); ok {
		return none, nil
	}
	states, err := l.start.Call(x)
	if err != nil {
		return none, err
	}
	initial := rows.Of(states)
	if slices.Equal(initial, l.initial) {
		return l.batch, nil
	}
	l.like = states
	var fresh []int // the first observations with initial states that are not known
	seen := map[string]bool{}
	for i, s := range initial {
		if _, ok := l.known[s]; !ok && !seen[s] {
			fresh = append(fresh, i)
			seen[s] = true
		}
	}
	if len(fresh) > 0 {
		if err := l.learn(x, states, initial, fresh); err != nil {
			return none, err
		}
	}
	l.initial, l.batch = initial, l.join(initial)
	return l.batch, nil
}

// learn lists the latents of some observations.
func (l *lister) learn(x, states []*tensors.Tensor, initial []string, some []int) error {
	lists, err := l.enumerate, error(nil)
	if l.Posterior == MeanField {
		lists = l.combine
	}
	found, err := lists(rows.Take(x, some), rows.Take(states, some))
	switch {
	case errors.Is(err, gfn.ErrTooMany):
		return blame.Caller(fmt.Errorf("%T has too many latents to list: %w", l.Env, err))
	case err != nil:
		return err
	}
	for i, list := range found {
		l.known[initial[some[i]]] = list
		l.most = max(l.most, len(list.rows))
	}
	return nil
}

// enumerate lists the objects of observations with different initial states.
func (l *lister) enumerate(x, _ []*tensors.Tensor) (lists []latentList, err error) {
	all, _, err := gfn.EnumerateEach(l.backend.Backend, l.Env, x, listable)
	for _, d := range all {
		lists = append(lists, latentList{rows: rows.Of(d.ObjectStates())})
	}
	return lists, err
}

// combine lists the combinations of choices of initial states.
func (l *lister) combine(_, states []*tensors.Tensor) (lists []latentList, err error) {
	sizes := l.Env.(gfn.Product).Choices()
	for i := range states[0].Shape().Dim(0) {
		out, err := l.choose.Call(rows.Take(states, []int{i}))
		if err != nil {
			return nil, err
		}
		list := latentList{rows: rows.Of(out.Z)}
		for t, open := range tensors.MustCopyFlatData[bool](out.Open) {
			if !open {
				list.excess += math.Log(float64(sizes[t]))
			}
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// join makes the lists of a batch. Their number is a power of two, and their length that of the longest so far, so that
// programs are compiled for few shapes.
func (l *lister) join(initial []string) (out latents[*tensors.Tensor]) {
	number, of := map[string]int{}, make([]int32, len(initial))
	var lists []latentList
	for i, s := range initial {
		n, ok := number[s]
		if !ok {
			n = len(lists)
			number[s] = n
			lists = append(lists, l.known[s])
		}
		of[i] = int32(n)
	}
	if one := lists[0]; len(l.known) == 1 && one.excess == 0 {
		out.Z = rows.Join(l.like, one.rows, len(one.rows))
		return out
	}
	size := 1
	for size < len(lists) {
		size *= 2
	}
	var all []string
	counts, excess := make([]int32, size), make([]float64, size)
	for g := range size {
		list := lists[min(g, len(lists)-1)]
		for k := range l.most {
			all = append(all, list.rows[min(k, len(list.rows)-1)])
		}
		counts[g], excess[g] = int32(len(list.rows)), list.excess
	}
	out.Z = rows.Join(l.like, all, len(all))
	out.Count, out.Excess = tensors.FromValue(counts), tensors.FromValue(excess)
	out.Of = tensors.FromValue(of)
	return out
}

// list returns the latents of an observation of the last batch.
func (l *lister) list(i int) []*tensors.Tensor {
	if e, ok := l.Env.(envs.Sequence); ok {
		return []*tensors.Tensor{combinations(e.Sizes)}
	}
	list := l.known[l.initial[i]].rows
	return rows.Join(l.like, list, len(list))
}
