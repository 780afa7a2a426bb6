package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
)

// An error of reading, at any operation of opening, loading, saving or evaluating a run, is an error with path and
// cause. It is no damage: nothing is set aside or fallen back from, and without it all goes on as if it had not been.
func TestReadErrors(t *testing.T) {
	var want map[string]string
	begin := func() (*disktest.Shadow, string) {
		s := disktest.New(disktest.MemoryDir(t))
		dir := filepath.Join(s.Root, "run")
		if _, err := trainTo(s, dir, 6); err != nil {
			t.Fatal(err)
		}
		s.Reads = 0
		return s, dir
	}
	for _, cause := range []error{syscall.EIO, syscall.EACCES, syscall.EMFILE} {
		for name, use := range map[string]func(*disktest.Shadow, string) error{
			"resume": func(s *disktest.Shadow, dir string) error { _, err := train(s, dir); return err },
			"eval": func(s *disktest.Shadow, dir string) error {
				r, err := read(s, dir)
				if err == nil {
					var skipped []string
					if _, skipped, err = r.Load(); len(skipped)+len(r.JournalNotes()) > 0 {
						err = fmt.Errorf("%q, %q, %w", skipped, r.JournalNotes(), err)
					}
				}
				return err
			},
		} {
			s, dir := begin()
			if err := use(s, dir); err != nil {
				t.Fatal(err)
			}
			reads := s.Reads
			if reads < 5 {
				t.Fatalf("%s reads %d times", name, reads)
			}
			for fail := range reads {
				s, dir := begin()
				s.FailReadAt, s.ReadErr = fail, cause
				err := use(s, dir)
				if !errors.Is(err, cause) || !strings.Contains(err.Error(), dir) || isDamage(err) ||
					strings.Contains(err.Error(), "damaged") || strings.Contains(err.Error(), "start again") {
					t.Errorf("%s, read %d: %v", name, fail, err)
				}
				if _, err := train(s, dir); err != nil {
					t.Fatalf("%s, read %d: then: %v", name, fail, err)
				}
				got, err := outcome(dir)
				if err != nil {
					t.Fatal(err)
				}
				if want == nil {
					want, _ = unkilled(t)
				}
				if d := diff(want, got); d != "" {
					t.Fatalf("%s, read %d: outcome differs (-unfailed +failed):\n%s", name, fail, d)
				}
			}
		}
	}
}

// vanishing is a disk on which another process removes a checkpoint just before it is read.
type vanishing struct {
	disk.OS
	before func(path string)
}

func (v vanishing) ReadFile(path string) ([]byte, error) {
	v.before(path)
	return v.OS.ReadFile(path)
}

// A reader that loses a checkpoint to the process that writes the run takes the newest one then, without a warning.
func TestLoadWhileAnotherPrunes(t *testing.T) {
	for i, name := range []string{manifestName, arraysName, stateFileName, manifestName, arraysName, stateFileName} {
		writer := newRun(t)
		dir := writer.Dir()
		saved := uint64(1 + 2*(i/3)) // one checkpoint at first, or three
		for step := uint64(1); step <= saved; step++ {
			if err := writer.Save(toyState(step)); err != nil {
				t.Fatal(err)
			}
		}
		last := saved + 2*(keep+1)
		r, err := read(vanishing{before: func(path string) {
			if filepath.Base(path) != name || saved >= last {
				return
			}
			// The first two times, every checkpoint that the reader has listed is gone.
			for range keep + 1 {
				saved++
				if err := errors.Join(writer.Log(saved, nil), writer.Save(toyState(saved))); err != nil {
					t.Error(err)
				}
			}
		}}, dir)
		if err != nil {
			t.Fatal(err)
		}
		s, warnings, err := r.Load()
		if err != nil || len(warnings) > 0 || s.Step != last {
			t.Errorf("%s: loaded step %d: %q, %v", name, s.Step, warnings, err)
		}
	}
}

// A file that is missing in a checkpoint which is still there is damage.
func TestMissingFileIsDamage(t *testing.T) {
	dir := filepath.Join(disktest.MemoryDir(t), "run")
	threeSaves(t, disk.OS{}, dir)
	if err := os.Remove(filepath.Join(dir, stateName, checkpointName(3), stateFileName)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := (&Run{dir: dir, disk: disk.OS{}}).readCheckpoint(3); !isDamage(err) {
		t.Errorf("reading it: %v", err)
	}
	if got := loadOnce(t, disk.OS{}, dir); len(got) != 1 || !strings.HasPrefix(got[0], "checkpoint 3 is damaged and skipped: ") {
		t.Errorf("warnings: %q", got)
	}
}
