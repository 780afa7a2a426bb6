package report

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

// width is the number of columns: no cell is ever dropped for want of a head.
func (t *Table) width() int {
	n := len(t.Columns)
	for _, row := range t.Rows {
		n = max(n, len(row))
	}
	return n
}

// cell returns the cell of row i and column j.
func (t *Table) cell(i, j int) Cell {
	if j < len(t.Rows[i]) {
		return t.Rows[i][j]
	}
	return Cell{}
}

func (t *Table) head(j int) string {
	if j < len(t.Columns) {
		return t.Columns[j].Name
	}
	return ""
}

// numeric reports whether column j holds a number.
func (t *Table) numeric(j int) bool {
	for i := range t.Rows {
		if t.cell(i, j).numeric {
			return true
		}
	}
	return false
}
