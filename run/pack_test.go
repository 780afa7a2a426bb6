package run

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is packed of a cell is that cell, to whoever unpacks it.
func TestPack(t *testing.T) {
	g := newCountGrid(t)
	var packed, again bytes.Buffer
	step, err := Pack(g.dir, &packed)
	if err != nil || step != 10 {
		t.Fatalf("step %d, %v", step, err)
	}
	if _, err := Pack(g.dir, &again); err != nil || !bytes.Equal(packed.Bytes(), again.Bytes()) {
		t.Errorf("packing twice gives different bytes: %v", err)
	}
	g.Grid.Dir = t.TempDir()
	if err := Unpack(&packed, filepath.Join(g.Grid.Dir, "row", "7")); err != nil {
		t.Fatal(err)
	}
	if warnings, measured := g.run(); warnings != "" || measured {
		t.Errorf("the cell is not finished where it was unpacked: %s", warnings)
	}
}

// What was logged after the newest checkpoint is not packed: whoever goes on from there logs it again.
func TestPackCutsJournals(t *testing.T) {
	g := newCountGrid(t)
	path := filepath.Join(g.dir, metricsName)
	want := readFile(t, path)
	writeString(t, path, want+"{\"step\":11}\n")
	var packed bytes.Buffer
	if _, err := Pack(g.dir, &packed); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	if err := Unpack(&packed, dir); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, filepath.Join(dir, metricsName)); got != want {
		t.Errorf("metrics are %q, want %q", got, want)
	}
	writeString(t, path, want[:len(want)-2])
	if _, err := Pack(g.dir, &packed); err == nil || !strings.Contains(err.Error(), metricsName) {
		t.Errorf("metrics that are cut are packed: %v", err)
	}
	if _, err := Pack(t.TempDir(), &packed); !errors.Is(err, ErrNotRun) {
		t.Errorf("no run: %v", err)
	}
}

// A tar file from somebody else writes nothing outside of the folder, and no links.
func TestUnpackRefuses(t *testing.T) {
	for _, h := range []tar.Header{
		{Name: "../outside", Typeflag: tar.TypeReg}, {Name: "/outside", Typeflag: tar.TypeReg},
		{Name: "a/../../outside", Typeflag: tar.TypeReg}, {Name: "link", Typeflag: tar.TypeSymlink, Linkname: ".."},
		{Name: `a\outside`, Typeflag: tar.TypeReg}, {Name: "pipe", Typeflag: tar.TypeFifo},
	} {
		var packed bytes.Buffer
		out := tar.NewWriter(&packed)
		if err := errors.Join(out.WriteHeader(&h), out.Close()); err != nil {
			t.Fatal(err)
		}
		parent := t.TempDir()
		if err := Unpack(&packed, filepath.Join(parent, "dir")); err == nil {
			t.Errorf("%q was unpacked", h.Name)
		}
		if entries, _ := os.ReadDir(parent); len(entries) != 1 {
			t.Errorf("%q: beside the folder lies something", h.Name)
		}
	}
	if err := Unpack(strings.NewReader("no tar file"), filepath.Join(t.TempDir(), "dir")); err == nil {
		t.Error("text was unpacked")
	}
}
