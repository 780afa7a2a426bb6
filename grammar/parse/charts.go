package parse

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/treebank"
)

// Charts computes the marginals of constituents of sentences, exactly and in double precision.
type Charts struct {
	set *program.Set
	ask *program.Program[forest.SentenceTensors, chartTensors]
}

type (
	chartOf[T any] struct{ LogP, Labels T } // [1], [1,n,n,N] by first word and number of words less one
	chartTensors   = chartOf[*tensors.Tensor]
)

// NewCharts prepares to compute charts of a table of probabilities.
func NewCharts(b compute.Backend, g *grammar.Grammar) *Charts {
	set := program.NewSet(b, nil)
	tables := g.LogProbs(dtypes.Float64).Keep(set.Store.Scope("/grammar"))
	ask := program.New[forest.SentenceTensors, chartTensors](set, "chart", func(x forest.Sentences) chartOf[*Node] {
		m := tables(x.Words.Graph()).For(x.Words, x.Lengths).Marginals()
		return chartOf[*Node]{m.LogLikelihood, m.Labels}
	})
	return &Charts{set, ask}
}

// Close releases the compiled programs.
func (c *Charts) Close() { c.set.Close() }

// Chart is what the posterior over trees of a sentence says of constituents.
type Chart struct {
	LogP   float64 // log p(x)
	labels []float64
	room   int
	kinds  int
}

// Impossible says that there is no tree, and so no posterior.
func (c *Chart) Impossible() bool { return math.IsInf(c.LogP, -1) }

// Labels are the probabilities that the words from first to last, two or more, are a constituent with each label.
func (c *Chart) Labels(first, last int) []float64 {
	return c.labels[(first*c.room+last-first)*c.kinds:][:c.kinds]
}

// Of returns the chart of a sentence.
func (c *Charts) Of(s treebank.Sentence) (*Chart, error) {
	x := Batches{Rows: 1, Bucket: 5}.Pad([]treebank.Sentence{s})
	y, err := c.ask.Call(x.SentenceTensors)
	if err != nil {
		return nil, err
	}
	return &Chart{
		LogP:   tensors.MustCopyFlatData[float64](y.LogP)[0],
		labels: tensors.MustCopyFlatData[float64](y.Labels),
		room:   x.Room(), kinds: y.Labels.Shape().Dim(-1),
	}, nil
}
