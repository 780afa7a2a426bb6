//go:build unix

package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
)

// What is no file of a configuration is refused at once, with one line; a pipe that is open is read.
func TestFileIsAFile(t *testing.T) {
	dir := t.TempDir()
	fifo, long := filepath.Join(dir, "fifo"), filepath.Join(dir, "long.toml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(long, []byte("n = 3 #"+strings.Repeat("-", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	type numbers struct {
		N int `toml:"n" range:"0,10" help:"a number"`
	}
	resolve := func(path string) (n int, err error) {
		done := make(chan error, 1)
		c := &numbers{}
		go func() { done <- config.Resolve(c, config.File(path)) }()
		select {
		case err = <-done:
			return c.N, err
		case <-time.After(time.Minute):
			t.Fatalf("%s is read for ever", path)
			return 0, nil
		}
	}
	for _, path := range []string{fifo, long, "/dev/zero", "/dev/null", dir} {
		_, err := resolve(path)
		if !errors.As(err, new(*badinput.Error)) || !strings.Contains(err.Error(), path) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", path, err)
		}
	}
	for text, want := range map[string]int{"n = 7\n": 7, "n = 8 #" + strings.Repeat("-", 1<<20): 0} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			w.WriteString(text)
			w.Close()
		}()
		n, err := resolve(fmt.Sprintf("/dev/fd/%d", r.Fd()))
		r.Close()
		if n != want || (want == 0) != (err != nil) {
			t.Errorf("a pipe with %.10q gives %d, %v", text, n, err)
		}
	}
}
