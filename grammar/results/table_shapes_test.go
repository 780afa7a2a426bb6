package results

import (
	"context"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/grammar/induce"
)

// Every row of the table of shapes differs from the one before it in what its title says.
func TestShapesTable(t *testing.T) {
	rows := cellsOf(t, "grammar-shapes", "quick")
	for row, want := range map[string]struct {
		method, trees, collapse string
		walks, samples          int
		weights, vargrad        bool
		persist                 bool
		replay                  int
	}{
		"marginal":       {induce.Marginal, induce.Labelled, induce.Published, 1, 1, false, false, false, 0},
		"exact":          {induce.Exact, induce.Labelled, induce.Nothing, 1, 1, false, false, false, 0},
		"exact-tags":     {induce.Exact, induce.Labelled, induce.Tags, 1, 1, false, false, false, 0},
		"exact-labels":   {induce.Exact, induce.Labelled, induce.Labels, 1, 1, false, false, false, 0},
		"exact-labels-4": {induce.Exact, induce.Labelled, induce.Labels, 1, 4, false, false, false, 0},
		"gfn":            {induce.GFN, induce.Labelled, induce.Tags, 1, 1, false, false, false, 0},
		"gfn-labels":     {induce.GFN, induce.Labelled, induce.Labels, 1, 1, false, false, false, 0},
		"gfn-shapes":     {induce.GFN, induce.Shapes, induce.Published, 1, 1, false, false, false, 0},
		"gfn-shapes-4":   {induce.GFN, induce.Shapes, induce.Published, 4, 1, false, false, false, 0},
		"gfn-weights-4":  {induce.GFN, induce.Shapes, induce.Published, 4, 1, true, false, false, 0},
		"gfn-vargrad-4":  {induce.GFN, induce.Shapes, induce.Published, 4, 1, true, true, false, 0},
		"gfn-replay-4":   {induce.GFN, induce.Shapes, induce.Published, 4, 1, true, true, false, 1},
		"gfn-chains-4":   {induce.GFN, induce.Shapes, induce.Published, 4, 1, false, false, true, 0},
	} {
		c, ok := rows[row]
		if !ok || c.Method != want.method || c.Policy.Trees != want.trees || c.MStep.Collapse != want.collapse ||
			c.Wake.Samples != want.walks || c.MStep.Samples != want.samples || c.MStep.Weights != want.weights ||
			(c.Wake.Objective == "vargrad") != want.vargrad || c.Moves.Persist != want.persist || c.Wake.Replay != want.replay ||
			want.weights != (c.Moves.Count == 0) {
			t.Errorf("%s is %+v", row, c)
		}
	}
}

// Rows of the table of objectives differ in their losses, and all learn from five trajectories of each sentence unless
// somebody says otherwise: walks, and a dream of those that sleep.
func TestObjectivesTable(t *testing.T) {
	onPolicy := map[string]bool{"hvi": true, "vimco": true, "rws": true, "rws-sleep": true}
	for row, c := range cellsOf(t, "grammar-objectives", "small") {
		objective, _, sleeps := strings.Cut(row, "-")
		if row == "sleep" {
			objective, sleeps = "none", true
		}
		walks := 5
		if sleeps {
			walks = 4
		}
		if c.Wake.Objective != objective || c.Wake.Samples != walks || (c.Sleep.Weight > 0) != sleeps || c.Moves.Balance != 0 ||
			(c.Wake.Beta == 1) != onPolicy[row] || c.Fixed == "" {
			t.Errorf("%s is %+v", row, c)
		}
	}
	if c := cellsOf(t, "grammar-objectives", "small", "wake.samples=8")["rws"]; c.Wake.Samples != 8 {
		t.Errorf("%d walks", c.Wake.Samples)
	}
}

// It shows a divergence and a sample size for GFlowNets alone, and does not speak of the paper's sentences.
func TestShapesTableIsShown(t *testing.T) {
	s := tinyStudy(t.TempDir(), "grammar-shapes", []string{"exact-labels", "gfn-weights-4"})
	s.Runs = 1
	r, err := Task{}.Reproduce(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "Penn Treebank") || !strings.Contains(text.String(), "KL per word") {
		t.Errorf("it prints\n%s", text.String())
	}
	made := r.(*reproduced)
	if g := made.Rows[0].Runs[0].shown().GFlowNet; g != nil {
		t.Errorf("exact sampling has a GFlowNet: %+v", g)
	}
	if made.Rows[0].Milliseconds <= 0 || made.Rows[1].Milliseconds <= 0 {
		t.Errorf("iterations take %g and %g milliseconds", made.Rows[0].Milliseconds, made.Rows[1].Milliseconds)
	}
	if g := made.Rows[1].Runs[0].shown().GFlowNet; g == nil || !(g.ESS >= 1 && g.ESS <= 32) {
		t.Errorf("GFlowNet-EM has %+v", g)
	}
}
