package run

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/testkit"
)

// A file is replaced by one that was written to its end, and by no other; nothing else is left beside it.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	for _, c := range []struct {
		text, want string
		fail       error
	}{{"a long text", "a long text", nil}, {"half", "a long text", errors.New("full")}, {"new", "new", nil}} {
		if err := os.WriteFile(path+disk.TmpSuffix, []byte("left over, and longer than any of the texts"), 0o666); err != nil {
			t.Fatal(err)
		}
		err := WriteFile(path, func(w io.Writer) error {
			_, err := io.WriteString(w, c.text)
			return errors.Join(err, c.fail)
		})
		if !errors.Is(err, c.fail) {
			t.Errorf("writing %q: error %v, want %v", c.text, err, c.fail)
		}
		if got := readFile(t, path); got != c.want {
			t.Errorf("after writing %q there is %q, want %q", c.text, got, c.want)
		}
		if names := listDir(t, dir); len(names) != 1 {
			t.Errorf("after writing %q there are %v", c.text, names)
		}
	}
	kept := filepath.Join(path+disk.TmpSuffix, "kept")
	if err := os.MkdirAll(kept, 0o777); err != nil {
		t.Fatal(err)
	}
	testkit.BadInput(t, WriteFile(path, func(io.Writer) error { return nil }),
		path+".tmp is in the way of writing "+path+": move it")
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the folder in the way: %v", err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "out"), func(io.Writer) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: error %v", err)
	}
}
