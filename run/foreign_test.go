//go:build unix

package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
)

// use does all that commands do with a run's folder, and returns the first error of writing and of reading it.
func use(dir string) (writing, reading error) {
	r, err := Read(dir)
	if err == nil {
		_, _, err = r.Load()
	}
	reading = err
	if r, err = Open(dir); err == nil {
		_, _, err = r.Load()
		if err == nil {
			err = errors.Join(r.Log(4, nil), r.Save(toyState(4)))
		}
		err = errors.Join(err, r.Close())
	}
	return err, reading
}

// within fails the test if f hangs.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan bool)
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(40 * time.Second):
		t.Fatal("hangs")
	}
}

// A run's folder from somebody else may have links, pipes and sockets instead of files: they are neither followed nor
// waited for, and one line names them.
func TestForeignFiles(t *testing.T) {
	newest := filepath.Join(stateName, checkpointName(3))
	names := []string{lockName, metricsName, eventsName, infoName, configName, stateName, newest,
		filepath.Join(newest, manifestName), filepath.Join(newest, arraysName), filepath.Join(newest, stateFileName),
		metricsName + damagedSuffix}
	unread := []string{lockName, metricsName + damagedSuffix} // by those who only look
	for _, name := range names {
		for kind, put := range map[string]func(path, outside string) error{
			"link":  func(path, outside string) error { return os.Symlink(outside, path) },
			"loose": func(path, outside string) error { return os.Symlink(outside+"-none", path) },
			"pipe":  func(path, _ string) error { return syscall.Mkfifo(path, 0o666) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				root := disktest.MemoryDir(t)
				dir, outside := filepath.Join(root, "run"), filepath.Join(root, "outside")
				threeSaves(t, disk.OS{}, dir)
				path := filepath.Join(dir, name)
				if name == metricsName+damagedSuffix {
					writeString(t, filepath.Join(dir, metricsName), "changed")
				} else if err := os.Rename(path, outside); err != nil { // a link leads to what was there
					t.Fatal(err)
				}
				if err := put(path, outside); err != nil {
					t.Fatal(err)
				}
				before, err := outcomeOf(outside)
				if err != nil {
					t.Fatal(err)
				}
				within(t, func() {
					writing, reading := use(dir)
					for verb, err := range map[string]error{"writing": writing, "reading": reading} {
						if verb == "reading" && slices.Contains(unread, name) {
							if err != nil {
								t.Errorf("%s: %v", verb, err)
							}
							continue
						}
						if err == nil || !strings.Contains(err.Error(), path+" is not a ") || strings.Contains(err.Error(), "\n") {
							t.Errorf("%s: %v", verb, err)
						}
						if _, ok := errors.AsType[*badinput.Error](err); !ok {
							t.Errorf("%s: no bad input: %v", verb, err)
						}
					}
				})
				after, err := outcomeOf(outside)
				if err != nil {
					t.Fatal(err)
				}
				if d := diff(before, after); d != "" {
					t.Errorf("what is outside has changed: %s", d)
				}
			})
		}
	}
}

// outcomeOf is outcome for what may be a file, or not there.
func outcomeOf(path string) (map[string]string, error) {
	if info, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err == nil && !info.IsDir() {
		data, err := os.ReadFile(path)
		return map[string]string{path: string(data)}, err
	}
	return outcome(path)
}

// Where temporary files and folders go, links are removed, not followed; the run goes on.
func TestForeignTemporaries(t *testing.T) {
	root := disktest.MemoryDir(t)
	dir, outside := filepath.Join(root, "run"), filepath.Join(root, "outside")
	threeSaves(t, disk.OS{}, dir)
	if err := os.Mkdir(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	writeString(t, filepath.Join(outside, "kept"), "precious")
	for _, name := range []string{checkpointName(4) + disk.TmpSuffix, checkpointName(1) + disk.TmpSuffix} {
		if err := os.Symlink(outside, filepath.Join(dir, stateName, name)); err != nil {
			t.Fatal(err)
		}
	}
	if writing, reading := use(dir); writing != nil || reading != nil {
		t.Error(writing, reading)
	}
	if got := listDir(t, outside); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("outside there are %v", got)
	}
	want := []string{checkpointName(2), checkpointName(3), checkpointName(4)}
	if got := listDir(t, filepath.Join(dir, stateName)); !slices.Equal(got, want) {
		t.Errorf("checkpoints: %v", got)
	}
}

// A folder with links is no place for a new run either.
func TestCreateOnForeignDebris(t *testing.T) {
	for _, name := range []string{lockName, infoName + disk.TmpSuffix, configName + disk.TmpSuffix, metricsName, stateName} {
		root := disktest.MemoryDir(t)
		dir, outside := filepath.Join(root, "run"), filepath.Join(root, "outside")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		writeString(t, outside, "")
		if err := os.Symlink(outside, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := Create(dir, testOptions()); err == nil || !strings.Contains(err.Error(), "(it has "+name+")") {
			t.Errorf("%s: %v", name, err)
		}
		if got := readFile(t, outside); got != "" {
			t.Errorf("%s: outside there is %q", name, got)
		}
	}
}

// The folder itself may be reached by a link, and files may have other names elsewhere.
func TestLinkToRun(t *testing.T) {
	root := disktest.MemoryDir(t)
	dir, latest := filepath.Join(root, "run"), filepath.Join(root, "latest")
	threeSaves(t, disk.OS{}, dir)
	if err := os.Symlink("run", latest); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{infoName, configName, filepath.Join(stateName, checkpointName(3), arraysName)} {
		if err := os.Link(filepath.Join(dir, name), filepath.Join(root, filepath.Base(name))); err != nil {
			t.Fatal(err)
		}
	}
	if writing, reading := use(latest); writing != nil || reading != nil {
		t.Error(writing, reading)
	}
}

// Files are as public as the user's umask says, and no more.
func TestUmask(t *testing.T) {
	for umask, want := range map[int]os.FileMode{0o077: 0o600, 0o002: 0o664, 0o022: 0o644} {
		old := syscall.Umask(umask)
		dir := filepath.Join(disktest.MemoryDir(t), "run")
		threeSaves(t, disk.OS{}, dir)
		writeString(t, filepath.Join(dir, metricsName), "changed")
		loadOnce(t, disk.OS{}, dir)
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			if err == nil && info.Mode().Perm() != want {
				t.Errorf("umask %03o: %s has mode %03o, want %03o", umask, path, info.Mode().Perm(), want)
			}
			return err
		})
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
	}
}
