package report

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Bars is a panel of horizontal bars from zero, the first on top. X is the axis of the values; Y gives its label alone.
// Values that are not finite have no bar.
type Bars struct {
	Axes
	Names  []string
	Values []float64
	Levels []Level
}

// barPitch is the room of one bar.
const barPitch = 13

func (b Bars) chart() (*chart, error) {
	if len(b.Names) == 0 || len(b.Names) != len(b.Values) {
		return nil, fmt.Errorf("bars: %d names for %d values; give one each, and at least one", len(b.Names), len(b.Values))
	}
	if b.X.Log {
		return nil, fmt.Errorf("bars: they begin at zero, which a logarithmic axis does not have")
	}
	ch := newChart(b.Axes, 380, vg.Length(max(barPitch*len(b.Names), 60)))
	ch.marks = len(b.Values)
	values := make(plotter.Values, len(b.Values))
	drawn := false
	for i, v := range b.Values {
		if b.X.drawable(v) {
			values[i], drawn = v, true
		}
	}
	if drawn {
		color, _ := seriesColor(0)
		ch.Add(&plotter.BarChart{Values: values, Width: 0.68 * barPitch, Color: color, Horizontal: true})
		ch.levels(b.Levels, b.X, &ch.X)
	}
	return ch, ch.fit(Axes{X: b.X, Y: ch.names(b.Names, 0.7), NoTicks: b.NoTicks}, 0, 0)
}

// names gives the y axis the labels 0, 1, 2, ..., from the top, with some free room beside the first and the last.
func (ch *chart) names(names []string, free float64) Axis {
	var ticks plot.ConstantTicks
	for i, n := range names {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: printable(n)})
	}
	ch.Y.Tick.Marker, ch.Y.Scale = ticks, plot.InvertedScale{Normalizer: plot.LinearScale{}}
	return Axis{Label: ch.Y.Label.Text, Min: -free, Max: float64(len(names)-1) + free}
}
