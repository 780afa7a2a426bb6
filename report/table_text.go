package report

import (
	"strings"
	"unicode/utf8"
)

// String returns the table as text for a terminal, with aligned columns and a star after marked cells.
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
	numeric := t.numeric(j)
	col := []string{oneLine(t.head(j))}
	tail := 0
	for i := range t.Rows {
		if c := t.cell(i, j); c.numeric {
			tail = max(tail, utf8.RuneCountInString(c.suffix()))
		}
	}
	for i := range t.Rows {
		c := t.cell(i, j)
		s := oneLine(c.plain())
		if c.numeric {
			s += strings.Repeat(" ", tail-utf8.RuneCountInString(c.suffix()))
		}
		col = append(col, s)
	}
	width := 0
	for _, s := range col {
		width = max(width, utf8.RuneCountInString(s))
	}
	for i, s := range col {
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(s))
		if numeric {
			col[i] = pad + s
		} else {
			col[i] = s + pad
		}
	}
	return col
}

// suffix is what follows the number of a cell in plain text.
func (c Cell) suffix() string {
	if c.marked {
		return c.tail + " *"
	}
	return c.tail
}

// plain returns the cell in plain text, with its mark.
func (c Cell) plain() string {
	if c.marked {
		return c.String() + " *"
	}
	return c.String()
}

// oneLine keeps text from breaking a row, or from steering a terminal.
func oneLine(s string) string { return strings.Join(strings.Fields(printable(s)), " ") }
