//go:build unix

package report

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Files are as private as their writer asked for.
func TestUmask(t *testing.T) { // not parallel: the umask is the process's
	defer syscall.Umask(syscall.Umask(0o077))
	dir := t.TempDir()
	if err := (&Page{}).WriteFile(filepath.Join(dir, "report.html")); err != nil {
		t.Fatal(err)
	}
	if err := NewFigure(Lines{Series: []Series{{X: []float64{0, 1}, Y: []float64{0, 1}}}}).Save(dir, "figure"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"report.html", "figure.png", "figure.svg"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v under umask 077", name, info.Mode())
		}
	}
}
