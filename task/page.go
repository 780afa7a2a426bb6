package task

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/catalog"
)

// Page begins the report of a run: its title says which run it is, and the facts below how far it is. Lead says in a sentence
// what it is about.
func Page(r *run.Run, s run.Session, result run.Result, lead string) *report.Page {
	c := catalog.Open(r.Dir())
	title := []string{r.Info().Task}
	for _, part := range []string{c.Method, c.Preset, c.Data} {
		if part != "" {
			title = append(title, part)
		}
	}
	title = append(title, fmt.Sprintf("seed %d", s.Seed()))
	page := &report.Page{Title: strings.Join(title, " · "), Lead: lead}
	fact := func(name, value string) {
		if value != "" {
			page.Facts = append(page.Facts, report.Fact{Name: name, Value: value})
		}
	}
	step, total := s.Progress()
	status := fmt.Sprintf("finished, %d steps", step)
	if !s.Done() {
		status = fmt.Sprintf("not finished, step %d of %d", step, total)
	}
	fact("status", status)
	if h, ok := result.(run.Headliner); ok {
		if h, ok := h.Headline(); ok {
			fact(h.Name, report.Figures(h.Value).String())
		}
	}
	fact("trained for", report.Duration(c.Took))
	fact("begun", c.Created.Format("2006-01-02 15:04 MST"))
	fact("run", filepath.Base(r.Dir()))
	return page
}

// Finish ends the report of a run, with its configuration and where it came from, and writes report.html to a folder.
func Finish(page *report.Page, r *run.Run, dir string) error {
	if text := r.Config(); text != "" {
		page.Section("Configuration").Pre(text)
	}
	text := r.Info().String()
	for _, c := range r.Changes() {
		text += "\n" + c.String()
	}
	page.Section("Provenance").Pre(text)
	return page.WriteFile(filepath.Join(dir, "report.html"))
}
