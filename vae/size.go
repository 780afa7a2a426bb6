package vae

import (
	"cmp"
	"fmt"

	"github.com/gomlx/compute/dtypes"

	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/nn"
)

// Size is the size of images, latents and networks, and how the decoder is made.
type Size struct {
	Height, Width int    `toml:"-"` // of images
	Order         string `toml:"-"` // in which the policy fills the grid; "" is raster order

	Codes    int `toml:"codes" range:"2,256" was:"k" help:"K, the entries of the dictionary"`
	Rows     int `toml:"rows" range:"1,64" was:"rows" help:"rows of the grid of codes"`
	Columns  int `toml:"columns" range:"1,64" was:"columns" help:"columns of the grid of codes"`
	Channels int `toml:"channels" range:"1,4096" was:"channels" help:"C, channels of convolutions, of the PixelCNN's too"`

	// How the decoder is made, of either method; the zero values are as published for a method.
	Norm      string `toml:"norm" oneof:"method none batch" help:"normalisation of the decoder's convolutions; method: as published, batch for vq, none for the others"`
	CodeWidth int    `toml:"code_width" range:"1,4096" help:"numbers that a code stands for, which the decoder reads; 1 as published"`
	Bias      bool   `toml:"bias" help:"biases of all convolutions of the decoder, not of the last one alone, as published"`

	dtype dtypes.DType // of the networks; tests use Float64, the zero value is Float32
}

// Paper is the size of the published experiments, for K codes.
func Paper(codes int) Size {
	return Size{Height: 28, Width: 28, Rows: 4, Columns: 4, Codes: codes, Channels: 128}
}

// codeWidth is the number of numbers that a code stands for.
func (s Size) codeWidth() int { return max(s.CodeWidth, 1) }

// Positions is n, the number of codes of a latent.
func (s Size) Positions() int { return s.Rows * s.Columns }

// Pixels is the number of pixels of an image.
func (s Size) Pixels() int { return s.Height * s.Width }

// Env is how a latent is assembled: code by code, in the order of the policy.
func (s Size) Env() envs.Sequence {
	e := envs.Uniform(s.Positions(), s.Codes)
	e.Order = s.order()
	return e
}

func (s Size) float() dtypes.DType { return cmp.Or(s.dtype, dtypes.Float32) }

// Validate says what is wrong with a size.
func (s Size) Validate() error {
	switch {
	case s.Height < 1 || s.Width < 1:
		return fmt.Errorf("images of %dx%d pixels do not exist", s.Height, s.Width)
	case s.Rows < 1 || s.Columns < 1 || s.Rows > s.Height || s.Columns > s.Width:
		return fmt.Errorf("a grid of %dx%d codes does not fit an image of %dx%d pixels: images of %[1]dx%[2]d pixels and more do, "+
			"or set model.rows and model.columns lower", s.Rows, s.Columns, s.Height, s.Width)
	case s.Codes < 2:
		return fmt.Errorf("%d codes say nothing: K is at least 2", s.Codes)
	case s.Codes > 256:
		return fmt.Errorf("%d codes are too many: K is at most 256", s.Codes)
	case s.Positions() > 1024:
		return fmt.Errorf("a grid of %dx%d codes is too large: at most 1024 in all", s.Rows, s.Columns)
	case s.Channels < 1:
		return fmt.Errorf("networks need at least one channel, not %d", s.Channels)
	}
	return nil
}

// windows are those of the encoder's convolutions, from the image to the grid; the decoder goes the same way back. Sides are
// halved as often as the grid allows, with a kernel of 4 where they are even and of 3 where they are odd; what remains is
// taken off by one convolution without padding. From 28 to 4 these are the published 28, 14, 7, 4.
func (s Size) windows() []nn.Window {
	rows, columns := reduce(s.Height, s.Rows), reduce(s.Width, s.Columns)
	out := make([]nn.Window, max(len(rows), len(columns), 1))
	for i := range out {
		out[i] = nn.SquareWindow(3, 1, 1) // keeps the size
		for axis, steps := range [][]step{rows, columns} {
			if i < len(steps) {
				out[i].Kernel[axis], out[i].Stride[axis], out[i].Pad[axis] = steps[i].kernel, steps[i].stride, steps[i].pad
			}
		}
	}
	return out
}

// step is one axis of a window.
type step struct{ kernel, stride, pad int }

// reduce lists the steps from a side of large pixels to one of small.
func reduce(large, small int) (steps []step) {
	for large > small {
		half := (large + 1) / 2
		if half < small {
			return append(steps, step{kernel: large - small + 1, stride: 1})
		}
		steps = append(steps, step{kernel: 4 - large%2, stride: 2, pad: 1})
		large = half
	}
	return steps
}
