package vae

import (
	"path/filepath"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// Report implements run.Session.
func (s *session) Report(r *run.Run, res run.Result) error {
	page := &report.Page{Title: "Discrete VAE"}
	page.Section("Result").Table(res.(*Result).table())
	return page.WriteFile(filepath.Join(r.Dir(), "report.html"))
}
