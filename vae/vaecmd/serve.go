package vaecmd

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/mnist"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/vae"
)

var _ command.Inspector = Task{}

// Limits of a request.
const (
	servedImages = 1024
	servedDraws  = 10_000
)

// Questions implements command.Inspector.
func (Task) Questions() []command.Question {
	return []command.Question{
		command.Ask("encode", "Codes of images, as the command encode prints them.", (*inspected).encode),
		command.Ask("decode", "Means of the pixels of latents.", (*inspected).decode),
		command.AskOne("sample", "Latents drawn from the prior, as the command sample prints them.", (*inspected).sample),
		command.AskOne("choose", "Codes of an image chosen one by one, with how probable all others were.", (*inspected).choose),
		command.AskOne("weigh", "An estimate of log p(x) of an image, and how good samples of q(z|x) are for it.", (*inspected).weigh),
	}
}

// Inspect implements command.Inspector.
func (Task) Inspect(b compute.Backend, r *run.Run) (command.Model, []string, error) {
	codec, skipped, err := vae.Load(b, r)
	if err != nil {
		return nil, skipped, err
	}
	return &inspected{codec, codec.Choices()}, skipped, nil
}

// inspected is the model of a run.
type inspected struct {
	*vae.Codec
	choices *vae.Choices
}

var _ command.Model = (*inspected)(nil)

// About implements command.Model.
func (m *inspected) About() any {
	return struct {
		Height  int `json:"height"`
		Width   int `json:"width"`
		Rows    int `json:"rows"`
		Columns int `json:"columns"`
		Codes   int `json:"codes"`
		// Ranks say how many positions are filled before each, where that is not row by row.
		Ranks []int `json:"ranks,omitempty"`
	}{m.Height, m.Width, m.Rows, m.Columns, m.Codec.Size.Codes, m.Ranks()}
}

// latents are codes as JSON has them: lists of numbers.
type latents []vae.Codes

// MarshalJSON writes numbers, where bytes would be text.
func (l latents) MarshalJSON() ([]byte, error) {
	wide := make([][]int, len(l))
	for i, z := range l {
		wide[i] = widened(z)
	}
	return json.Marshal(wide)
}

func widened(z vae.Codes) []int {
	out := make([]int, len(z))
	for i, k := range z {
		out[i] = int(k)
	}
	return out
}

// narrowed undoes widened.
func narrowed(z []int) (vae.Codes, error) {
	out := make(vae.Codes, len(z))
	for i, k := range z {
		if k < 0 || k > 255 {
			return nil, badinput.Errorf("%d is no code: codes are numbers from 0 to 255", k)
		}
		out[i] = uint8(k)
	}
	return out, nil
}

type (
	encodeRequest struct {
		Images [][]float64 `json:"images" help:"pixels of each image, row by row, from 0 to 1; one is on above 0.5"`
		Draw   bool        `json:"draw,omitempty" help:"draw codes from q(z|x) instead of taking the most probable ones"`
		Seed   uint64      `json:"seed,omitempty" help:"of draw"`
	}
	encoded struct {
		Codes latents `json:"codes" help:"of each image, in raster order of the grid"`
	}
)

// Check implements command.Checked.
func (q encodeRequest) Check() error { return command.CheckSeed(q.Seed) }

// Size implements command.Sized.
func (q encodeRequest) Size() int { return len(q.Images) }

// Join implements command.Joined.
func (q encodeRequest) Join() string {
	if q.Draw {
		return ""
	}
	return "greedy"
}

// images makes images of pixels.
func (m *inspected) images(all [][]float64) (mnist.Images, error) {
	var on []byte
	size := mnist.Size{Height: m.Height, Width: m.Width}
	for i, pixels := range all {
		if len(pixels) != size.Pixels() {
			return mnist.Images{}, badinput.Errorf("image %d has %d pixels: the model was trained on images of %v, %d pixels", i, len(pixels), size, size.Pixels())
		}
		for _, v := range pixels {
			if !(v >= 0 && v <= 1) {
				return mnist.Images{}, badinput.Errorf("image %d has a pixel of %g: pixels are from 0 to 1", i, v)
			}
			bit := byte(0)
			if v > 0.5 {
				bit = 1
			}
			on = append(on, bit)
		}
	}
	return mnist.NewImages(size, on), nil
}

func (m *inspected) encode(requests []encodeRequest) ([]encoded, error) {
	var all [][]float64
	for _, q := range requests {
		all = append(all, q.Images...)
	}
	images, err := m.images(all)
	if err != nil {
		return nil, err
	}
	codes, err := m.Encode(images, !requests[0].Draw, requests[0].Seed)
	if err != nil {
		return nil, err
	}
	out := make([]encoded, len(requests))
	for i, q := range requests {
		out[i].Codes, codes = codes[:len(q.Images):len(q.Images)], codes[len(q.Images):]
	}
	return out, nil
}

type (
	decodeRequest struct {
		Codes [][]int `json:"codes" help:"of each latent, in raster order of the grid"`
	}
	decoded struct {
		Height int         `json:"height"`
		Width  int         `json:"width"`
		Images [][]float32 `json:"images" help:"means of the pixels of each latent, row by row, from 0 to 1"`
	}
)

// Size implements command.Sized.
func (q decodeRequest) Size() int { return len(q.Codes) }

// Join implements command.Joined.
func (decodeRequest) Join() string { return "decode" }

func (m *inspected) decode(requests []decodeRequest) ([]decoded, error) {
	var all []vae.Codes
	for _, q := range requests {
		for _, z := range q.Codes {
			codes, err := narrowed(z)
			if err != nil {
				return nil, err
			}
			all = append(all, codes)
		}
	}
	means, err := m.Decode(all)
	if err != nil {
		return nil, err
	}
	out := make([]decoded, len(requests))
	for i, q := range requests {
		out[i] = decoded{m.Height, m.Width, make([][]float32, len(q.Codes))}
		for k := range q.Codes {
			out[i].Images[k], means = means[:m.Pixels()], means[m.Pixels():]
		}
	}
	return out, nil
}

type sampleRequest struct {
	Count int    `json:"count" help:"how many, at most 1024"`
	Seed  uint64 `json:"seed,omitempty"`
}

// Check implements command.Checked.
func (q sampleRequest) Check() error {
	if q.Count < 1 || q.Count > servedImages {
		return fmt.Errorf("count %d is not between 1 and %d", q.Count, servedImages)
	}
	return command.CheckSeed(q.Seed)
}

// Size implements command.Sized.
func (q sampleRequest) Size() int { return q.Count }

func (m *inspected) sample(q sampleRequest) (encoded, error) {
	codes, err := m.Sample(q.Count, q.Seed)
	return encoded{codes}, err
}

type (
	chooseRequest struct {
		Image []float64 `json:"image" help:"pixels, row by row, from 0 to 1; one is on above 0.5"`
		Codes []int     `json:"codes,omitempty" help:"codes to look at, in raster order; if left out, those that encode gives"`
		Draw  bool      `json:"draw,omitempty" help:"if codes are left out, draw them from q(z|x)"`
		Seed  uint64    `json:"seed,omitempty" help:"of draw"`
	}
	chosen struct {
		Codes []int `json:"codes"`
		// Choices are left out of a VQ-VAE, which has none.
		Choices [][]float64 `json:"choices,omitempty" help:"by position, how probable each code was given the image and the codes before"`
		LogQ    *float64    `json:"log_q,omitempty" help:"log q(z|x) of the codes, in nats"`
		LogP    float64     `json:"log_p" help:"log p(x|z) of the codes, in nats"`
		Decoded []float32   `json:"decoded" help:"means of the pixels of the codes"`
	}
)

// Check implements command.Checked.
func (q chooseRequest) Check() error { return command.CheckSeed(q.Seed) }

func (m *inspected) choose(q chooseRequest) (out chosen, err error) {
	images, err := m.images([][]float64{q.Image})
	if err != nil {
		return out, err
	}
	var z vae.Codes
	if q.Codes != nil {
		if z, err = narrowed(q.Codes); err != nil {
			return out, err
		}
	} else {
		all, err := m.Encode(images, !q.Draw, q.Seed)
		if err != nil {
			return out, err
		}
		z = all[0]
	}
	logQ, logP, err := m.choices.Of(images, z)
	if err != nil {
		return out, err
	}
	out.Codes, out.LogP = widened(z), logP
	if logQ != nil {
		sum := 0.0
		for t, row := range logQ {
			sum += row[z[t]]
			p := make([]float64, len(row))
			for k, v := range row {
				p[k] = math.Exp(v)
			}
			out.Choices = append(out.Choices, p)
		}
		out.LogQ = &sum
	}
	out.Decoded, err = m.Decode([]vae.Codes{z})
	return out, err
}

type weighRequest struct {
	Image   []float64 `json:"image" help:"pixels, row by row, from 0 to 1; one is on above 0.5"`
	Samples int       `json:"samples" help:"latents that are drawn, at most 10000"`
	Seed    uint64    `json:"seed,omitempty"`
}

// Check implements command.Checked.
func (q weighRequest) Check() error {
	if q.Samples < 2 || q.Samples > servedDraws {
		return fmt.Errorf("samples %d is not between 2 and %d", q.Samples, servedDraws)
	}
	return command.CheckSeed(q.Seed)
}

type weighed struct {
	LogProb  float64 `json:"log_prob" help:"an estimate of log p(x), below it in expectation"`
	ELBO     float64 `json:"elbo" help:"the mean log-weight"`
	ESS      float64 `json:"effective_samples" help:"exact samples that those of q are worth"`
	Samples  int     `json:"samples"`
	Distinct float64 `json:"distinct" help:"different latents among them"`
}

func (m *inspected) weigh(q weighRequest) (weighed, error) {
	images, err := m.images([][]float64{q.Image})
	if err != nil {
		return weighed{}, err
	}
	n, err := m.choices.Weigh(images, q.Samples, q.Seed)
	return weighed{-n.NLL, n.ELBO, n.ESS, n.Samples, n.Distinct}, err
}
