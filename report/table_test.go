package report

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sampleTable() *Table {
	t := &Table{
		Title:   "Log-likelihood",
		Columns: Columns("method", "L (nats per point)", "optimum"),
		Notes:   []string{"Mean ± standard deviation over runs."},
	}
	t.Add(Text("exact EM"), MeanStd(-5.79, 0.74, 2), Rate{19, 20}.Cell())
	t.Add(Text("mean-field EM"), MeanStd(-17.261, 1.12, 2), Rate{0, 20}.Cell())
	t.Add(Text("GFlowNet-EM"), MeanStd(-5.77, 0.48, 2), Rate{17, 20}.Cell())
	t.Add(Text("true means"), Number(-5.62, 2))
	return t
}

func TestTableText(t *testing.T) {
	want := `Log-likelihood

method          L (nats per point)           optimum
─────────────   ──────────────────   ───────────────
exact EM              −5.79 ± 0.74   19/20 (76–99 %)
mean-field EM        −17.26 ± 1.12    0/20 (0–16 %)
GFlowNet-EM           −5.77 ± 0.48   17/20 (64–95 %)
true means            −5.62                        –

Mean ± standard deviation over runs.
`
	if diff := cmp.Diff(want, sampleTable().String()); diff != "" {
		t.Error(diff)
	}
}

func htmlOf(t *testing.T, table *Table) string {
	t.Helper()
	html, err := table.html()
	if err != nil {
		t.Fatal(err)
	}
	return string(html)
}

func TestTableHTML(t *testing.T) {
	table := &Table{Columns: Columns("a<b", "n")}
	table.Add(Text(`"&"`), MeanStd(1, 0.5, 1))
	table.Add(Cell{}, Number(-2, 1))
	want := `<div class="table">
<table>
<thead><tr><th>a&lt;b</th><th class="n">n</th></tr></thead>
<tbody>
<tr><td>&#34;&amp;&#34;</td><td class="n">1.0 ± 0.5</td></tr>
<tr><td>–</td><td class="n">−2.0<span class="pad" aria-hidden="true"> ± 0.5</span></td></tr>
</tbody>
</table>
</div>`
	if diff := cmp.Diff(want, htmlOf(t, table)); diff != "" {
		t.Error(diff)
	}
}

func TestTableJSON(t *testing.T) {
	table := &Table{Title: "T", Columns: Columns("a", "b")}
	table.Add(Text("x"), Number(1.23456789, 2))
	table.Add(Int(-3), MeanStd(0.5, 0.25, 1))
	table.Add(Number(math.NaN(), 2), Number(math.Inf(-1), 2))
	got, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"title":"T","columns":[{"name":"a"},{"name":"b"}],"rows":[` +
		`["x",1.23456789],[-3,{"mean":0.5,"std":0.25}],[null,"-Inf"]]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}

	got, err = json.Marshal(Rate{3, 4}.Cell())
	if err != nil {
		t.Fatal(err)
	}
	var rate struct {
		Rate
		Low, High float64
	}
	if err := json.Unmarshal(got, &rate); err != nil {
		t.Fatal(err)
	}
	if lo, hi := (Rate{3, 4}).Interval(); rate.Rate != (Rate{3, 4}) || rate.Low != lo || rate.High != hi {
		t.Errorf("a rate became %s", got)
	}
}

func TestCellText(t *testing.T) {
	for _, c := range []struct {
		cell Cell
		want string
	}{
		{Cell{}, "–"},
		{Text(""), ""},
		{Int(-12), "−12"},
		{Number(-0.004, 2), "0.00"},
		{Number(-0.006, 2), "−0.01"},
		{Number(1e6, 0), "1000000"},
		{Number(math.NaN(), 2), "–"},
		{Number(math.Inf(1), 2), "∞"},
		{Number(math.Inf(-1), 2), "−∞"},
		{MeanStd(-5.77, 0.48, 2), "−5.77 ± 0.48"},
		{MeanStd(-5.77, math.NaN(), 2), "−5.77"},
		{MeanStd(math.NaN(), 1, 2), "–"},
		{Rate{}.Cell(), "–"},
	} {
		if got := c.cell.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// No cell is lost, whatever the shape of the table.
func TestTableRagged(t *testing.T) {
	table := &Table{Columns: Columns("a")}
	table.Add()
	table.Add(Int(1), Text("beyond the heads"))
	for _, s := range []string{table.String(), htmlOf(t, table)} {
		if !strings.Contains(s, "beyond the heads") || strings.Count(s, "–") != 2 {
			t.Errorf("a cell is lost in\n%s", s)
		}
	}
	table.Rows[1][1] = Text("red\x1b[31m\nand \xff")
	if s := table.String(); !strings.Contains(s, "red [31m and\n") {
		t.Errorf("control characters came through in %q", s)
	}
	if got := new(Table).String(); got != "\n\n" {
		t.Errorf("an empty table is %q", got)
	}
}
