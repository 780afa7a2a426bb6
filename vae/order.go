package vae

import (
	"cmp"
	"slices"

	"github.com/gfnem/gfnem/rng"
)

// Orders in which the policy fills the grid.
const (
	orderRaster = "raster" // row by row, as published
	orderCenter = "center" // from the centre out
	orderRandom = "random" // one random order, the same for all images and runs
)

// order lists the positions of the grid, in raster order, as the policy fills them; nil stands for raster order.
func (s Size) order() []int {
	n := s.Positions()
	switch s.Order {
	case orderRandom:
		return rng.New(0, "order of positions", uint64(s.Rows), uint64(s.Columns)).Perm(n)
	case orderCenter:
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		far := func(at int) int { // twice the distance from the centre, squared
			row, column := 2*(at/s.Columns)-(s.Rows-1), 2*(at%s.Columns)-(s.Columns-1)
			return row*row + column*column
		}
		slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(far(a), far(b)) })
		return all
	}
	return nil
}

// ranks says of each position how many are filled before it.
func (s Size) ranks() []int {
	out := make([]int, s.Positions())
	for i := range out {
		out[i] = i
	}
	for rank, at := range s.order() {
		out[at] = rank
	}
	return out
}
