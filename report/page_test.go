package report

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// samplePage returns a page with a part of every kind, whose largest figures have n points.
func samplePage(n int) *Page {
	p := &Page{Title: "Hierarchical mixture", Lead: "Twenty runs of three methods on data of their own."}
	figures := gallery(n)
	p.Section("Results").
		Paragraph("The distributions are bimodal: a run either reaches the optimum or a bad local one.").
		Table(sampleTable()).
		Figure(figures["strip"], "Every run, by method.")
	p.Section("Training").
		Figure(figures["lines"], "Three runs.")
	p.Section("Posterior").
		Figure(figures["grid"], "Points by their most probable assignment; the means are black dots.")
	p.Section("Provenance").
		Pre("step 100  loss 0.52\nstep 200  loss 0.31")
	return p
}

func write(t *testing.T, p *Page) string {
	t.Helper()
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageHoldsAllItShows(t *testing.T) {
	html := write(t, samplePage(500))
	if again := write(t, samplePage(500)); again != html {
		t.Error("the same page gave other bytes")
	}
	reference := regexp.MustCompile(`(?i)(\b(src|href)\s*=\s*["']?|@import\s*["']?|url\(\s*["']?)(https?:)?//`)
	if m := reference.FindString(html); m != "" {
		t.Errorf("the page refers to the network: %s", m)
	}
	if strings.Contains(html, "<script") || strings.Contains(html, "<link") {
		t.Error("the page loads something")
	}
	checkBalanced(t, html)
	for _, want := range []string{
		"<h1>Hierarchical mixture</h1>", `<a href="#s3">Provenance</a>`, `<section id="s3">`,
		"<td class=\"n\">−5.77 ± 0.48</td>", "<figcaption>Every run, by method.</figcaption>",
		"step 100  loss 0.52\nstep 200", `src="data:image/png;base64,`, `<svg xmlns="http://www.w3.org/2000/svg"`,
		"prefers-color-scheme: dark",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// checkBalanced checks that every element that is opened is closed, in order.
func checkBalanced(t *testing.T, html string) {
	t.Helper()
	void := []string{"meta", "img", "br"}
	var open []string
	for _, m := range regexp.MustCompile(`<(/?)([a-zA-Z][a-zA-Z0-9]*)([^<>]*)>`).FindAllStringSubmatch(html, -1) {
		switch name := m[2]; {
		case slices.Contains(void, name) || strings.HasSuffix(m[3], "/"):
		case m[1] == "":
			open = append(open, name)
		case len(open) == 0 || open[len(open)-1] != name:
			t.Fatalf("</%s> closes %v", name, open)
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("never closed: %v", open)
	}
}

func TestPageEscapes(t *testing.T) {
	for _, evil := range []string{
		`<script>alert(1)</script>`,
		`"><img src=x onerror=alert(1)>`,
		`</style></svg></pre></title><h1>`,
		"' onload='x' {{.Title}} & \x00\x1b[31m \xff",
	} {
		figure := Figure{Title: evil, Rows: []string{evil}, Columns: []string{evil}, Panels: [][]Panel{{
			Lines{
				Axes:   Axes{Title: evil, X: Axis{Label: evil}, Y: Axis{Label: evil}},
				Series: []Series{{Name: evil, Y: []float64{1, 2}}}, Levels: []Level{{evil, 1}},
			},
			Strip{Groups: []Group{{evil, []float64{1}}}},
		}}}
		many := NewFigure(Scatter{Points: make([][2]float64, svgMarks+1), Marks: []Marks{{Name: evil}}})
		table := &Table{Title: evil, Columns: Columns(evil), Notes: []string{evil}}
		table.Add(Text(evil))
		p := &Page{Title: evil, Lead: evil}
		for range 3 {
			p.Section(evil).Paragraph(evil).Pre(evil).Table(table).
				Figure(figure, evil).Figure(many, evil)
		}
		html := write(t, p)
		checkBalanced(t, html)
		for _, bad := range []string{"<script", "<img src=x", "<h1><", "onload='"} {
			if strings.Contains(html, bad) {
				t.Errorf("%q came through as %s", evil, bad)
			}
		}
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	page := &Page{Title: "first"}
	if err := os.WriteFile(path+".tmp", []byte("what a killed program left, longer than nothing"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := page.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil || string(first) != write(t, page) {
		t.Fatalf("the file is not the page (%v)", err)
	}

	broken := &Page{Title: "second"}
	broken.Section("s").Figure(Figure{}, "no panels")
	if err := broken.WriteFile(path); err == nil || !strings.Contains(err.Error(), "no panels") {
		t.Errorf("a figure that cannot be drawn: error %v", err)
	}
	if now, _ := os.ReadFile(path); string(now) != string(first) {
		t.Error("a failed write changed the file")
	}
	if err := page.WriteFile(filepath.Join(dir, "absent", "report.html")); err == nil {
		t.Error("no error for a folder that is not there")
	}
	if err := page.WriteFile(dir); err == nil {
		t.Error("no error for a path that is a folder")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}
