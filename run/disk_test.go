package run

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/testkit"
)

var errCut = errors.New("power cut")

// shadow is a disk that knows what a power cut would leave. Each operation is made on the real disk under root and,
// with all the versions that a sync has not yet made durable, in a model of it. Nothing is really synced.
type shadow struct {
	root   string
	tree   *inode
	ops    int // operations so far
	cutAt  int // the operation before which the power goes; -1 for never
	failAt int // the operation that finds the disk full, once; -1 for none
}

var _ disk.Disk = (*shadow)(nil)

// inode is a file or a folder. The first version is durable, the last current; a power cut leaves any of them.
type inode struct {
	data    [][]byte            // of a file
	entries []map[string]*inode // of a folder; nil for a file
}

func newShadow(root string) *shadow {
	return &shadow{root: root, tree: newFolder(), cutAt: -1, failAt: -1}
}

func newFolder() *inode { return &inode{entries: []map[string]*inode{{}}} }

func (n *inode) names() map[string]*inode { return n.entries[len(n.entries)-1] }
func (n *inode) content() []byte          { return n.data[len(n.data)-1] }

// change makes a new version of a folder.
func (n *inode) change(f func(map[string]*inode)) {
	next := maps.Clone(n.names())
	f(next)
	n.entries = append(n.entries, next)
}

// at returns the folder of a path and its last name.
func (s *shadow) at(path string) (*inode, string) {
	rel, err := filepath.Rel(s.root, path)
	if err != nil {
		panic(err)
	}
	n := s.tree
	parts := strings.Split(rel, string(filepath.Separator))
	for _, name := range parts[:len(parts)-1] {
		n = n.names()[name]
	}
	return n, parts[len(parts)-1]
}

// begin counts an operation and says whether it fails.
func (s *shadow) begin(op, path string) error {
	number := s.ops
	s.ops++
	switch {
	case s.cutAt >= 0 && number >= s.cutAt:
		return &fs.PathError{Op: op, Path: path, Err: errCut}
	case number == s.failAt:
		return &fs.PathError{Op: op, Path: path, Err: syscall.ENOSPC}
	}
	return nil
}

func (s *shadow) Mkdir(path string) error {
	if err := s.begin("mkdir", path); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o777); err != nil {
		return err
	}
	folder, name := s.at(path)
	folder.change(func(m map[string]*inode) { m[name] = newFolder() })
	return nil
}

func (s *shadow) Rename(from, to string) error {
	if err := s.begin("rename", from); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	folder, oldName := s.at(from)
	target, newName := s.at(to)
	moved := folder.names()[oldName]
	if folder != target { // of which a power cut may leave one half
		target.change(func(m map[string]*inode) { m[newName] = moved })
	}
	folder.change(func(m map[string]*inode) {
		if folder == target {
			m[newName] = moved
		}
		delete(m, oldName)
	})
	return nil
}

// RemoveAll takes one operation for each thing it removes.
func (s *shadow) RemoveAll(path string) error {
	folder, name := s.at(path)
	n, ok := folder.names()[name]
	if !ok {
		return s.begin("remove", path)
	}
	if n.entries != nil {
		for _, inner := range slices.Sorted(maps.Keys(n.names())) {
			if err := s.RemoveAll(filepath.Join(path, inner)); err != nil {
				return err
			}
		}
	}
	if err := s.begin("remove", path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	folder.change(func(m map[string]*inode) { delete(m, name) })
	return nil
}

func (s *shadow) SyncDir(path string) error {
	if err := s.begin("sync", path); err != nil {
		return err
	}
	n := s.tree
	if path != s.root {
		folder, name := s.at(path)
		n = folder.names()[name]
	}
	n.entries = n.entries[len(n.entries)-1:]
	return nil
}

func (s *shadow) Open(path string) (disk.File, error) {
	if err := s.begin("open", path); err != nil {
		return nil, err
	}
	f, err := disk.OS{}.Open(path)
	if err != nil {
		return nil, err
	}
	folder, name := s.at(path)
	n, ok := folder.names()[name]
	if !ok {
		n = &inode{data: [][]byte{{}}}
		folder.change(func(m map[string]*inode) { m[name] = n })
	}
	return &shadowFile{s, n, f, path}, nil
}

type shadowFile struct {
	disk *shadow
	node *inode
	file disk.File
	path string
}

// WriteAt has a version in which only half was written, which is also what it leaves if the disk is full.
func (f *shadowFile) WriteAt(p []byte, off int64) (int, error) {
	half := len(p) / 2
	fault := f.disk.begin("write", f.path)
	if fault != nil && !errors.Is(fault, syscall.ENOSPC) {
		return 0, fault
	}
	f.write(p[:half], off)
	if fault != nil {
		return half, fault
	}
	f.write(p, off)
	return len(p), nil
}

func (f *shadowFile) write(p []byte, off int64) {
	if _, err := f.file.WriteAt(p, off); err != nil {
		panic(err)
	}
	next := bytes.Clone(f.node.content())
	if grow := int(off) + len(p) - len(next); grow > 0 {
		next = append(next, make([]byte, grow)...)
	}
	copy(next[off:], p)
	f.node.data = append(f.node.data, next)
}

func (f *shadowFile) Truncate(size int64) error {
	if err := f.disk.begin("truncate", f.path); err != nil {
		return err
	}
	if err := f.file.Truncate(size); err != nil {
		return err
	}
	next := make([]byte, size)
	copy(next, f.node.content())
	f.node.data = append(f.node.data, next)
	return nil
}

func (f *shadowFile) Sync() error {
	if err := f.disk.begin("sync", f.path); err != nil {
		return err
	}
	f.node.data = f.node.data[len(f.node.data)-1:]
	return nil
}

// Close fails like any operation, but never leaks the real file.
func (f *shadowFile) Close() error {
	return errors.Join(f.disk.begin("close", f.path), f.file.Close())
}

// restore makes a new disk under root with what a power cut left. Of n versions of a thing, pick chooses one.
func (s *shadow) restore(root string, pick func(n int) int) (*shadow, error) {
	next := newShadow(root)
	var err error
	next.tree, err = s.tree.restore(root, pick)
	return next, err
}

func (n *inode) restore(path string, pick func(n int) int) (*inode, error) {
	if n.entries == nil {
		data := n.data[pick(len(n.data))]
		return &inode{data: [][]byte{data}}, os.WriteFile(path, data, 0o666)
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	folder := newFolder()
	left := n.entries[pick(len(n.entries))]
	for _, name := range slices.Sorted(maps.Keys(left)) {
		inner, err := left[name].restore(filepath.Join(path, name), pick)
		if err != nil {
			return nil, err
		}
		folder.entries[0][name] = inner
	}
	return folder, nil
}

func durableOnly(int) int  { return 0 }
func everything(n int) int { return n - 1 }

// The model must be able to lose things, or the tests that rely on it prove nothing.
func TestShadow(t *testing.T) {
	s := newShadow(t.TempDir())
	write := func(name string, sync, syncDir bool) {
		t.Helper()
		f, err := s.Open(filepath.Join(s.root, name))
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
			if err := s.SyncDir(s.root); err != nil {
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
		{"durable", durableOnly, map[string]string{"durable": "content", "empty": ""}},
		{"everything", everything, map[string]string{"durable": "content", "empty": "content", "nameless": "content"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := s.restore(dir, c.pick); err != nil {
				t.Fatal(err)
			}
			got := make(map[string]string)
			for _, name := range listDir(t, dir) {
				got[name] = readFile(t, filepath.Join(dir, name))
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("a power cut left %v, want %v", got, c.want)
			}
		})
	}
}

// A file is replaced by one that was written to its end, and by no other; nothing else is left beside it.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	for _, c := range []struct {
		text, want string
		fail       error
	}{{"a long text", "a long text", nil}, {"half", "a long text", errors.New("full")}, {"new", "new", nil}} {
		if err := os.WriteFile(path+disk.TmpSuffix, []byte("left over, and longer than any of the texts"), 0o666); err != nil {
			t.Fatal(err)
		}
		err := WriteFile(path, func(w io.Writer) error {
			_, err := io.WriteString(w, c.text)
			return errors.Join(err, c.fail)
		})
		if !errors.Is(err, c.fail) {
			t.Errorf("writing %q: error %v, want %v", c.text, err, c.fail)
		}
		if got := readFile(t, path); got != c.want {
			t.Errorf("after writing %q there is %q, want %q", c.text, got, c.want)
		}
		if names := listDir(t, dir); len(names) != 1 {
			t.Errorf("after writing %q there are %v", c.text, names)
		}
	}
	kept := filepath.Join(path+disk.TmpSuffix, "kept")
	if err := os.MkdirAll(kept, 0o777); err != nil {
		t.Fatal(err)
	}
	testkit.BadInput(t, WriteFile(path, func(io.Writer) error { return nil }),
		path+".tmp is in the way of writing "+path+": move it")
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the folder in the way: %v", err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "out"), func(io.Writer) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: error %v", err)
	}
}
