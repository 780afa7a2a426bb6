package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var templates = template.Must(template.New("report").Parse(pageHTML))

// Page is one HTML document that holds all it shows: it loads nothing, runs no script, follows the reader's choice of light
// or dark, figures too, and fits wide and narrow screens.
//
// Sections are read when the page is written, so that they may be filled in any order.
type Page struct {
	Title    string
	Lead     string // a sentence below the title
	Facts    []Fact // what is to be known first, below that
	sections []*Section
}

// Fact is a value with a name.
type Fact struct{ Name, Value string }

// Section is a part of a page, with a heading. Its methods append to it, and return it so that calls can be chained.
type Section struct {
	heading string
	blocks  []block
}

// block is a part of a section, which becomes HTML when the page is written.
type block func() (template.HTML, error)

// Section appends a section to the page and returns it.
func (p *Page) Section(heading string) *Section {
	s := &Section{heading: heading}
	p.sections = append(p.sections, s)
	return s
}

// Paragraph appends running text.
func (s *Section) Paragraph(text string) *Section { return s.add("paragraph", text) }

// Note appends a sentence that a reader must not miss, without its end; none if it is empty.
func (s *Section) Note(text string) *Section {
	if text == "" {
		return s
	}
	return s.Paragraph("Note: " + text + ".")
}

// Pre appends text whose line breaks and spaces matter, such as code or a log.
func (s *Section) Pre(text string) *Section { return s.add("pre", text) }

// Table appends a table; none if it has no rows.
func (s *Section) Table(t *Table) *Section {
	if len(t.Rows) == 0 {
		return s
	}
	s.blocks = append(s.blocks, t.html)
	return s
}

// Figure appends a figure with a caption, which is also its alternative text.
func (s *Section) Figure(f Figure, caption string) *Section {
	s.blocks = append(s.blocks, func() (template.HTML, error) {
		drawing, err := f.HTML(caption)
		if err != nil {
			return "", err
		}
		return render("figure", struct {
			Drawing template.HTML
			Caption string
		}{drawing, caption})
	})
	return s
}

func (s *Section) add(name string, data any) *Section {
	s.blocks = append(s.blocks, func() (template.HTML, error) { return render(name, data) })
	return s
}

func render(name string, data any) (template.HTML, error) {
	var b strings.Builder
	err := templates.ExecuteTemplate(&b, name, data)
	return template.HTML(b.String()), err
}

// Write writes the page to w.
func (p *Page) Write(w io.Writer) error {
	type section struct {
		Heading string
		Blocks  []template.HTML
	}
	view := struct {
		Title, Lead string
		Facts       []Fact
		Style       template.CSS
		Sections    []section
	}{Title: p.Title, Lead: p.Lead, Facts: p.Facts}
	var blocks []string
	for _, s := range p.sections {
		if len(s.blocks) == 0 {
			continue
		}
		part := section{Heading: s.heading}
		for _, b := range s.blocks {
			html, err := b()
			if err != nil {
				return fmt.Errorf("page %q, section %q: %w", p.Title, s.heading, err)
			}
			part.Blocks, blocks = append(part.Blocks, html), append(blocks, string(html))
		}
		view.Sections = append(view.Sections, part)
	}
	view.Style = template.CSS(pageCSS + darkStyle(blocks...))
	return templates.ExecuteTemplate(w, "page", view)
}

// WriteFile writes the page to a file, which appears complete or not at all.
func (p *Page) WriteFile(path string) error {
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		return err
	}
	if err := writeFile(path, []byte(b.String())); err != nil {
		return fmt.Errorf("write page %q: %w", p.Title, err)
	}
	return nil
}
