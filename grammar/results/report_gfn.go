package results

import (
	"fmt"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/treebank"
)

const (
	shownDraws  = 4  // trees of the GFlowNet that are drawn of each sentence
	shownOrders = 64 // orders behind the log q(z) of a tree
)

// gfnPlots are the curves of GFlowNet-EM.
func (s session) gfnPlots() []report.Plot {
	if s.Network == nil {
		return nil
	}
	loss := report.Axis{Label: "loss", Log: true}
	plots := []report.Plot{
		{Name: "wake", Caption: "Loss of trajectories from bare words (" + s.Wake.Objective + ").", Y: loss, Keys: []string{"wake/loss"}},
		{Name: "balance", Caption: "Loss of the balance between the two trees of a move.", Y: loss, Keys: []string{"balance/loss"}},
		{Name: "sleep", Caption: "Loss of dreams: −log P_F of the steps that make a tree of the grammar.", Y: report.Axis{Label: "nats"},
			Keys: []string{"sleep/loss"}},
	}
	if s.Fixed != "" {
		return plots
	}
	return append(plots,
		report.Plot{Name: "gate", Caption: "M-steps are made while the moving average of the wake loss is below the threshold.", Y: loss,
			Keys: []string{"gate/average", "gate/threshold"}, Names: []string{"moving average", "threshold"}},
		report.Plot{Name: "m-steps", Caption: "M-steps made.", Y: report.Axis{Label: "M-steps"}, Keys: []string{"updates"}})
}

// gfnDrawn is what a GFlowNet has drawn for a report.
type gfnDrawn struct {
	labels []float64         // how many constituents have each nonterminal, one tree of each sentence counted
	shown  map[int]gfnSample // by sentence
}

// gfnSample are a few trees of one sentence: that of its most probable derivation first, then draws.
type gfnSample struct {
	trees          []*grammar.Tree
	logJoint, logQ []float64
}

// drawForReport draws trees of a split that was parsed.
func (s session) drawForReport(p *parsed) error {
	once, err := s.Network.DrawOnce(p.split.Sentences, s.Config.Seed)
	if err != nil {
		return err
	}
	picked := spreadLengths(p.split.Sentences, shownTrees)
	var x []treebank.Sentence
	for _, i := range picked {
		for range shownDraws {
			x = append(x, p.split.Sentences[i])
		}
	}
	draws, err := s.Network.Parse(x, parse.GFNSample, s.Config.Seed)
	if err != nil {
		return err
	}
	var trees []*grammar.Tree
	x = x[:0]
	for k, i := range picked {
		trees, x = append(trees, p.trees[i]), append(x, p.split.Sentences[i])
		for _, d := range draws[k*shownDraws : (k+1)*shownDraws] {
			trees, x = append(trees, d.Tree), append(x, p.split.Sentences[i])
		}
	}
	logJoint, err := s.Exact.LogTrees(x, trees)
	if err != nil {
		return err
	}
	logQ, err := s.Network.LogQ(x, trees, shownOrders, s.Config.Seed)
	if err != nil {
		return err
	}
	p.gfn = &gfnDrawn{labels: once.Labels, shown: map[int]gfnSample{}}
	for k, i := range picked {
		from, to := k*(shownDraws+1), (k+1)*(shownDraws+1)
		p.gfn.shown[i] = gfnSample{trees[from:to], logJoint[from:to], logQ[from:to]}
	}
	return nil
}

// panels are the draws of a sentence. The tree of its most probable derivation is told what the GFlowNet makes of it.
func (g *gfnDrawn) panels(p *parsed, i int, best *report.Tree) (out []report.Panel) {
	if g == nil {
		return nil
	}
	s := g.shown[i]
	says := func(k int) string {
		return fmt.Sprintf("log p(x,z) = %s, log q(z) = %s", report.Number(s.logJoint[k], 2), report.Number(s.logQ[k], 2))
	}
	best.Title, best.Caption = "most probable derivation", says(0)
	for k := 1; k < len(s.trees); k++ {
		t := p.found(i, s.trees[k])
		t.Title, t.Caption = fmt.Sprintf("draw %d", k), says(k)
		out = append(out, t)
	}
	return out
}
