package report

import (
	"slices"
	"unicode/utf8"
)

// Table holds results by row and column. A row shorter than the others ends in missing cells. Columns that hold a
// number are aligned on the right, the others on the left.
//
// It prints as text, becomes part of a [Page], and marshals to JSON with the values at full precision.
type Table struct {
	Title   string   `json:"title,omitempty"`
	Columns []Column `json:"columns"`
	Rows    [][]Cell `json:"rows"`
	Notes   []string `json:"notes,omitempty"` // lines below the table
}

// Column is the head of a column.
type Column struct {
	Name string `json:"name"`
}

// Columns returns columns of the given names.
func Columns(names ...string) []Column {
	cs := make([]Column, len(names))
	for i, n := range names {
		cs[i].Name = n
	}
	return cs
}

// Add appends a row.
func (t *Table) Add(row ...Cell) { t.Rows = append(t.Rows, row) }

// DropMissing removes the columns in which every cell is missing.
func (t *Table) DropMissing() {
	for j := len(t.Columns) - 1; j >= 0; j-- {
		if !slices.ContainsFunc(t.Rows, func(row []Cell) bool { return j < len(row) && row[j].raw != nil }) {
			t.Columns = slices.Delete(t.Columns, j, j+1)
			for i, row := range t.Rows {
				if j < len(row) {
					t.Rows[i] = slices.Delete(row, j, j+1)
				}
			}
		}
	}
}

// shownColumn is a column as it is laid out.
type shownColumn struct {
	Column
	cells   []Cell // of all rows
	numeric bool   // whether one of them is a number
	tail    string // the longest of what follows the numbers
}

// layOut returns the columns: no cell is ever dropped for want of a head.
func (t *Table) layOut() []shownColumn {
	columns := make([]shownColumn, len(t.Columns))
	for j, c := range t.Columns {
		columns[j].Column = c
	}
	for _, row := range t.Rows {
		columns = append(columns, make([]shownColumn, max(0, len(row)-len(columns)))...)
	}
	for j := range columns {
		c := &columns[j]
		c.cells = make([]Cell, len(t.Rows))
		for i, row := range t.Rows {
			if j >= len(row) {
				continue
			}
			c.cells[i], c.numeric = row[j], c.numeric || row[j].numeric
			if utf8.RuneCountInString(row[j].tail) > utf8.RuneCountInString(c.tail) {
				c.tail = row[j].tail
			}
		}
	}
	return columns
}
