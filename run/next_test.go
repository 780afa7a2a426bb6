package run

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/gfnem/gfnem/internal/disk/disktest"
)

// TestCreateNext: several runs made at the same time have folders of their own, and nothing that is there is touched.
func TestCreateNext(t *testing.T) {
	parent := filepath.Join(disktest.MemoryDir(t), "runs")
	dir := filepath.Join(parent, "count-20260102-150405")
	if err := os.MkdirAll(dir+"-3", 0o777); err != nil {
		t.Fatal(err)
	}
	const several = 20
	var group sync.WaitGroup
	for range several {
		group.Go(func() {
			r, err := CreateNext(dir, testOptions())
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			if err := r.Save(State{Step: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	names := listDir(t, parent)
	for _, want := range []string{"", "-2", "-4", "-21"} {
		if !slices.Contains(names, filepath.Base(dir)+want) {
			t.Errorf("there is no folder %s%s: %q", filepath.Base(dir), want, names)
		}
	}
	if len(names) != several+1 || len(listDir(t, dir+"-3")) > 0 {
		t.Errorf("%d runs made %q", several, names)
	}
	writeString(t, filepath.Join(parent, "file"), "")
	if _, err := CreateNext(filepath.Join(parent, "file", "run"), testOptions()); err == nil {
		t.Error("a run was made below a file")
	}
}
