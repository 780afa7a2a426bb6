package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/internal/testkit"
)

// format1 copies a run that a program of format 1 has written: four steps, with checkpoints at 2 and 4.
func format1(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(disktest.MemoryDir(t), "run")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "format1"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// seal writes the manifest of a checkpoint as it is.
func seal(t *testing.T, dir string, v any, sum *string) {
	t.Helper()
	sealed, err := disk.Seal(v, sum)
	if err != nil {
		t.Fatal(err)
	}
	writeString(t, filepath.Join(dir, manifestName), string(sealed))
}

// A run of format 1 is read, and continues; what it is saved to then has the format of today.
func TestFormat1(t *testing.T) {
	dir := format1(t)
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.Info().Task != "mixture" || r.Info().Seed != 7 || r.Info().Format != 1 {
		t.Errorf("provenance is %+v", r.Info())
	}
	s, warnings, err := r.Load()
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	if d := diff(toyState(4), s); d != "" {
		t.Error(d)
	}
	if _, err := train(disk.OS{}, dir); err != nil {
		t.Fatal(err)
	}
	points, err := ReadMetrics(dir)
	if err != nil || len(points) != lastStep {
		t.Errorf("%d metrics in the end: %v", len(points), err)
	}
	if text := readFile(t, filepath.Join(dir, stateName, checkpointName(lastStep), manifestName)); !strings.HasPrefix(text,
		"{\n  \"format\": 2,\n") {
		t.Errorf("the manifest begins with %.40q", text)
	}
	if s, _, err := r.Load(); err != nil || diff(toyState(lastStep), s) != "" {
		t.Errorf("loaded step %d: %v", s.Step, err)
	}
}

// A checkpoint of format 1 vouches for the size of journals: a file that is too short is mended, and then hashed.
func TestMendFormat1(t *testing.T) {
	dir := format1(t)
	path := filepath.Join(dir, metricsName)
	writeString(t, path, readFile(t, path)[:40])
	if got := loadOnce(t, disk.OS{}, dir); len(got) != 1 || !strings.Contains(got[0], "has 40 bytes instead of 68") {
		t.Errorf("warnings: %q", got)
	}
	if got := readFile(t, path); len(got) != 34 {
		t.Errorf("kept %q", got)
	}
	_, m, err := (&Run{dir: dir, disk: disk.OS{}}).readCheckpoint(4)
	if err != nil || m.Format != formatVersion || m.Journals[metricsName].SHA256 == "" {
		t.Errorf("the manifest is %+v: %v", m, err)
	}
	if got := loadOnce(t, disk.OS{}, dir); len(got) > 0 {
		t.Errorf("the second time: %q", got)
	}
}

// A checkpoint that a newer program wrote is no damage: it is neither skipped nor set aside.
func TestNewerCheckpoint(t *testing.T) {
	dir := filepath.Join(disktest.MemoryDir(t), "run")
	threeSaves(t, disk.OS{}, dir)
	newest := filepath.Join(dir, stateName, checkpointName(3))
	v := struct {
		Format int      `json:"format"`
		Files  []string `json:"files"`
		SHA256 string   `json:"sha256"`
	}{Format: 3}
	seal(t, newest, &v, &v.SHA256)
	before, err := outcome(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 {
		_, _, err = r.Load()
		testkit.BadInput(t, errors.Unwrap(err), filepath.Join(newest, manifestName)+
			" was written by a newer version of the program: it has format 3, this one reads up to 2")
		if !errors.Is(err, ErrNewer) {
			t.Error("not ErrNewer")
		}
	}
	if _, err := r.saved(3); !errors.Is(err, ErrNewer) {
		t.Errorf("saving over it: %v", err)
	}
	after, err := outcome(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(before, after); d != "" {
		t.Errorf("Load changed the run: %s", d)
	}
	// The number alone is no proof.
	path := filepath.Join(newest, manifestName)
	writeString(t, path, strings.Replace(readFile(t, path), `"format": 3`, `"format": 4`, 1))
	if s, warnings, err := r.Load(); err != nil || s.Step != 2 || len(warnings) != 1 {
		t.Errorf("loaded step %d: %q, %v", s.Step, warnings, err)
	}
}

// run.json is hashed: whatever is changed in it, no command prints it.
func TestInfoIsSealed(t *testing.T) {
	dir := filepath.Join(disktest.MemoryDir(t), "run")
	threeSaves(t, disk.OS{}, dir)
	path := filepath.Join(dir, infoName)
	good := readFile(t, path)
	writeString(t, path, strings.Replace(good, `"seed": 7`, `"seed": 8`, 1))
	_, err := Read(dir)
	testkit.BadInput(t, err, path+" is damaged or was edited (does not match its own hash): undo the edit, even a harmless "+
		"one, restore the file from a copy, or start again in another folder")
	_, err = Open(dir)
	testkit.BadInput(t, err, path+" is damaged or was edited (does not match its own hash): undo the edit, even a harmless "+
		"one, restore the file from a copy, or start again in another folder")
	writeString(t, path, strings.Replace(good, `"format": 2`, `"format": 1`, 1))
	_, err = Read(dir)
	testkit.BadInput(t, err, path+" is damaged or was edited (format 1 has no hash): undo the edit, even a harmless one, "+
		"restore the file from a copy, or start again in another folder")
	for i := range good {
		for _, bit := range []int{i % 8, (i + 3) % 8} {
			bad := []byte(good)
			bad[i] ^= 1 << bit
			writeString(t, path, string(bad))
			if _, err := Read(dir); err == nil {
				t.Errorf("read with bit %d of byte %d changed", bit, i)
			}
		}
	}
	writeString(t, path, good)
	if _, err := Read(dir); err != nil {
		t.Error(err)
	}
}
