package em

import (
	"cmp"
	"errors"
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
)

// Replay keeps latents that wake has drawn, with their observations, and draws some of them again in each E-update. New
// ways there are drawn by P_B, and rewards are those of the model as it is. So what was found is not forgotten while
// the policy looks elsewhere. Their losses count as much in the mean as those of fresh trajectories.
//
// The objective must be right off-policy and must not compare trajectories, as gfn.VarGrad does: those that are drawn
// again belong to other observations. Observations are kept in full, and must be finite and have the same shape in
// all batches.
type Replay struct {
	// Size is the number of latents that are kept, of which the oldest make room; 0 means none.
	Size int
	// Batch is the number of latents that an E-update draws from these, uniformly, before it adds its own. It must be set.
	Batch int
}

// Memory keeps for each observation the distinct latents with the greatest rewards that wake has drawn for it, as in
// memoised wake-sleep (Hewitt, Le, Tenenbaum, "Learning to Learn Generative Programs with Memoised Wake-Sleep", UAI
// 2020). Each E-update on an observation draws new ways to them by P_B, and learns from these beside fresh
// trajectories. Then the remembered and the fresh latents are compared by their rewards, all of the model as it is,
// and the best of them stay. Unlike there, M-steps learn from samples of the policy.
//
//	batch, err := em.Batches(seed, 50, 2000)
//	spec.Data = em.Rows(batch, x...)
//	spec.Wake.Memory = em.Memory{Latents: 4, Data: 2000, Rows: batch}
//
// The objective must be right off-policy.
type Memory struct {
	// Latents is the largest number that is remembered for each observation; 0 means that there is no memory.
	Latents int
	// Data is the number of observations in all. It must be set.
	Data int
	// Rows are the numbers of the observations that Spec.Data supplies at a step, from 0 to Data-1 and each of them at
	// most once, as Batches returns them. Nil means that it supplies all of them, always in the same order, as Full
	// does.
	Rows func(step uint64) []int
}

// rows are the numbers of the observations of a step, nil without a memory.
func (m Memory) rows(step uint64) (*tensors.Tensor, error) {
	if m.Latents == 0 {
		return nil, nil
	}
	return numberedRows(memoryField, m.Data, m.Rows, step)
}

// Persistent keeps the latents that M-steps learn from, for each observation, and makes MStep.Moves of these the next
// time that an M-step is about it, instead of moves of fresh ones: a Markov chain for each latent, across epochs, as
// in persistent contrastive divergence (Tieleman, 2008). So a few moves are enough where the model changes slowly,
// even if the policy is far from the posterior. A chain begins with the latents that MStep.Latents says. It stays as
// it was if an M-update is skipped.
//
//	batch, err := em.Batches(seed, 50, 2000)
//	spec.Data = em.Rows(batch, x...)
//	spec.MStep.Moves, spec.MStep.Persist = 2, em.Persistent{Data: 2000, Rows: batch}
type Persistent struct {
	// Data is the number of observations in all; 0 means that nothing persists.
	Data int
	// Rows are the numbers of the observations that Spec.Data supplies at a step, or MStep.Data if that is set, as those
	// of Memory.
	Rows func(step uint64) []int
}

// rows are the numbers of the observations of a step, nil if nothing persists.
func (p Persistent) rows(step uint64) (*tensors.Tensor, error) {
	if p.Data == 0 {
		return nil, nil
	}
	return numberedRows(persistField, p.Data, p.Rows, step)
}

// The names of what numbers observations, for errors.
const (
	memoryField  = "Wake.Memory"
	persistField = "MStep.Persist"
)

// numberedRows are the numbers of the observations of a step, of so many in all; nil rows mean all of them in order.
func numberedRows(field string, data int, rows func(step uint64) []int, step uint64) (*tensors.Tensor, error) {
	var numbers []int32
	seen := make(map[int]bool)
	if rows == nil {
		for i := range data {
			numbers = append(numbers, int32(i))
		}
		return tensors.FromFlatDataAndDimensions(numbers, data), nil
	}
	for _, i := range rows(step) {
		switch {
		case i < 0 || i >= data:
			return nil, fmt.Errorf("%s.Rows has an observation %d, and %[1]s.Data says that there are %d", field, i, data)
		case seen[i]:
			return nil, fmt.Errorf("%s.Rows has observation %d twice in a batch", field, i)
		}
		seen[i] = true
		numbers = append(numbers, int32(i))
	}
	if numbers == nil {
		return nil, fmt.Errorf("%s.Rows has no observation", field)
	}
	return tensors.FromFlatDataAndDimensions(numbers, len(numbers)), nil
}

// checkNumbered stops the building of a program whose batch has other observations than the numbers say.
func checkNumbered(field string, observations int, numbers *Node, all bool) {
	if have := numbers.Shape().Dim(0); have != observations && all {
		blame.Panicf("em: %s.Data is %d, and a batch has %d observations: set %[1]s.Rows to their numbers",
			field, have, observations)
	} else if have != observations {
		blame.Panicf("em: %s.Rows has %d numbers of %d observations", field, have, observations)
	}
}

// checkPersist returns what is wrong with Persist.
func (m MStep) checkPersist() error {
	switch p := m.Persist; {
	case p.Data == 0 && p.Rows != nil:
		return errors.New("chains that persist need MStep.Persist.Data, the number of observations in all")
	case p.Data > 0 && m.Moves == 0:
		return errors.New("MStep.Persist lets moves go on: set MStep.Moves to their number")
	}
	return count("MStep.Persist.Data", m.Persist.Data)
}

// checkKept returns what is wrong with Replay and Memory.
func (w Wake) checkKept(sleepAlone bool) error {
	err := cmp.Or(
		count("Wake.Replay.Size", w.Replay.Size),
		count("Wake.Replay.Batch", w.Replay.Batch),
		count("Wake.Memory.Latents", w.Memory.Latents),
		count("Wake.Memory.Data", w.Memory.Data),
	)
	replays, remembers := w.Replay.Size > 0, w.Memory.Latents > 0
	switch {
	case err != nil:
		return err
	case replays != (w.Replay.Batch > 0):
		return errors.New("replay needs both Wake.Replay.Size and Wake.Replay.Batch")
	case !remembers && (w.Memory.Data > 0 || w.Memory.Rows != nil):
		return errors.New("a memory needs Wake.Memory.Latents, the number that it remembers for each observation")
	case remembers && w.Memory.Data == 0:
		return errors.New("a memory needs Wake.Memory.Data, the number of observations in all")
	case !replays && !remembers:
		return nil
	case sleepAlone:
		return errors.New("Wake.Replay and Wake.Memory keep what wake draws, and Sleep.Alone leaves wake out")
	}
	if name := onPolicy(w.Objective); name != "" {
		return fmt.Errorf("the gradient of %s is right for on-policy trajectories only: leave out Wake.Replay and "+
			"Wake.Memory", name)
	}
	if o, ok := w.Objective.(gfn.VarGrad); ok {
		if replays {
			return errors.New("VarGrad compares trajectories of one observation, and those of Wake.Replay are of others: take " +
				"Wake.Memory, or another objective")
		}
		if all := max(w.Samples, 1) + w.Memory.Latents; o.Samples != 0 && o.Samples != all {
			return fmt.Errorf("VarGrad.Samples is %d; with Wake.Memory an observation has %d trajectories, all of which are "+
				"compared: leave it at 0", o.Samples, all)
		}
	}
	return nil
}
