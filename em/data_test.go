package em

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

func TestFull(t *testing.T) {
	x, y := tensors.FromValue([]float32{1, 2}), tensors.FromValue([]int32{3, 4})
	data := Full(x, y)
	for _, step := range []uint64{0, 7, 1 << 40} {
		if got := data(step); len(got) != 2 || got[0] != x || got[1] != y {
			t.Errorf("step %d: %v", step, got)
		}
	}
}

// numbered returns tensors of n rows that tell their numbers.
func numbered(n int) (pairs, flags, id *tensors.Tensor) {
	var p []float32
	var f []bool
	var i []int32
	for r := range n {
		p = append(p, float32(r), -float32(r))
		f = append(f, r%3 == 0)
		i = append(i, int32(r))
	}
	return tensors.FromFlatDataAndDimensions(p, n, 2), tensors.FromValue(f), tensors.FromValue(i)
}

// rowsOf checks that all tensors of a batch have the same rows and returns their numbers.
func rowsOf(t *testing.T, batch []*tensors.Tensor, size int) []int {
	t.Helper()
	if len(batch) != 3 || !batch[0].Shape().Equal(shapes.Make(dtypes.Float32, size, 2)) ||
		!batch[1].Shape().Equal(shapes.Make(dtypes.Bool, size)) || !batch[2].Shape().Equal(shapes.Make(dtypes.Int32, size)) {
		t.Fatalf("batch %v", batch)
	}
	pairs := tensors.MustCopyFlatData[float32](batch[0])
	flags := tensors.MustCopyFlatData[bool](batch[1])
	var rows []int
	for i, r := range tensors.MustCopyFlatData[int32](batch[2]) {
		if pairs[2*i] != float32(r) || pairs[2*i+1] != -float32(r) || flags[i] != (r%3 == 0) {
			t.Fatalf("row %d of the tensors differs: %v", i, batch)
		}
		rows = append(rows, int(r))
	}
	return rows
}

func TestShuffled(t *testing.T) {
	const n = 10
	a, b, c := numbered(n)
	for _, size := range []int{1, 3, 5, 10} {
		data, err := Shuffled(4, size, a, b, c)
		if err != nil {
			t.Fatal(err)
		}
		perEpoch := n / size
		var all [][]int
		seen := make([]bool, n)
		for epoch := range 30 {
			var rows []int
			for i := range perEpoch {
				batch := rowsOf(t, data(uint64(epoch*perEpoch+i)), size)
				all = append(all, batch)
				rows = append(rows, batch...)
			}
			for _, r := range rows {
				seen[r] = true
			}
			slices.Sort(rows)
			if len(slices.Compact(rows)) != perEpoch*size {
				t.Fatalf("size %d, epoch %d: a row comes twice", size, epoch)
			}
		}
		if slices.Contains(seen, false) {
			t.Errorf("size %d: a row never comes: %v", size, seen)
		}
		if slices.EqualFunc(all[:perEpoch], all[perEpoch:2*perEpoch], slices.Equal) {
			t.Errorf("size %d: two epochs are alike: %v", size, all[:perEpoch])
		}

		r := rand.New(rand.NewPCG(1, uint64(size)))
		for range 100 {
			step := r.IntN(len(all))
			if got := rowsOf(t, data(uint64(step)), size); !slices.Equal(got, all[step]) {
				t.Fatalf("size %d: step %d gives %v when asked for alone, %v in order", size, step, got, all[step])
			}
		}
		other, _ := Shuffled(5, size, a, b, c)
		same, _ := Shuffled(4, size, a, b, c)
		differ := 0
		for step := range uint64(10) {
			if !slices.Equal(rowsOf(t, same(step), size), all[step]) {
				t.Errorf("size %d: step %d differs between equal seeds", size, step)
			}
			if !slices.Equal(rowsOf(t, other(step), size), all[step]) {
				differ++
			}
		}
		if differ == 0 {
			t.Errorf("size %d: the seed does not matter", size)
		}
	}
}

// The order is frozen: a change of it changes every training.
func TestShuffledGolden(t *testing.T) {
	a, b, c := numbered(6)
	data, err := Shuffled(1, 3, a, b, c)
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range [][]int{{5, 1, 2}, {3, 4, 0}, {1, 0, 2}} {
		if got := rowsOf(t, data(uint64(step)), 3); !slices.Equal(got, want) {
			t.Errorf("step %d: %v, want %v", step, got, want)
		}
	}
}

func TestShuffledErrors(t *testing.T) {
	a, _, c := numbered(4)
	_, _, longer := numbered(5)
	for name, try := range map[string]func() (Data, error){
		"no row":       func() (Data, error) { return Shuffled(1, 0, a, c) },
		"minus a row":  func() (Data, error) { return Shuffled(1, -1, a, c) },
		"too many":     func() (Data, error) { return Shuffled(1, 5, a, c) },
		"unequal":      func() (Data, error) { return Shuffled(1, 2, a, longer) },
		"no tensor":    func() (Data, error) { return Shuffled(1, 1) },
		"longer first": func() (Data, error) { return Shuffled(1, 2, longer, a) },
	} {
		if data, err := try(); err == nil || data != nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Shuffled(1, 4, a, c); err != nil {
		t.Error(err)
	}
}
