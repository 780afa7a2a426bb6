package run

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/internal/testkit"
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
	unpacked := filepath.Join(g.Grid.Dir, "row", "7")
	if err := Unpack(&packed, unpacked); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{nil, {"index.html", filepath.Join("state", "000000000003")}} {
		if got, err := Unpacked(unpacked); err != nil || !slices.Equal(got, want) {
			t.Errorf("beside what was packed there is %q, want %q; %v", got, want, err)
		}
		writeString(t, filepath.Join(unpacked, "index.html"), "")
		if err := os.MkdirAll(filepath.Join(unpacked, "state", "000000000003"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(unpacked, "state", "000000000003")); err != nil {
		t.Fatal(err)
	}
	if warnings, measured := g.run(); warnings != "" || measured {
		t.Errorf("the cell is not finished where it was unpacked: %s", warnings)
	}
}

// A run.json that names files outside of what a run keeps, as somebody else may send one, has none of them packed.
func TestPackOutside(t *testing.T) {
	for _, name := range []string{"../secret", "data/../../secret", "data/..", `data/..\..\secret`, "state/secret"} {
		dir := filepath.Join(disktest.MemoryDir(t), "run")
		r, err := Create(dir, testOptions())
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"secret", "../secret", "state/secret"} {
			writeString(t, filepath.Join(dir, filepath.FromSlash(path)), "of this machine")
		}
		info, err := readInfo(disk.OS{}, dir)
		if err != nil {
			t.Fatal(err)
		}
		info.Files = map[string]disk.Digest{name: {}}
		sealed, err := disk.Seal(&info, &info.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		writeString(t, filepath.Join(dir, infoName), string(sealed))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err = Open(dir); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Load(); !errors.Is(err, ErrNoCheckpoint) {
			t.Fatal(err)
		}
		if err := errors.Join(r.Save(toyState(1)), r.Close()); err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		_, err = Pack(dir, &packed)
		testkit.BadInput(t, err, fmt.Sprintf("pack run: %s names %q, which is no file that a run keeps", filepath.Join(dir, infoName), name))
		if strings.Contains(packed.String(), "of this machine") {
			t.Errorf("%q is packed", name)
		}
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
		if err := Unpack(&packed, filepath.Join(parent, "dir")); !errors.Is(err, ErrUnpack) {
			t.Errorf("%q was unpacked: %v", h.Name, err)
		}
		if entries, _ := os.ReadDir(parent); len(entries) != 1 {
			t.Errorf("%q: beside the folder lies something", h.Name)
		}
	}
	for name, names := range map[string][]string{
		"twice": {"a", "a"}, "below a file": {"a", "a/b"}, "a folder": {"a/b", "a"}, "too long": {strings.Repeat("a", 5000)},
	} {
		var packed bytes.Buffer
		out := tar.NewWriter(&packed)
		for _, name := range names {
			if err := AddFile(out, name, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := Unpack(&packed, filepath.Join(t.TempDir(), "dir")); !errors.Is(err, ErrUnpack) || errors.As(err, new(*fs.PathError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Unpack(strings.NewReader("no tar file"), filepath.Join(t.TempDir(), "dir")); !errors.Is(err, ErrUnpack) {
		t.Errorf("text was unpacked: %v", err)
	}
	if err := Unpack(bytes.NewReader(sparse(t)), filepath.Join(t.TempDir(), "dir")); !errors.Is(err, ErrUnpack) {
		t.Errorf("a file with a hole was unpacked: %v", err)
	}
}

// sparse is a tar file of 3 kB with a file of 1 MiB, which is a hole.
func sparse(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	out := tar.NewWriter(&packed)
	content := make([]byte, 512) // says where there is data
	copy(content, "1\n1048576\n0\n")
	err := out.WriteHeader(&tar.Header{Name: "hole", Mode: 0o644, Size: 512, Format: tar.FormatPAX, PAXRecords: map[string]string{
		"XNU.sparse.major": "1", "XNU.sparse.minor": "0", "XNU.sparse.name": "hole", "XNU.sparse.realsize": "1048576",
	}})
	if err == nil {
		_, err = out.Write(content)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	data := bytes.ReplaceAll(packed.Bytes(), []byte("XNU."), []byte("GNU.")) // which a tar.Writer refuses to write
	if h, err := tar.NewReader(bytes.NewReader(data)).Next(); err != nil || h.Size != 1<<20 {
		t.Fatalf("the tar file has no hole: %v, %v", h, err)
	}
	return data
}
