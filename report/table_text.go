package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// String returns the table as text for a terminal, with aligned columns.
func (t *Table) String() string {
	columns := make([][]string, t.width()) // head first
	for j := range columns {
		columns[j] = t.textColumn(j)
	}
	var b strings.Builder
	if t.Title != "" {
		b.WriteString(oneLine(t.Title) + "\n\n")
	}
	line := func(cells func(j int) string) {
		var row []string
		for j := range columns {
			row = append(row, cells(j))
		}
		b.WriteString(strings.TrimRight(strings.Join(row, "   "), " ") + "\n")
	}
	line(func(j int) string { return columns[j][0] })
	line(func(j int) string { return strings.Repeat("─", utf8.RuneCountInString(columns[j][0])) })
	for i := range t.Rows {
		line(func(j int) string { return columns[j][i+1] })
	}
	if len(t.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range t.Notes {
		b.WriteString(oneLine(n) + "\n")
	}
	return b.String()
}

// textColumn returns column j, head first, all of the same width. Numbers align on their last digit, whether or not
// something follows it.
func (t *Table) textColumn(j int) []string {
	tail := utf8.RuneCountInString(t.longestTail(j))
	col := []string{oneLine(t.head(j))}
	for i := range t.Rows {
		c := t.cell(i, j)
		s := oneLine(c.String())
		if c.numeric {
			s += strings.Repeat(" ", tail-utf8.RuneCountInString(c.tail))
		}
		col = append(col, s)
	}
	width := 0
	for _, s := range col {
		width = max(width, utf8.RuneCountInString(s))
	}
	if !t.numeric(j) {
		width = -width // aligned on the left
	}
	for i, s := range col {
		col[i] = fmt.Sprintf("%*s", width, s)
	}
	return col
}

// oneLine keeps text from breaking a row, or from steering a terminal.
func oneLine(s string) string { return strings.Join(strings.Fields(printable(s)), " ") }
