package em

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/rows"
)

// Buckets are lengths to which observations are cut that are padded to a common one, so that short ones cost less. The
// policy and the model must give the same answers for less padding, and latents must have the same shape.
type Buckets struct {
	// Sizes are the lengths, which increase. An observation belongs to the first that holds it; the last holds all, and is
	// not cut to.
	Sizes []int
	// Length returns the length of each row of observations.
	Length func(x []*tensors.Tensor) []int
	// Cut returns observations whose rows are padded to a size only.
	Cut func(x []*tensors.Tensor, size int) []*tensors.Tensor
}

// Check returns what is wrong with buckets, as far as it shows without programs: on observations, if there are any.
func (b *Buckets) Check(x ...*tensors.Tensor) error {
	if err := b.check(); err != nil || len(x) == 0 {
		return blame.Caller(err)
	}
	count, err := sharedRows("x", x)
	if err == nil {
		_, err = b.groups(x, count)
	}
	return blame.Caller(err)
}

func (b *Buckets) check() error {
	for i, size := range b.Sizes {
		if size < 1 || i > 0 && size <= b.Sizes[i-1] {
			return fmt.Errorf("Buckets.Sizes are %v, not lengths that increase", b.Sizes)
		}
	}
	switch {
	case len(b.Sizes) == 0:
		return errors.New("Buckets needs Sizes, lengths that increase")
	case b.Length == nil:
		return errors.New("Buckets needs Length, which returns the length of each observation")
	case b.Cut == nil && len(b.Sizes) > 1:
		return errors.New("Buckets needs Cut, which returns observations with less padding")
	}
	return nil
}

// groups are the numbers of observations, by bucket. A row of each bucket is cut at once: what is wrong shows before
// anything is drawn.
func (b *Buckets) groups(x []*tensors.Tensor, count int) ([][]int, error) {
	if err := b.check(); err != nil {
		return nil, blame.Caller(err)
	}
	length := blame.Field(b.Length, "Buckets.Length")
	lengths := b.Length(x)
	if len(lengths) != count {
		return nil, length.Errorf("returns %d lengths of %d observations", len(lengths), count)
	}
	groups := make([][]int, len(b.Sizes))
	for i, n := range lengths {
		if n < 0 {
			return nil, length.Errorf("is %d for observation %d", n, i)
		}
		k := b.of(n)
		groups[k] = append(groups[k], i)
	}
	for k, group := range groups[:len(groups)-1] {
		if len(group) == 0 {
			continue
		}
		if _, err := b.cut(rows.Take(x, group[:1]), k); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// of returns the number of the bucket of a length.
func (b *Buckets) of(length int) int {
	i, _ := slices.BinarySearch(b.Sizes, length)
	return min(i, len(b.Sizes)-1)
}

// cut returns observations as they are in a bucket.
func (b *Buckets) cut(x []*tensors.Tensor, bucket int) ([]*tensors.Tensor, error) {
	out := b.Cut(x, b.Sizes[bucket])
	f := blame.Field(b.Cut, "Buckets.Cut")
	if len(out) != len(x) {
		return nil, f.Errorf("returns %d tensors of %d", len(out), len(x))
	}
	for i, t := range out {
		have := x[i].Shape()
		if t == nil || t.DType() != have.DType || t.Rank() != have.Rank() || t.Shape().Dim(0) != have.Dim(0) {
			return nil, f.Errorf("makes %s of tensor %d, which is %s", shapeOf(t), i, have)
		}
	}
	return out, nil
}

func shapeOf(t *tensors.Tensor) string {
	if t == nil {
		return "nil"
	}
	return t.Shape().String()
}
