package induce

import (
	"path/filepath"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// Report implements run.Session.
func (s *session) Report(r *run.Run, res run.Result) error {
	own := res.(*Result)
	page := &report.Page{
		Title: "Grammar induction",
		Lead:  "A grammar learned from sentences alone, and the trees that it finds.",
	}
	section := page.Section("Result")
	for _, t := range own.tables() {
		section.Table(t)
	}
	page.Section("Configuration").Pre(r.Config())
	page.Section("Provenance").Pre(r.Info().String())
	return page.WriteFile(filepath.Join(r.Dir(), "report.html"))
}
