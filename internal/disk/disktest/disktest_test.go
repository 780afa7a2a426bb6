package disktest

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// The model must be able to lose things, or the tests that rely on it prove nothing.
func TestShadow(t *testing.T) {
	s := New(t.TempDir())
	write := func(name string, sync, syncDir bool) {
		t.Helper()
		f, err := s.Open(filepath.Join(s.Root, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("content"), 0); err != nil {
			t.Fatal(err)
		}
		if sync {
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if syncDir {
			if err := s.SyncDir(s.Root); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("durable", true, true)
	write("empty", false, true)
	write("nameless", true, false)
	for _, c := range []struct {
		name string
		pick func(int) int
		want map[string]string
	}{
		{"durable", DurableOnly, map[string]string{"durable": "content", "empty": ""}},
		{"everything", Everything, map[string]string{"durable": "content", "empty": "content", "nameless": "content"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := s.Restore(dir, c.pick); err != nil {
				t.Fatal(err)
			}
			got := make(map[string]string)
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				data, err := os.ReadFile(filepath.Join(dir, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				got[e.Name()] = string(data)
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("a power cut left %v, want %v", got, c.want)
			}
		})
	}
}
