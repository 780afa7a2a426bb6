package vae

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/mnist"
	"github.com/gfnem/gfnem/rng"
)

// Codes is a latent: the codes of a grid in raster order.
type Codes []uint8

// Codec turns images into codes and codes into images, with the variables of a model as they are.
type Codec struct {
	Size
	config   Config
	model    Model
	programs *program.Set

	encode, sample *program.Program[codecIn[host], latent[host]]
	decode         *program.Program[latent[host], pixels[host]]
	measure        *program.Program[codecIn[host], measured[host]]
}

// host is a tensor outside of programs.
type host = *tensors.Tensor

// What programs of a codec take, as far as they need it, and return.
type (
	codecIn[T any] struct {
		Greedy bool
		Key, X T
	}
	latent[T any]   struct{ Codes T }                 // [B,n] uint8
	pixels[T any]   struct{ Means T }                 // [B,H,W,1]
	measured[T any] struct{ Reconstruction, Bound T } // [B], see bounds
)

// codecRows is the number of rows that programs of a codec work on at once.
const codecRows = 128

func newCodec(b compute.Backend, store *model.Store, c Config, size Size) *Codec {
	s := program.NewSet(b, store)
	out := &Codec{Size: size, config: c, model: Model{Size: size, Learned: c.learnsPrior()}, programs: s}
	if c.Method == MethodVQ {
		out.model.Decoder = VQ{size}
	}
	out.encode = program.New[codecIn[host], latent[host]](s, "encode", func(in codecIn[*Node]) latent[*Node] {
		return latent[*Node]{ConvertDType(out.draw(rng.In(in.Key), in.X, in.Greedy), dtypes.Uint8)}
	})
	out.decode = program.New[latent[host], pixels[host]](s, "decode", func(in latent[*Node]) pixels[*Node] {
		return pixels[*Node]{Sigmoid(out.model.Logits(out.theta(), ConvertDType(in.Codes, dtypes.Int32)))}
	})
	out.sample = program.New[codecIn[host], latent[host]](s, "sample", func(in codecIn[*Node]) latent[*Node] {
		z := out.model.SamplePrior(out.theta(), rng.In(in.Key), codecRows)
		return latent[*Node]{ConvertDType(z, dtypes.Uint8)}
	})
	out.measure = program.New[codecIn[host], measured[host]](s, "bounds", out.boundsGraph)
	return out
}

// declare makes the variables of the model, all of which it takes to measure an image.
func (c *Codec) declare() error {
	x := tensors.FromShape(shapes.Make(dtypes.Float32, 1, c.Height, c.Width, 1))
	return c.measure.Declare(codecIn[host]{Key: rng.Key(0, "bounds"), X: x})
}

// Close releases the compiled programs.
func (c *Codec) Close() { c.programs.Close() }

func (c *Codec) theta() *model.Scope { return c.programs.Store.Scope(em.Theta) }

// draw returns latents of images, [B,n]: the most probable codes, or samples of q(z|x). A VQ-VAE has one latent only.
func (c *Codec) draw(r *rng.Stream, x *Node, greedy bool) *Node {
	if c.config.Method == MethodVQ {
		return VQ{c.Size}.Encode(c.theta(), x)
	}
	net, u := c.q(x)
	return net.Rollout(r, u, nil, gfn.Behaviour{Greedy: greedy}).Last()[0]
}

// q is the policy, and what it sees of images.
func (c *Codec) q(x *Node) (gfn.Net, gfn.Batch) {
	p := c.config.policy(c.Size)
	net := gfn.Net{Env: c.Env(), Policy: p, Scope: c.programs.Store.Scope(em.Phi)}
	return net, p.Encode(net.Scope, gfn.Batch{x})
}

// Encode returns the codes of images: the most probable ones, code by code, or samples that a seed decides.
func (c *Codec) Encode(images mnist.Images, greedy bool, seed uint64) ([]Codes, error) {
	if want := (mnist.Size{Height: c.Height, Width: c.Width}); images.Len() > 0 && images.Size != want {
		return nil, badinput.Errorf("images are %v, the model was trained on %v", images.Size, want)
	}
	stream := "encode by samples"
	if greedy {
		stream = "encode"
	}
	return c.latents(images.Len(), c.encode, func(indices []int) codecIn[host] {
		return codecIn[host]{greedy, rng.Key(seed, stream, uint64(indices[0])), batchOf(images, indices)}
	})
}

// latents collects those that a program returns.
func (c *Codec) latents(
	n int, p *program.Program[codecIn[host], latent[host]], in func(indices []int) codecIn[host],
) (all []Codes, err error) {
	err = each(n, codecRows, p, in, func(out latent[host], fresh []int) {
		flat := Codes(tensors.MustCopyFlatData[uint8](out.Codes))[:len(fresh)*c.Positions()]
		all = slices.AppendSeq(all, slices.Chunk(flat, c.Positions()))
	})
	return all, err
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
func (c *Codec) Decode(codes []Codes) (all []float32, err error) {
	for i, z := range codes {
		if err := c.Check(z); err != nil {
			return nil, badinput.Errorf("latent %d: %w", i, err)
		}
	}
	err = each(len(codes), codecRows, c.decode, func(indices []int) latent[host] {
		var flat []uint8
		for _, k := range indices {
			flat = append(flat, codes[k]...)
		}
		return latent[host]{tensors.FromFlatDataAndDimensions(flat, len(indices), c.Positions())}
	}, func(out pixels[host], fresh []int) {
		all = append(all, tensors.MustCopyFlatData[float32](out.Means)[:len(fresh)*c.Pixels()]...)
	})
	return all, err
}

// Sample draws latents from the prior, which a seed decides.
func (c *Codec) Sample(count int, seed uint64) ([]Codes, error) {
	return c.latents(count, c.sample, func(indices []int) codecIn[host] {
		return codecIn[host]{Key: rng.Key(seed, "sample the prior", uint64(indices[0]))}
	})
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
	err = each(images.Len(), codecRows, c.measure, func(indices []int) codecIn[host] {
		return codecIn[host]{Key: rng.Key(seed, "bounds", uint64(indices[0])), X: batchOf(images, indices)}
	}, func(out measured[host], fresh []int) {
		reconstruction := tensors.MustCopyFlatData[float32](out.Reconstruction)
		bound := tensors.MustCopyFlatData[float32](out.Bound)
		for i := range fresh {
			b.Reconstruction += float64(reconstruction[i]) / float64(images.Len())
			b.Bound += float64(bound[i]) / float64(images.Len())
		}
	})
	return b, err
}

func (c *Codec) boundsGraph(in codecIn[*Node]) measured[*Node] {
	r, x := rng.In(in.Key), gfn.Batch{in.X}
	reconstruction := Neg(c.model.LogLikelihood(c.theta(), x, gfn.State{c.draw(r, in.X, true)}))
	if c.config.Method == MethodVQ {
		return measured[*Node]{reconstruction, AddScalar(reconstruction, c.logLatents())}
	}
	net, u := c.q(in.X)
	tr := net.Rollout(r, u, nil, gfn.Behaviour{})
	logQ := ReduceSum(net.ScoreSampled(tr, gfn.Behaviour{}).LogPF, 1)
	return measured[*Node]{reconstruction, Sub(logQ, c.model.LogJoint(c.theta(), x, tr.Last()))}
}
