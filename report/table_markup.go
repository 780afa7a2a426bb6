package report

import (
	"html/template"
	"strings"
)

// Markdown returns the table in GitHub's dialect, with marked cells in bold.
func (t *Table) Markdown() string {
	var b strings.Builder
	if t.Title != "" {
		b.WriteString("**" + markdownText(t.Title) + "**\n\n")
	}
	line := func(cells func(j int) string) {
		b.WriteString("|")
		for j := range t.width() {
			b.WriteString(" " + cells(j) + " |")
		}
		b.WriteString("\n")
	}
	line(func(j int) string { return markdownText(t.head(j)) })
	line(func(j int) string {
		if t.numeric(j) {
			return "---:"
		}
		return ":---"
	})
	for i := range t.Rows {
		line(func(j int) string {
			c := t.cell(i, j)
			s := markdownText(c.String())
			if c.marked && s != "" {
				s = "**" + s + "**"
			}
			return s
		})
	}
	for _, n := range t.Notes {
		b.WriteString("\n" + markdownText(n) + "\n")
	}
	return b.String()
}

// markdownEscapes makes text literal within a cell of a table.
var markdownEscapes = strings.NewReplacer(`\`, `\\`, `|`, `\|`, `*`, `\*`, `_`, `\_`, "`", "\\`", `[`, `\[`, `]`, `\]`,
	`~`, `\~`, `&`, `&amp;`, `<`, `&lt;`, `>`, `&gt;`)

func markdownText(s string) string { return markdownEscapes.Replace(oneLine(s)) }

// HTML returns the table as an element, with marked cells in bold.
func (t *Table) HTML() template.HTML {
	type cell struct {
		Text, Pad    string // Pad is not seen: it moves the number to where those with a tail have theirs
		Number, Bold bool
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
			v := cell{Text: c.String(), Number: number, Bold: c.marked}
			if c.numeric && c.tail == "" {
				v.Pad = tail
			}
			view.Rows[i] = append(view.Rows[i], v)
		}
	}
	html, err := render("table", view)
	if err != nil {
		panic(err) // the template is our own and holds nothing that can fail
	}
	return html
}

// longestTail returns the longest of what follows the numbers of column j.
func (t *Table) longestTail(j int) (tail string) {
	for i := range t.Rows {
		if s := t.cell(i, j).tail; len(s) > len(tail) {
			tail = s
		}
	}
	return tail
}
