package serve

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"html/template"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/catalog"
)

//go:embed static
var static embed.FS

//go:embed templates
var templates embed.FS

var pages = template.Must(template.ParseFS(templates, "templates/*.html"))

// assets serves scripts and styles.
func assets() http.HandlerFunc {
	files := http.FileServerFS(static)
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache") // another version of the program has others
		files.ServeHTTP(w, r)
	}
}

// show writes a page whole.
func (s *server) show(w http.ResponseWriter, status int, name string, data any) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		s.fail(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(b.Bytes())
}

// home is the list of runs with their curves.
func (s *server) home(w http.ResponseWriter, _ *http.Request) {
	s.show(w, http.StatusOK, "home.html", struct{ Program, Folder string }{self.Name(), filepath.Base(s.real)})
}

// runPage is one run: what it is, its curves, and its model.
func (s *server) runPage(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	dir, err := s.folder(name)
	if err != nil {
		s.show(w, http.StatusNotFound, "missing.html", struct{ Program, Name string }{self.Name(), name})
		return
	}
	one := catalog.Open(dir)
	one.Wrong = s.wrong(one)
	data := struct {
		Program, Name string
		Run           catalog.Run
		Keys          []pair
		Questions     string // that its model answers, with spaces between them
		Report        string // where its report is, if there is one
	}{Program: self.Name(), Name: name, Run: one, Keys: pairs(one.Config)}
	if hasReport(dir) {
		data.Report = (&url.URL{Path: path.Join("/report", name, reportName)}).EscapedPath()
	}
	if in, ok := s.models.inspector(one.Task); ok && hasSaved(dir) {
		var names []string
		for _, q := range in.Questions() {
			names = append(names, q.Name)
		}
		data.Questions = strings.Join(names, " ")
	}
	s.show(w, http.StatusOK, "run.html", data)
}

// hasSaved says whether a run has a checkpoint, and so a model.
func hasSaved(dir string) bool {
	r, err := run.Read(dir)
	if err != nil {
		return false
	}
	saved, err := r.Saved()
	return err == nil && len(saved) > 0
}

type pair struct{ Key, Value string }

// pairs are the keys of a configuration in order.
func pairs(config map[string]string) (out []pair) {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		out = append(out, pair{key, config[key]})
	}
	return out
}

const reportName = "report.html"

func hasReport(dir string) bool {
	_, err := disk.OS{}.Lstat(filepath.Join(dir, reportName))
	return err == nil
}

// shownFiles are the kinds of files of a run that pages show: reports and their pictures.
var shownFiles = map[string]string{
	".html": "text/html; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
}

// report serves the report of a run and its pictures, without scripts.
func (s *server) report(w http.ResponseWriter, r *http.Request) {
	name, file := path.Split(r.PathValue("path"))
	kind, ok := shownFiles[path.Ext(file)]
	dir, err := s.folder(cmp.Or(strings.TrimSuffix(name, "/"), "."))
	if !ok || err != nil || kind == shownFiles[".html"] && file != reportName {
		refuse(w, http.StatusNotFound, "there is no such report")
		return
	}
	data, err := disk.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		refuse(w, http.StatusNotFound, "the run has no report yet")
		return
	} else if err != nil {
		s.fail(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Security-Policy", reportPolicy)
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.Write(data)
}
