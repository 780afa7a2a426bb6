package vae

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/panics"
	"github.com/gfnem/gfnem/mnist"
	"github.com/gfnem/gfnem/rng"
)

// Codes is a latent: the codes of a grid in raster order.
type Codes []uint8

// Codec turns images into codes and codes into images, with the variables of a model as they are.
type Codec struct {
	Size
	config  Config
	backend compute.Backend
	store   *model.Store
	model   Model

	programs map[string]*model.Exec
}

// codecRows is the number of rows that programs of a codec work on at once.
const codecRows = 128

func newCodec(b compute.Backend, store *model.Store, c Config, size Size) *Codec {
	m := Model{Size: size, Learned: c.learnsPrior()}
	if c.Method == MethodVQ {
		m.Decoder = VQ{size}
	}
	return &Codec{Size: size, config: c, backend: b, store: store, model: m, programs: map[string]*model.Exec{}}
}

// Close releases the compiled programs.
func (c *Codec) Close() {
	for _, p := range c.programs {
		p.Finalize()
	}
	clear(c.programs)
}

// call runs a program, which is built at its first use.
func (c *Codec) call(name string, build func(in []*Node) []*Node, args ...any) ([]*tensors.Tensor, error) {
	p, ok := c.programs[name]
	if !ok {
		var err error
		p, err = model.NewExec(c.backend, c.store, func(_ *model.Scope, in []*Node) []*Node {
			defer panics.WithError()
			return build(in)
		})
		if err != nil {
			return nil, fmt.Errorf("build program %q: %w", name, err)
		}
		c.programs[name] = p.WithName(name)
	}
	out, err := p.Call(args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}

func (c *Codec) theta() *model.Scope { return c.store.Scope(em.Theta) }

// draw returns latents of images, [B,n]: the most probable codes, or samples of q(z|x). A VQ-VAE has one latent only.
func (c *Codec) draw(r *rng.Stream, x *Node, greedy bool) *Node {
	if c.config.Method == MethodVQ {
		return VQ{c.Size}.Encode(c.theta(), x)
	}
	p := c.config.policy(c.Size)
	net := gfn.Net{Env: c.Env(), Policy: p, Scope: c.store.Scope(em.Phi)}
	return net.Rollout(r, p.Encode(net.Scope, gfn.Batch{x}), nil, gfn.Behaviour{Greedy: greedy}).Last()[0]
}

// Encode returns the codes of images: the most probable ones, code by code, or samples that a seed decides.
func (c *Codec) Encode(images mnist.Images, greedy bool, seed uint64) ([]Codes, error) {
	if err := c.fits(images); err != nil {
		return nil, err
	}
	name := "encode by samples"
	if greedy {
		name = "encode"
	}
	var all []Codes
	err := chunks(images.Len(), codecRows, func(indices []int, fresh int) error {
		out, err := c.call(name, func(in []*Node) []*Node {
			return []*Node{ConvertDType(c.draw(rng.In(in[0]), in[1], greedy), dtypes.Uint8)}
		}, rng.Key(seed, name, uint64(indices[0])), batchOf(images, indices))
		if err != nil {
			return err
		}
		all = append(all, c.split(out[0], fresh)...)
		return nil
	})
	return all, err
}

// fits complains about images of another size.
func (c *Codec) fits(images mnist.Images) error {
	if want := (mnist.Size{Height: c.Height, Width: c.Width}); images.Len() > 0 && images.Size != want {
		return badinput.Errorf("images are %v, the model was trained on %v", images.Size, want)
	}
	return nil
}

// split cuts the first rows of a tensor into latents.
func (c *Codec) split(t *tensors.Tensor, rows int) []Codes {
	flat := tensors.MustCopyFlatData[uint8](t)
	out := make([]Codes, rows)
	for i := range out {
		out[i] = flat[i*c.Positions() : (i+1)*c.Positions()]
	}
	return out
}

// join makes a tensor [len(indices),n] of latents.
func (c *Codec) join(codes []Codes, indices []int) *tensors.Tensor {
	t := tensors.FromShape(shapes.Make(dtypes.Uint8, len(indices), c.Positions()))
	tensors.MustMutableFlatData(t, func(flat []uint8) {
		for i, k := range indices {
			copy(flat[i*c.Positions():], codes[k])
		}
	})
	return t
}

// Check complains about codes that the model does not have.
func (c *Codec) Check(codes Codes) error {
	if len(codes) != c.Positions() {
		return fmt.Errorf("%d codes, where a grid of %dx%d has %d", len(codes), c.Rows, c.Columns, c.Positions())
	}
	for _, k := range codes {
		if int(k) >= c.Size.Codes {
			return fmt.Errorf("code %d is not between 0 and %d", k, c.Size.Codes-1)
		}
	}
	return nil
}

// Decode returns the means of the pixels of latents, image by image.
func (c *Codec) Decode(codes []Codes) ([]float32, error) {
	for i, z := range codes {
		if err := c.Check(z); err != nil {
			return nil, badinput.Errorf("latent %d: %w", i, err)
		}
	}
	var all []float32
	err := chunks(len(codes), codecRows, func(indices []int, fresh int) error {
		out, err := c.call("decode", func(in []*Node) []*Node {
			return []*Node{Sigmoid(c.model.Logits(c.theta(), ConvertDType(in[0], dtypes.Int32)))}
		}, c.join(codes, indices))
		if err != nil {
			return err
		}
		all = append(all, tensors.MustCopyFlatData[float32](out[0])[:fresh*c.Pixels()]...)
		return nil
	})
	return all, err
}

// Sample draws latents from the prior, which a seed decides.
func (c *Codec) Sample(count int, seed uint64) ([]Codes, error) {
	var all []Codes
	err := chunks(count, codecRows, func(indices []int, fresh int) error {
		out, err := c.call("sample", func(in []*Node) []*Node {
			return []*Node{ConvertDType(c.model.SamplePrior(c.theta(), rng.In(in[0]), codecRows), dtypes.Uint8)}
		}, rng.Key(seed, "sample the prior", uint64(indices[0])))
		if err != nil {
			return err
		}
		all = append(all, c.split(out[0], fresh)...)
		return nil
	})
	return all, err
}

// bounds are what one latent per image says of -log p(x), means over images in nats.
type bounds struct {
	// Reconstruction is -log p(x|z) of the most probable codes.
	Reconstruction float64 `json:"reconstruction"`
	// Bound is an upper bound of -log p(x) in expectation. GFlowNets: -log p(x,z) + log q(z|x) of a sample. VQ-VAE, as published:
	// -log p(x|z) + n log K of its only latent.
	Bound float64 `json:"bound"`
}

// bounds measures images.
func (c *Codec) bounds(images mnist.Images, seed uint64) (b bounds, err error) {
	err = chunks(images.Len(), codecRows, func(indices []int, fresh int) error {
		out, err := c.call("bounds", c.boundsGraph, rng.Key(seed, "bounds", uint64(indices[0])), batchOf(images, indices))
		if err != nil {
			return err
		}
		for i, sum := range []*float64{&b.Reconstruction, &b.Bound} {
			for _, v := range tensors.MustCopyFlatData[float32](out[i])[:fresh] {
				*sum += float64(v) / float64(images.Len())
			}
		}
		return nil
	})
	return b, err
}

func (c *Codec) boundsGraph(in []*Node) []*Node {
	r, x := rng.In(in[0]), gfn.Batch{in[1]}
	reconstruction := Neg(c.model.LogLikelihood(c.theta(), x, gfn.State{c.draw(r, in[1], true)}))
	if c.config.Method == MethodVQ {
		return []*Node{reconstruction, AddScalar(reconstruction, c.logLatents())}
	}
	p := c.config.policy(c.Size)
	net := gfn.Net{Env: c.Env(), Policy: p, Scope: c.store.Scope(em.Phi)}
	tr := net.Rollout(r, p.Encode(net.Scope, x), nil, gfn.Behaviour{})
	logQ := ReduceSum(net.ScoreSampled(tr, gfn.Behaviour{}).LogPF, 1)
	return []*Node{reconstruction, Sub(logQ, c.model.LogJoint(c.theta(), x, tr.Last()))}
}
