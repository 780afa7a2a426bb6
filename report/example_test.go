package report_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gfnem/gfnem/report"
)

func ExampleTable() {
	runs := map[string][]float64{
		"exact EM":      {-5.62, -5.61, -9.02, -5.60},
		"mean-field EM": {-7.10, -8.30, -6.21, -7.43},
	}
	successes := map[string]int{"exact EM": 3}
	t := report.Table{Columns: report.Columns("method", "L (nats)", "optimum")}
	for _, method := range []string{"exact EM", "mean-field EM", "untrained"} {
		optimum := report.Rate{Successes: successes[method], Trials: len(runs[method])}
		t.Add(report.Text(method), report.Summarize(runs[method]).Cell(2), optimum.Cell())
	}
	fmt.Print(t.String())
	// Output:
	// method              L (nats)         optimum
	// ─────────────   ────────────   ─────────────
	// exact EM        −6.46 ± 1.71   3/4 (30–95 %)
	// mean-field EM   −7.26 ± 0.86   0/4 (0–49 %)
	// untrained                  –               –
}

func ExampleRate() {
	r := report.Rate{Successes: 19, Trials: 20}
	lo, hi := r.Interval()
	fmt.Printf("%v = %.2f, between %.2f and %.2f\n", r, r.Value(), lo, hi)
	// Output: 19/20 = 0.95, between 0.76 and 0.99
}

func ExampleFigure() {
	f := report.Figure{
		Columns: []string{"exact", "learned"},
		Shared:  true,
		Panels: [][]report.Panel{{
			report.Scatter{Points: [][2]float64{{0, 0}, {1, 2}}, Class: []int{0, 1}},
			report.Scatter{Points: [][2]float64{{0, 1}, {2, 2}}, Class: []int{0, 1}},
		}},
	}
	html, err := f.HTML("two posteriors")
	fmt.Println(string(html[:5]), err)
	// Output: <svg  <nil>
}

func ExamplePage() {
	curve := report.Lines{Series: []report.Series{{Name: "loss", Y: []float64{9, 4, 2, 1}}}}
	p := report.Page{Title: "A run"}
	p.Section("Training").
		Paragraph("The loss falls.").
		Figure(report.NewFigure(curve), "Loss over steps.")
	dir, err := os.MkdirTemp("", "report")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	fmt.Println(p.WriteFile(filepath.Join(dir, "report.html")))
	// Output: <nil>
}
