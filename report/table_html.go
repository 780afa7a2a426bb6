package report

import (
	"html/template"
	"strings"
	"unicode/utf8"
)

// html returns the table as an element.
func (t *Table) html() (template.HTML, error) {
	type cell struct {
		Text, Pad string // Pad is not seen: it moves the number to where those with a tail have theirs
		Head      string // of its column
		Number    bool
	}
	var view struct {
		Title string
		Head  []cell
		Rows  [][]cell
		Notes []string
		Dense bool // many columns share the page
		Wide  bool // on a narrow screen each row stands by itself, a line for each cell
	}
	view.Title, view.Notes = t.Title, t.Notes
	view.Rows = make([][]cell, len(t.Rows))
	width := 0
	for _, column := range t.layOut() {
		width += column.narrowest() + 2
		view.Head = append(view.Head, cell{Text: column.Name, Number: column.numeric})
		for i, c := range column.cells {
			v := cell{Text: c.String(), Head: column.Name, Number: column.numeric}
			if c.numeric && c.tail == "" {
				v.Pad = column.tail
			}
			view.Rows[i] = append(view.Rows[i], v)
		}
	}
	view.Dense = len(view.Head) > 7
	view.Wide = width > narrowScreen
	return render("table", view)
}

// narrowScreen is how many letters fit into a line of a table on a telephone.
const narrowScreen = 46

// narrowest is how many letters a column needs at least: numbers are not broken, texts between words.
func (c shownColumn) narrowest() int {
	width := longestWord(c.Name)
	for _, cell := range c.cells {
		if c.numeric {
			width = max(width, utf8.RuneCountInString(cell.String()))
		} else {
			width = max(width, longestWord(cell.String()))
		}
	}
	return width
}

func longestWord(s string) int {
	longest := 0
	for word := range strings.FieldsSeq(s) {
		longest = max(longest, utf8.RuneCountInString(word))
	}
	return longest
}
