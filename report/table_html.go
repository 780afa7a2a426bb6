package report

import (
	"html/template"
	"unicode/utf8"
)

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
	for j := range t.width() {
		number, tail := t.numeric(j), t.longestTail(j)
		view.Head = append(view.Head, cell{Text: t.head(j), Number: number})
		for i := range t.Rows {
			c := t.cell(i, j)
			v := cell{Text: c.String(), Number: number}
			if c.numeric && c.tail == "" {
				v.Pad = tail
			}
			view.Rows[i] = append(view.Rows[i], v)
		}
	}
	return render("table", view)
}

// longestTail returns the longest of what follows the numbers of column j.
func (t *Table) longestTail(j int) (tail string) {
	for i := range t.Rows {
		if s := t.cell(i, j).tail; utf8.RuneCountInString(s) > utf8.RuneCountInString(tail) {
			tail = s
		}
	}
	return tail
}
