package report

import "html/template"

// html returns the table as an element.
func (t *Table) html() (template.HTML, error) {
	type cell struct {
		Text, Pad string // Pad is not seen: it moves the number to where those with a tail have theirs
		Number    bool
	}
	var view struct {
		Title string
		Head  []cell
		Rows  [][]cell
		Notes []string
	}
	view.Title, view.Notes = t.Title, t.Notes
	view.Rows = make([][]cell, len(t.Rows))
	for _, column := range t.layOut() {
		view.Head = append(view.Head, cell{Text: column.Name, Number: column.numeric})
		for i, c := range column.cells {
			v := cell{Text: c.String(), Number: column.numeric}
			if c.numeric && c.tail == "" {
				v.Pad = column.tail
			}
			view.Rows[i] = append(view.Rows[i], v)
		}
	}
	return render("table", view)
}
