package treebank

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/internal/testkit"
)

// twins are two data sets that differ in every file.
func twins(t testing.TB) (old, new *Dataset) {
	t.Helper()
	old = small(t)
	dir := write(t, map[string]string{"a.trees": "(S (NP (DT some) (NN cat)) (VP (VBZ barks)))", "b.txt": "some cat barks\nthe ox"})
	new, err := Build(Inputs{Train: []string{dir + "/a.trees"}, Test: []string{dir + "/b.txt"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return old, new
}

// before is what there was before a data set is saved.
var before = map[string]func(*disktest.Shadow, string, *Dataset) error{
	"nothing":      func(*disktest.Shadow, string, *Dataset) error { return nil },
	"empty folder": func(s *disktest.Shadow, dir string, _ *Dataset) error { return disk.MkdirAll(s, dir) },
	"data set":     func(s *disktest.Shadow, dir string, old *Dataset) error { return old.save(s, dir, false) },
}

// found tells which of two data sets is in a folder.
func found(t *testing.T, dir string, old, new *Dataset) string {
	t.Helper()
	d, err := Load(dir)
	switch {
	case err != nil:
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Fatalf("%v", err)
		}
		return "none"
	case d.Hash() == old.Hash():
		return "old"
	case d.Hash() == new.Hash():
		return "new"
	}
	t.Fatal("another data set")
	return ""
}

// TestSavePowerCut cuts the power before every operation of Save, once where the file system can exchange two names and
// once where it cannot: there is the old or the new data set, and the next Save leaves nothing else beside it.
func TestSavePowerCut(t *testing.T) {
	old, new := twins(t)
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	root, folders := disktest.MemoryDir(t), 0
	folder := func() string {
		folders++
		dir := filepath.Join(root, fmt.Sprint(folders))
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, prepare := range before {
		for _, exchange := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/exchange=%v", name, exchange), func(t *testing.T) {
				cuts, ended := 0, false
				for ; !ended; cuts++ {
					s := disktest.New(folder())
					s.Old = !exchange
					dir := filepath.Join(s.Root, "data")
					if err := prepare(s, dir, old); err != nil {
						t.Fatal(err)
					}
					s.CutAt = s.Ops + cuts
					err := new.save(s, dir, true)
					if ended = err == nil; !ended && !errors.Is(err, disktest.ErrCut) {
						t.Fatal(err)
					}
					any := func(n int) int { return r.IntN(n) }
					for _, pick := range []func(int) int{disktest.DurableOnly, disktest.Everything, any, any, any} {
						after, err := s.Restore(folder(), pick)
						if err != nil {
							t.Fatal(err)
						}
						after.Old = s.Old
						dir := filepath.Join(after.Root, "data")
						if _, err := os.Stat(dir); err != nil && exchange && name != "nothing" {
							t.Fatalf("cut %d: %v", cuts, err)
						}
						got := found(t, dir, old, new)
						if ended && got != "new" || name == "data set" && got == "none" || name != "data set" && got == "old" {
							t.Fatalf("cut %d (Save ended: %v): the data set is %s", cuts, ended, got)
						}
						if got != "none" { // a second cut, which may fall into the mending of what the first one left
							after.CutAt = r.IntN(30)
							if err := new.save(after, dir, true); err != nil && !errors.Is(err, disktest.ErrCut) {
								t.Fatal(err)
							}
							if after, err = after.Restore(folder(), pick); err != nil {
								t.Fatal(err)
							}
							after.Old, dir = s.Old, filepath.Join(after.Root, "data")
							if again := found(t, dir, old, new); again != "new" && again != got {
								t.Fatalf("cut %d and another: the data set was %s, now %s", cuts, got, again)
							}
						}
						if err := new.save(after, dir, true); err != nil {
							t.Fatalf("cut %d: saving again: %v", cuts, err)
						}
						if got := found(t, dir, old, new); got != "new" {
							t.Fatalf("cut %d: saved again, the data set is %s", cuts, got)
						}
						checkNames(t, after.Root, "data")
					}
				}
				if cuts < 20 {
					t.Errorf("only %d operations", cuts)
				}
			})
		}
	}
}

// TestSaveOnFullDisk fails every operation of Save in turn.
func TestSaveOnFullDisk(t *testing.T) {
	old, new := twins(t)
	root := disktest.MemoryDir(t)
	for _, exchange := range []bool{true, false} {
		for fail, ended := 0, false; !ended; fail++ {
			s := disktest.New(filepath.Join(root, fmt.Sprint(exchange, fail)))
			s.Old = !exchange
			if err := os.Mkdir(s.Root, 0o777); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(s.Root, "data")
			if err := old.save(s, dir, false); err != nil {
				t.Fatal(err)
			}
			s.FailAt = s.Ops + fail
			err := new.save(s, dir, true)
			if ended = err == nil; !ended && !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			s.FailAt = -1
			got := found(t, dir, old, new)
			if got == "none" || ended && got != "new" {
				t.Fatalf("operation %d failed (%v): the data set is %s", fail, err, got)
			}
			if got == "old" {
				checkNames(t, s.Root, "data")
			}
			if err := new.save(s, dir, true); err != nil || found(t, dir, old, new) != "new" {
				t.Fatalf("operation %d failed: saving again: %v", fail, err)
			}
			checkNames(t, s.Root, "data")
		}
	}
}

// TestLoadAside kills Save between its two renames, where there are two: Load reads the old data set and says where it
// is.
func TestLoadAside(t *testing.T) {
	old, new := twins(t)
	said := 0
	for cut := 0; ; cut++ {
		s := disktest.New(disktest.MemoryDir(t))
		s.Old = true
		dir := filepath.Join(s.Root, "data")
		if err := old.save(s, dir, false); err != nil {
			t.Fatal(err)
		}
		s.CutAt = s.Ops + cut
		err := new.save(s, dir, true)
		d, errLoad := Load(dir)
		if errLoad != nil {
			t.Fatal(errLoad)
		}
		if d.Aside != "" {
			said++
			checkNames(t, s.Root, newest(t, s.Root), filepath.Base(d.Aside))
			if d.Hash() != old.Hash() {
				t.Error("it is not the old one")
			}
		}
		if err == nil {
			break
		}
	}
	if said != 1 {
		t.Errorf("%d cuts left the data set aside, want 1", said)
	}
}

// newest returns the name of the folder that was being made.
func newest(t *testing.T, dir string) string {
	t.Helper()
	made, err := filepath.Glob(filepath.Join(dir, ".data.gfnem-new-*"))
	if err != nil || len(made) != 1 {
		t.Fatalf("%v: %v", made, err)
	}
	return filepath.Base(made[0])
}

// TestSaveSweeps leaves alone what only looks like a leftover.
func TestSaveSweeps(t *testing.T) {
	root := write(t, map[string]string{
		".data.gfnem-new-0123abcd/train.txt": "left over", ".data.gfnem-old/train.txt": "left over",
		".data.gfnem-new-0123abc/mine": "", ".data.gfnem-new-0123ABCD/mine": "", ".data.gfnem-new-/mine": "",
		".data.gfnem-new-01234567": "a file", ".other.gfnem-new-0123abcd/mine": "", ".data.gfnem-older/mine": "", ".data.tmp/mine": "",
	})
	old, new := twins(t)
	dir := filepath.Join(root, "data")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(old.Save(dir, false), new.Save(dir, true)); err != nil {
		t.Fatal(err)
	}
	checkNames(t, root, ".data.gfnem-new-", ".data.gfnem-new-01234567", ".data.gfnem-new-0123ABCD", ".data.gfnem-new-0123abc",
		".data.gfnem-older", ".data.tmp", ".other.gfnem-new-0123abcd", "data")
}

// TestSaveThroughLink replaces the folder that a link names, and the link stays.
func TestSaveThroughLink(t *testing.T) {
	old, new := twins(t)
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "links"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("links", filepath.Join(root, "more")); err != nil {
		t.Skip(err)
	}
	link := filepath.Join(root, "more", "data")
	if err := os.Symlink(filepath.Join("..", "real"), link); err != nil {
		t.Skip(err)
	}
	if err := old.Save(link, false); err != nil {
		t.Fatal(err)
	}
	if err := new.Save(link, true); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != filepath.Join("..", "real") {
		t.Errorf("the link is now %q, %v", to, err)
	}
	checkNames(t, root, "links", "more", "real")
	checkNames(t, filepath.Dir(link), "data")
	for _, dir := range []string{link, filepath.Join(root, "real")} {
		if got := found(t, dir, old, new); got != "new" {
			t.Errorf("in %s is the %s data set", dir, got)
		}
	}
	// Where the replacement was killed, the link leads nowhere.
	if err := os.Rename(filepath.Join(root, "real"), disk.Aside(filepath.Join(root, "real"))); err != nil {
		t.Fatal(err)
	}
	if d, err := Load(link); err != nil || d.Hash() != new.Hash() || d.Aside == "" {
		t.Errorf("%v", err)
	}
	if err := old.Save(link, true); err != nil || found(t, link, old, new) != "old" {
		t.Error(err)
	}
	checkNames(t, root, "links", "more", "real")
}

// slowDisk cannot exchange names.
type slowDisk struct{ disk.OS }

func (slowDisk) Exchange(string, string) error { return errors.ErrUnsupported }

// TestLoadWhileReplaced reads a data set while it is replaced all the time: each time there is one, and all of it.
func TestLoadWhileReplaced(t *testing.T) {
	old, new := twins(t)
	for name, on := range map[string]disk.Disk{"exchange": disk.OS{}, "two renames": slowDisk{}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(disktest.MemoryDir(t), "data")
			if err := old.Save(dir, false); err != nil {
				t.Fatal(err)
			}
			done, seen := make(chan struct{}), make(map[string]int)
			var readers sync.WaitGroup
			var mu sync.Mutex
			for range 2 {
				readers.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						d, err := Load(dir)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						seen[d.Hash()]++
						mu.Unlock()
					}
				})
			}
			for i := range 200 {
				if err := []*Dataset{new, old}[i%2].save(on, dir, true); err != nil {
					t.Error(err)
				}
			}
			close(done)
			readers.Wait()
			if n := seen[old.Hash()] + seen[new.Hash()]; len(seen) != 2 || n < 20 {
				t.Errorf("seen: %v", seen)
			}
		})
	}
}

// TestLoadRefusesLinks puts links, pipes and folders in the place of each file.
func TestLoadRefusesLinks(t *testing.T) {
	d := small(t)
	dir := filepath.Join(t.TempDir(), "data")
	if err := d.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		away := filepath.Join(t.TempDir(), "away")
		if err := os.Rename(path, away); err != nil {
			t.Fatal(err)
		}
		for kind, put := range map[string]func() error{
			"a symbolic link": func() error { return os.Symlink(away, path) },
			"a named pipe":    func() error { return mkfifo(path) },
			"a folder":        func() error { return os.Mkdir(path, 0o777) },
		} {
			if err := put(); errors.Is(err, errors.ErrUnsupported) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			_, err := Load(dir)
			testkit.BadInput(t, err, fmt.Sprintf(
				"%s is not a regular file (it is %s): remove it or give back what belongs there", path, kind))
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Rename(away, path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLoadFailsToRead tells an error of the disk from damage, also where Save looks at what it replaces.
func TestLoadFailsToRead(t *testing.T) {
	old, new := twins(t)
	s := disktest.New(disktest.MemoryDir(t))
	s.ReadErr = syscall.EIO
	dir := filepath.Join(s.Root, "data")
	if err := old.save(s, dir, false); err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"Load": func() error { _, err := loadFrom(s, dir); return err },
		"Save": func() error { return new.save(s, dir, true) },
	} {
		fail, ended := 0, false
		for ; !ended; fail++ {
			s.FailReadAt = s.Reads + fail
			err := do()
			if ended = err == nil; ended {
				break
			}
			var path *fs.PathError
			if !errors.Is(err, syscall.EIO) || !errors.As(err, &path) || strings.Contains(err.Error(), "damaged") {
				t.Errorf("%s, read %d failed: %v", what, fail, err)
			}
			if got := found(t, dir, old, new); got != "old" {
				t.Fatalf("%s, read %d failed: the data set is %s", what, fail, got)
			}
			checkNames(t, s.Root, "data")
		}
		s.FailReadAt = -1
		if err := old.save(s, dir, true); err != nil {
			t.Fatal(err)
		}
		if fail < 2 {
			t.Errorf("%s: only %d reads", what, fail)
		}
	}
}
