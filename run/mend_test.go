package run

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
)

// threeSaves makes a run on a disk with checkpoints at steps 1, 2 and 3, and closes it.
func threeSaves(t *testing.T, d disk.Disk, dir string) {
	t.Helper()
	r, err := create(d, dir, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	for step := uint64(1); step <= 3; step++ {
		if err := errors.Join(r.Log(step, map[string]float64{"a": float64(step)}), r.Save(toyState(step))); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// overwrite changes a file on a disk, durably.
func overwrite(t *testing.T, d disk.Disk, path, text string) {
	t.Helper()
	f, err := d.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(text), 0)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// loadOnce opens a run, loads and closes it, and returns the warnings without the folder's name.
func loadOnce(t *testing.T, d disk.Disk, dir string) []string {
	t.Helper()
	r, err := open(d, dir)
	if err != nil {
		t.Fatal(err)
	}
	_, skipped, err := r.Load()
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return nameless(append(skipped, r.JournalNotes()...), dir)
}

func nameless(lines []string, dir string) (out []string) {
	for _, line := range lines {
		out = append(out, strings.ReplaceAll(line, dir, "RUN"))
	}
	return out
}

// checkAgreement checks that all checkpoints agree with the journals, content and all.
func checkAgreement(t *testing.T, dir string) {
	t.Helper()
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := r.checkpoints()
	if err != nil || len(steps) == 0 {
		t.Fatal(steps, err)
	}
	for _, step := range steps {
		_, m, err := r.readCheckpoint(step)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := r.contradictions(m)
		if err != nil || len(lines) > 0 {
			t.Errorf("checkpoint %d: %q, %v", step, lines, err)
		}
	}
}

const (
	line1   = "{\"step\":1,\"a\":1}\n"
	line2   = "{\"step\":2,\"a\":2}\n"
	line3   = "{\"step\":3,\"a\":3}\n"
	later   = "{\"step\":4,\"a\":4}\n{\"st"
	missing = "(missing)"
)

var journalDamages = map[string]struct{ now, kept, aside, warning string }{
	"deleted": {missing, "", missing,
		"is missing since checkpoint 3 was saved: its first 0 bytes are kept, what was logged after them is lost"},
	"emptied": {"", "", missing, "has 0 bytes instead of 51"},
	"short":   {line1 + line2 + "{", line1 + line2, "{", "has 35 bytes instead of 51"},
	"at the end": {line1 + line2 + strings.Replace(line3, "3}", "4}", 1) + later, line1 + line2,
		strings.Replace(line3, "3}", "4}", 1) + later, "was changed in its first 51 bytes"},
	"in the middle": {line1 + strings.ToUpper(line2) + line3, line1, strings.ToUpper(line2) + line3, "was changed in"},
	"at the start":  {" " + line1 + line2 + line3, "", " " + line1 + line2 + line3, "was changed in"},
	"grown":         {line1 + line2 + line3 + later, line1 + line2 + line3, missing, ""},
}

// A journal that contradicts the checkpoint is brought in step with it once, with a line that says what was lost, and
// nothing is thrown away.
func TestLoadMendsJournals(t *testing.T) {
	for name, c := range journalDamages {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(disktest.MemoryDir(t), "run")
			threeSaves(t, disk.OS{}, dir)
			path := filepath.Join(dir, metricsName)
			if c.now == missing {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				writeString(t, path, c.now)
			}
			before, err := outcome(dir)
			if err != nil {
				t.Fatal(err)
			}
			reader, err := Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			s, skipped, err := reader.Load()
			if err != nil || s.Step != 3 || len(skipped) > 0 || (len(reader.JournalNotes()) > 0) != (c.warning != "") {
				t.Errorf("a reader loaded step %d: %q, %q, %v", s.Step, skipped, reader.JournalNotes(), err)
			}
			after, err := outcome(dir)
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(before, after); d != "" {
				t.Errorf("a reader changed the run: %s", d)
			}
			warnings := loadOnce(t, disk.OS{}, dir)
			if c.warning == "" {
				if len(warnings) > 0 {
					t.Errorf("warnings: %q", warnings)
				}
			} else if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "RUN/metrics.jsonl "+c.warning) {
				t.Errorf("warnings: %q", warnings)
			}
			if got := readFile(t, path); got != c.kept {
				t.Errorf("kept %q, want %q", got, c.kept)
			}
			if c.aside == missing {
				if _, err := os.Lstat(path + damagedSuffix); err == nil {
					t.Error("set something aside")
				}
			} else if got := readFile(t, path+damagedSuffix); got != c.aside {
				t.Errorf("set aside %q, want %q", got, c.aside)
			}
			checkAgreement(t, dir)
			if warnings := loadOnce(t, disk.OS{}, dir); len(warnings) > 0 {
				t.Errorf("the second time: %q", warnings)
			}
			if _, err := train(disk.OS{}, dir); err != nil {
				t.Errorf("going on: %v", err)
			}
			checkAgreement(t, dir)
			points, err := ReadMetrics(dir)
			if err != nil || len(points) != strings.Count(c.kept, "\n")+lastStep-3 {
				t.Errorf("in the end, %d metrics: %v", len(points), err)
			}
		})
	}
}

// Events are no worse off, and what was set aside before stays.
func TestLoadMendsEvents(t *testing.T) {
	dir := filepath.Join(disktest.MemoryDir(t), "run")
	threeSaves(t, disk.OS{}, dir)
	path := filepath.Join(dir, eventsName)
	damage := func(text string) {
		t.Helper()
		writeString(t, path, text)
		if got := loadOnce(t, disk.OS{}, dir); len(got) != 1 || !strings.Contains(got[0], "RUN/"+eventsName) {
			t.Errorf("warnings: %q", got)
		}
	}
	damage(strings.Replace(readFile(t, path), "brain", "Brain", 1))
	if _, err := train(disk.OS{}, dir); err != nil {
		t.Fatal(err)
	}
	damage("other")
	if got := readFile(t, path+damagedSuffix+".2"); got != "other" {
		t.Errorf("set aside %q", got)
	}
	if got := readFile(t, path+damagedSuffix); !strings.Contains(got, "Brain.Event") {
		t.Errorf("what was set aside first is %q", got)
	}
	if got := readFile(t, filepath.Join(dir, metricsName)); strings.Count(got, "\n") != lastStep {
		t.Errorf("metrics: %q", got)
	}
	checkAgreement(t, dir)
}

// A power cut or a full disk while journals are mended, at any operation, changes nothing of what comes out in the end.
func TestPowerCutWhileMending(t *testing.T) {
	for name, c := range journalDamages {
		// begin makes a run whose journals are both damaged, each in its way.
		begin := func() (*disktest.Shadow, string) {
			s := disktest.New(disktest.MemoryDir(t))
			dir := filepath.Join(s.Root, "run")
			threeSaves(t, s, dir)
			overwrite(t, s, filepath.Join(dir, eventsName), "no events")
			path := filepath.Join(dir, metricsName)
			if c.now == missing {
				if err := errors.Join(s.RemoveAll(path), s.SyncDir(dir)); err != nil {
					t.Fatal(err)
				}
			} else {
				overwrite(t, s, path, c.now)
			}
			return s, dir
		}
		s, dir := begin()
		from := s.Ops
		loadOnce(t, s, dir)
		ops := s.Ops - from
		if _, err := train(s, dir); err != nil {
			t.Fatal(err)
		}
		want, err := outcome(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := want["/"+eventsName+damagedSuffix]; !ok {
			t.Fatalf("%s: nothing was set aside: %v", name, slices.Sorted(maps.Keys(want)))
		}
		load := func(s *disktest.Shadow, dir string) error {
			r, err := open(s, dir)
			if err == nil {
				_, _, err = r.Load()
				err = errors.Join(err, r.Close())
			}
			return err
		}
		finish := func(s *disktest.Shadow, what string, cut int) {
			t.Helper()
			dir := filepath.Join(s.Root, "run")
			loadOnce(t, s, dir)
			checkAgreement(t, dir)
			if got := loadOnce(t, s, dir); len(got) > 0 {
				t.Fatalf("%s, %s at %d: the second time: %q", name, what, cut, got)
			}
			if _, err := train(s, dir); err != nil {
				t.Fatalf("%s, %s at %d: %v", name, what, cut, err)
			}
			got, err := outcome(dir)
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(want, got); d != "" {
				t.Fatalf("%s, %s at %d: outcome differs (-undisturbed +disturbed):\n%s", name, what, cut, d)
			}
		}
		for cut := range ops {
			s, dir := begin()
			s.FailAt = s.Ops + cut
			if err := load(s, dir); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s, full disk at %d: %v", name, cut, err)
			}
			finish(s, "full disk", cut)
			s, dir = begin()
			s.CutAt = s.Ops + cut
			if err := load(s, dir); !errors.Is(err, disktest.ErrCut) {
				t.Fatalf("%s, cut at %d: %v", name, cut, err)
			}
			for left, pick := range map[string]func(int) int{"old": disktest.DurableOnly, "new": disktest.Everything} {
				after, err := s.Restore(filepath.Join(disktest.MemoryDir(t), "after"), pick)
				if err != nil {
					t.Fatal(err)
				}
				finish(after, "cut with all "+left+" left", cut)
			}
		}
	}
}

// Two checkpoints are vouched for by their own hashes: one that did not verify vouches for nothing.
func TestMendIgnoresDamagedCheckpoints(t *testing.T) {
	dir := filepath.Join(disktest.MemoryDir(t), "run")
	threeSaves(t, disk.OS{}, dir)
	writeString(t, filepath.Join(dir, stateName, checkpointName(2), arraysName), "")
	writeString(t, filepath.Join(dir, metricsName), line1+line2+strings.ToUpper(line3))
	if got := loadOnce(t, disk.OS{}, dir); len(got) != 1 {
		t.Errorf("warnings: %q", got)
	}
	if got := readFile(t, filepath.Join(dir, metricsName)); got != line1 {
		t.Errorf("kept %q", got)
	}
	if got := readFile(t, filepath.Join(dir, metricsName+damagedSuffix)); got != line2+strings.ToUpper(line3) {
		t.Errorf("set aside %q", got)
	}
	if got := fmt.Sprint(listDir(t, filepath.Join(dir, stateName))); !strings.Contains(got, checkpointName(2)) {
		t.Errorf("an older damaged checkpoint is gone: %s", got)
	}
}
