package vae

import (
	"fmt"
	"io"
	"strings"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// Result is what a training leads to, on test images and in nats.
type Result struct {
	Task    string `json:"task"`
	Method  string `json:"method"`
	Codes   int    `json:"k"`
	Decoder string `json:"decoder"`
	Seed    uint64 `json:"seed"`
	Updates uint64 `json:"updates"`
	On      string `json:"measured_on"`
	Images  int    `json:"test_images"`
	// Parameters are the numbers that are trained, of the model and of the posterior, the VQ-VAE's encoder or the policy.
	Parameters struct {
		Model     int `json:"model"`
		Posterior int `json:"posterior"`
	} `json:"parameters"`
	bounds
	// Used is the number of codes that the most probable latents use, and Perplexity exp of the entropy of how often.
	Used       int     `json:"codes_used"`
	Perplexity float64 `json:"perplexity"`
	// NLL is estimated if the configuration asks for it. That of a VQ-VAE is measured with a posterior fitted to its decoder, so
	// that all methods have the same estimator.
	NLL        *NLL `json:"likelihood,omitempty"`
	FitUpdates int  `json:"fit_updates,omitempty"`
	// Refreshed is the same after so many more E-updates of a GFlowNet.
	Refreshed *NLL `json:"likelihood_refreshed,omitempty"`
	ExtraE    int  `json:"extra_e_updates,omitempty"`
	// Published is the negative log-likelihood as the paper computes it: a VQ-VAE's bound, a GFlowNet's estimate. It is missing if
	// that was not made.
	Published *float64 `json:"nll_published,omitempty"`
}

var _ run.Result = (*Result)(nil)

// Headline implements run.Headliner: the likelihood, or its bound where that was not estimated.
func (r *Result) Headline() (run.Headline, bool) {
	if r.NLL != nil {
		return run.Headline{Name: "−log p(x)", Value: r.NLL.NLL, Low: true}, true
	}
	return run.Headline{Name: "bound", Value: r.Bound, Low: true}, true
}

// Evaluate implements run.Session.
func (s *session) Evaluate() (run.Result, error) {
	r := &Result{
		Task: Task{}.Name(), Method: s.Method, Codes: s.size.Codes, Decoder: s.decoder(), Seed: s.Config.Seed,
		Updates: s.made(), On: s.Eval.On, Images: s.test.Len(),
	}
	for v := range s.store.IterVariables() {
		switch path := v.Path(); {
		case !v.Trainable:
		case strings.HasPrefix(path, em.Phi+"/"), strings.HasPrefix(path, em.Theta+"/encoder/"):
			r.Parameters.Posterior += v.Shape().Size()
		case strings.HasPrefix(path, em.Theta+"/"):
			r.Parameters.Model += v.Shape().Size()
		}
	}
	var err error
	if r.bounds, err = s.codec.bounds(s.test, s.Config.Seed); err != nil {
		return nil, err
	}
	codes, err := s.codec.Encode(s.test, true, s.Config.Seed)
	if err != nil {
		return nil, err
	}
	r.Used, r.Perplexity = report.Usage(count(codes, s.size.Codes))
	if s.Method == MethodVQ {
		r.Published = &r.Bound
	}
	if s.Eval.NLL {
		err = s.estimate(r)
	}
	return r, err
}

// estimate fills in likelihoods.
func (s *session) estimate(r *Result) (err error) {
	if s.Method == MethodVQ {
		r.FitUpdates = s.Eval.FitUpdates
		r.NLL, err = s.likelihoodAfter(s.fit)
		return err
	}
	if r.NLL, err = s.likelihood(s.store); err != nil {
		return err
	}
	r.Published = &r.NLL.NLL
	if s.Eval.ExtraEUpdates > 0 {
		r.ExtraE = s.Eval.ExtraEUpdates
		r.Refreshed, err = s.likelihoodAfter(s.refresh)
	}
	return err
}

// count says how often latents have each code.
func count(latents []Codes, codes int) []float64 {
	out := make([]float64, codes)
	for _, z := range latents {
		for _, k := range z {
			out[k]++
		}
	}
	return out
}

// table shows a result.
func (r *Result) table() *report.Table {
	t := &report.Table{
		Title:   fmt.Sprintf("%s, K = %d, %d %s images", titles[r.Method], r.Codes, r.Images, r.On),
		Columns: report.Columns("measure", "nats per image"),
	}
	row := func(name string, c report.Cell) { t.Add(report.Text(name), c) }
	if n := r.NLL; n != nil {
		row("−log p(x), importance-weighted", report.MeanStd(n.NLL, n.StdErr, 2))
		row("evidence lower bound, negative", report.Number(-n.ELBO, 2))
		t.Notes = append(t.Notes, fmt.Sprintf("importance-weighted: %d images with %d samples each, ± the standard error over images, of which %.3f "+
			"comes from sampling; effective sample size %.1f, %.0f distinct latents on average", n.Images, n.Samples, n.SampleErr, n.ESS, n.Distinct))
	}
	if r.Refreshed != nil {
		row(fmt.Sprintf("the same after %d more E-updates", r.ExtraE), report.MeanStd(r.Refreshed.NLL, r.Refreshed.StdErr, 2))
	}
	if r.Method == MethodVQ {
		row("−log p(x), as published", report.Number(r.Bound, 2))
		t.Notes = append(t.Notes, "as published: reconstruction + n log K, a bound that has the one latent of the encoder for a posterior")
		if r.NLL != nil {
			t.Notes = append(t.Notes, fmt.Sprintf("the importance-weighted estimate draws from a GFlowNet posterior "+
				"fitted to the decoder in %d updates", r.FitUpdates))
		}
	} else {
		row("−log p(x,z) + log q(z|x), one sample", report.Number(r.Bound, 2))
	}
	row("reconstruction, most probable codes", report.Number(r.Reconstruction, 2))
	t.Notes = append(t.Notes, "decoder: "+r.Decoder)
	t.Notes = append(t.Notes, fmt.Sprintf("%d of %d codes are in use, perplexity %.2f", r.Used, r.Codes, r.Perplexity))
	return t
}

// Title is the name of a method, for people.
func Title(method string) string { return titles[method] }

// titles are the names of methods.
var titles = map[string]string{
	MethodVQ: "VQ-VAE", MethodGFN: "GFlowNet-EM", MethodGD: "GFlowNet-EM + GD", MethodPrior: "GFlowNet-EM + GD + prior",
}

// Print implements run.Result.
func (r *Result) Print(w io.Writer) error {
	_, err := fmt.Fprintln(w, r.table())
	return err
}
