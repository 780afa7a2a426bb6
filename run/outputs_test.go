package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
)

// publishing is a run of one checkpoint that publishes a page and a figure.
type publishing struct {
	*Run
	disk *disktest.Shadow
}

func newPublishing(t *testing.T) *publishing {
	t.Helper()
	s := disktest.New(disktest.MemoryDir(t))
	r, err := create(s, filepath.Join(s.Root, "run"), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if err := r.Save(toyState(3)); err != nil {
		t.Fatal(err)
	}
	return &publishing{r, s}
}

// publish writes two files that say which version they are.
func (p *publishing) publish(version string) error {
	return p.Publish(func(dir string) error {
		for _, name := range []string{"report.html", "figure.png"} {
			content := disk.Content([]byte(name + version))
			if _, err := disk.Write(p.disk, filepath.Join(dir, name), content); err != nil {
				return err
			}
		}
		return nil
	})
}

// publishedIn returns the versions of the files in a folder, and whether they are listed as they are.
func publishedIn(t *testing.T, dir string) (versions string, listed bool) {
	t.Helper()
	list, err := readOutputs(disk.OS{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"report.html", "figure.png"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		versions += strings.TrimPrefix(string(data), name)
		if list != nil && list.Files[name] != disk.DigestOf(data) {
			t.Fatalf("%s is listed with another hash", name)
		}
	}
	return versions, list != nil
}

func TestPublish(t *testing.T) {
	p := newPublishing(t)
	for _, version := range []string{"1", "2"} {
		if err := p.publish(version); err != nil {
			t.Fatal(err)
		}
		if versions, listed := publishedIn(t, p.dir); versions != version+version || !listed {
			t.Errorf("versions %s, listed: %v", versions, listed)
		}
		list, err := readOutputs(disk.OS{}, p.dir)
		if err != nil || len(list.Files) != 2 || list.Step != 3 || list.State != StateHash(toyState(3)) {
			t.Errorf("the list is %+v, %v", list, err)
		}
	}
	failed := errors.New("failed")
	if err := p.Publish(func(dir string) error {
		_, err := disk.Write(p.disk, filepath.Join(dir, "report.html"), disk.Content([]byte("half")))
		return errors.Join(err, failed)
	}); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if versions, listed := publishedIn(t, p.dir); versions != "22" || !listed {
		t.Errorf("after a failure: versions %s, listed: %v", versions, listed)
	}
	want := []string{eventsName, "figure.png", lockName, metricsName, outputsName, "report.html", infoName, configName, stateName}
	if d := diff(want, listDir(t, p.dir)); d != "" {
		t.Errorf("the folder: %s", d)
	}
	r, err := Read(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Publish(func(string) error { return nil }); err == nil || !strings.Contains(err.Error(), "reading only") {
		t.Errorf("a run that is only read: error %v", err)
	}
}

// After a power cut at any operation, a list fits the files; published again, nothing is left over.
func TestPowerCutWhilePublishing(t *testing.T) {
	p := newPublishing(t)
	if err := p.publish("1"); err != nil {
		t.Fatal(err)
	}
	before := p.disk.Ops
	if err := p.publish("2"); err != nil {
		t.Fatal(err)
	}
	want := listDir(t, p.dir)
	unlisted := 0
	for cut := range p.disk.Ops - before {
		p := newPublishing(t)
		if err := p.publish("1"); err != nil {
			t.Fatal(err)
		}
		p.disk.CutAt = p.disk.Ops + cut
		if err := p.publish("2"); !errors.Is(err, disktest.ErrCut) {
			t.Fatalf("cut %d: %v", cut, err)
		}
		p.Close()
		for left, pick := range map[string]func(int) int{"durable": disktest.DurableOnly, "everything": disktest.Everything} {
			after, err := p.disk.Restore(disktest.MemoryDir(t), pick)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(after.Root, "run")
			versions, listed := publishedIn(t, dir)
			if !listed {
				unlisted++
			} else if versions != "11" && versions != "22" {
				t.Errorf("cut %d, %s left: versions %s are listed", cut, left, versions)
			}
			r, err := open(after, dir)
			if err != nil {
				t.Fatal(err)
			}
			again := &publishing{r, after}
			if err := again.publish("3"); err != nil {
				t.Fatalf("cut %d, %s left: %v", cut, left, err)
			}
			if versions, listed := publishedIn(t, dir); versions != "33" || !listed {
				t.Errorf("cut %d, %s left, then published: versions %s, listed: %v", cut, left, versions, listed)
			}
			if d := diff(want, listDir(t, dir)); d != "" {
				t.Errorf("cut %d, %s left, then published: the folder: %s", cut, left, d)
			}
			r.Close()
		}
	}
	if unlisted == 0 {
		t.Error("no cut left files without a list: the test shows too little")
	}
}

// What earlier versions left when they were killed is removed, and nothing else.
func TestPublishSweeps(t *testing.T) {
	p := newPublishing(t)
	old := []string{".report.html.123", ".loss.png.4567", ".means.svg.89", "parameters.safetensors.tmp"}
	kept := []string{".report.html.bak", "report.html.123", ".notes", ".loss.png", "mine.tmp", ".my.txt.12"}
	for _, name := range append(old, kept...) {
		writeString(t, p.path(name), "half")
	}
	g := Grid{Dir: p.dir} // on the disk itself
	if err := g.Publish(func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, name := range old {
		if _, err := os.Lstat(p.path(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left", name)
		}
	}
	for _, name := range kept {
		if got := readFile(t, p.path(name)); got != "half" {
			t.Errorf("%s was changed", name)
		}
	}
}
