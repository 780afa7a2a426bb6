//go:build cgo

package backend

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A file that is no library: one line, the path in it, and nothing on standard error.
func TestXLABadPlugin(t *testing.T) {
	if path := os.Getenv("GFNEM_TEST_PLUGIN"); path != "" {
		if _, err := Open("xla:" + path); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path) {
			t.Errorf("Open = %v", err)
		}
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "xla_cuda_plugin.so")
	for _, f := range []string{path, filepath.Join(dir, "nvidia", "cu13", "lib", "libcudart.so.13")} {
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte("text\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestXLABadPlugin$")
	cmd.Env = append(os.Environ(), "GFNEM_TEST_PLUGIN="+path)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if out, err := cmd.Output(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v\n%s%s", err, out, &stderr)
	}
}

func TestXLANoPlugin(t *testing.T) {
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", t.TempDir())
	for _, name := range []string{"xla", "xla:cuda", "xla:cpu", "xla:,tf32=false"} {
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), "PJRT plugin") {
			t.Errorf("Open(%q) = %v", name, err)
		}
	}
}

// Linking go-xla costs a program neither lines on standard error nor a variable of its environment.
func TestQuietStart(t *testing.T) {
	if os.Getenv("GFNEM_TEST_QUIET") != "" {
		if v, set := os.LookupEnv("PJRT_PLUGIN_LIBRARY_PATH"); set {
			t.Errorf("PJRT_PLUGIN_LIBRARY_PATH=%q", v)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestQuietStart$")
	cmd.Env = []string{"GFNEM_TEST_QUIET=1"} // no HOME: go-xla alone would complain
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if out, err := cmd.Output(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v\n%s%s", err, out, &stderr)
	}
}
