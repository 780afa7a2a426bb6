package vae

import (
	"fmt"
	"slices"

	"github.com/gfnem/gfnem/report"
)

// How many images figures show.
const (
	shownSteps   = 8 // stages of a latent
	shownDigits  = 8 // images with their reconstructions, in each of two rows
	shownSamples = 3 // prior samples, in rows and columns
)

// imageFigures are the paper's three: the encoding policy at work, reconstructions, and samples of the prior; and how often
// codes are used.
func (s *session) imageFigures() ([]report.Named, error) {
	all, err := s.codec.Encode(s.test, true, s.Config.Seed)
	if err != nil {
		return nil, err
	}
	shown := firstOf(s.test, 2*shownDigits)
	pixels, codes := shown.Floats(), all[:shown.Len()]
	means, err := s.codec.Decode(codes)
	if err != nil {
		return nil, err
	}
	samples, err := s.sampleFigure()
	encoding, reconstructions := s.encodingFigure(pixels, codes, means), s.reconstructionFigure(pixels, means)
	return []report.Named{encoding, reconstructions, samples, s.usageFigure(all)}, err
}

// picture is image i of a list of pixels.
func (s *session) picture(pixels []float32, i int) report.Picture {
	p := report.Picture{}
	for pixels := range slices.Chunk(pixels[i*s.size.Pixels():(i+1)*s.size.Pixels()], s.size.Width) {
		row := make([]float64, len(pixels))
		for j, v := range pixels {
			row[j] = float64(v)
		}
		p.Gray = append(p.Gray, row)
	}
	return p
}

// grid is a latent of which the first codes are shown, as the policy chooses them.
func (s *session) grid(z Codes, first int) report.Picture {
	p := report.Picture{Classes: s.size.Codes, Key: "code"}
	ranks := s.size.ranks()
	for r := range s.size.Rows {
		row := make([]int, s.size.Columns)
		for c := range row {
			if row[c] = -1; ranks[r*s.size.Columns+c] < first {
				row[c] = int(z[r*s.size.Columns+c])
			}
		}
		p.Class = append(p.Class, row)
	}
	return p
}

func (s *session) encodingFigure(pixels []float32, codes []Codes, means []float32) report.Named {
	n := s.size.Positions()
	stages := min(shownSteps, n)
	f := report.Figure{Columns: []string{"image"}}
	for i := range stages {
		f.Columns = append(f.Columns, fmt.Sprint((i+1)*n/stages))
	}
	f.Columns = append(f.Columns, "decoded")
	for i := range min(4, len(codes)) {
		row := []report.Panel{s.picture(pixels, i)}
		for k := range stages {
			row = append(row, s.grid(codes[i], (k+1)*n/stages))
		}
		f.Panels = append(f.Panels, append(row, s.picture(means, i)))
	}
	caption := "Encoding: an image, its latent after so many codes, a colour and a number for each code, and the decoder's means. "
	if s.Method == MethodVQ {
		caption += "A VQ-VAE chooses all codes at once."
	} else {
		caption += "The policy takes the most probable code at every position, " + orders[s.Policy.Order] + "."
	}
	return report.Named{Name: "encoding", Caption: caption, Figure: f}
}

func (s *session) reconstructionFigure(pixels, means []float32) report.Named {
	var f report.Figure
	count := len(pixels) / s.size.Pixels()
	for first := 0; first < count; first += shownDigits {
		var above, below []report.Panel
		for i := first; i < min(first+shownDigits, count); i++ {
			above, below = append(above, s.picture(pixels, i)), append(below, s.picture(means, i))
		}
		f.Panels = append(f.Panels, above, below)
	}
	caption := fmt.Sprintf("Images for %s, and below them the decoder's means for their most probable codes.", s.Eval.On)
	return report.Named{Name: "reconstructions", Caption: caption, Figure: f}
}

func (s *session) sampleFigure() (report.Named, error) {
	caption := "Samples of the uniform prior, as the decoder's means. Nothing makes them look like the data: all latents are " +
		"equally probable, also those that no image has."
	if s.learnsPrior() {
		caption = "Samples of the PixelCNN prior, as the decoder's means."
	}
	codes, err := s.codec.Sample(shownSamples*shownSamples, s.Config.Seed)
	if err != nil {
		return report.Named{}, err
	}
	means, err := s.codec.Decode(codes)
	if err != nil {
		return report.Named{}, err
	}
	f := report.Figure{Panels: make([][]report.Panel, shownSamples)}
	for i := range shownSamples * shownSamples {
		f.Panels[i/shownSamples] = append(f.Panels[i/shownSamples], s.picture(means, i))
	}
	return report.Named{Name: "samples", Caption: caption, Figure: f}, nil
}

// usageFigure shows how often each code is used.
func (s *session) usageFigure(codes []Codes) report.Named {
	bars := report.Bars{Axes: report.Axes{X: report.Axis{Label: "share of all positions"}, Y: report.Axis{Label: "code"}}}
	for k, c := range count(codes, s.size.Codes) {
		bars.Names, bars.Values = append(bars.Names, fmt.Sprint(k)), append(bars.Values, c/float64(len(codes)*s.size.Positions()))
	}
	caption := fmt.Sprintf("How often the most probable latents of the %s images use each code.", s.Eval.On)
	return report.Named{Name: "usage", Caption: caption, Figure: report.NewFigure(bars)}
}

// orders say in words how a policy goes over the grid.
var orders = map[string]string{
	orderRaster: "row by row", orderCenter: "from the centre out", orderRandom: "in a random order that is always the same",
}
