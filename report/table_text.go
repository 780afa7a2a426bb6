package report

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// String returns the table as text for a terminal, with aligned columns.
func (t *Table) String() string {
	var columns [][]string // head first
	for _, c := range t.layOut() {
		columns = append(columns, c.text())
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

// text returns the lines of a column, head first, all of the same width. Numbers align on their last digit, whether or
// not something follows it.
func (c shownColumn) text() []string {
	col := []string{oneLine(c.Name)}
	for _, cell := range c.cells {
		s := oneLine(cell.String())
		if cell.numeric {
			s += strings.Repeat(" ", utf8.RuneCountInString(c.tail)-utf8.RuneCountInString(cell.tail))
		}
		col = append(col, s)
	}
	width := 0
	for _, s := range col {
		width = max(width, utf8.RuneCountInString(s))
	}
	if !c.numeric {
		width = -width // aligned on the left
	}
	for i, s := range col {
		col[i] = fmt.Sprintf("%*s", width, s)
	}
	return col
}

// oneLine keeps text from breaking a row, or from steering a terminal.
func oneLine(s string) string { return strings.Join(strings.Fields(printable(s)), " ") }
