// Package disktest has a disk for tests that knows what a power cut would leave.
package disktest

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gfnem/gfnem/internal/disk"
)

// ErrCut is wrapped by the errors of all operations after the power went.
var ErrCut = errors.New("power cut")

// Shadow is a disk that knows what a power cut would leave. Each operation is made on the real disk under root and,
// with all the versions that a sync has not yet made durable, in a model of it. Nothing is really synced.
type Shadow struct {
	Root   string
	Ops    int  // operations so far
	CutAt  int  // the operation before which the power goes; -1 for never
	FailAt int  // the operation that finds the disk full, once; -1 for none
	Old    bool // the file system cannot exchange names

	Reads      int // operations of reading so far, which are not counted above
	FailReadAt int // the one that fails with ReadErr, once; -1 for none
	ReadErr    error

	tree *inode
}

var _ disk.Disk = (*Shadow)(nil)

// inode is a file or a folder. The first version is durable, the last current; a power cut leaves any of them.
type inode struct {
	data    [][]byte            // of a file
	entries []map[string]*inode // of a folder; nil for a file
}

// New returns an empty disk that is a folder of the real one.
func New(root string) *Shadow {
	return &Shadow{Root: root, CutAt: -1, FailAt: -1, FailReadAt: -1, tree: newFolder()}
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
func (s *Shadow) at(path string) (*inode, string) {
	rel, err := filepath.Rel(s.Root, path)
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
func (s *Shadow) begin(op, path string) error {
	number := s.Ops
	s.Ops++
	switch {
	case s.CutAt >= 0 && number >= s.CutAt:
		return &fs.PathError{Op: op, Path: path, Err: ErrCut}
	case number == s.FailAt:
		return &fs.PathError{Op: op, Path: path, Err: syscall.ENOSPC}
	}
	return nil
}

func (s *Shadow) Mkdir(path string) error {
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

func (s *Shadow) Rename(from, to string) error {
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

func (s *Shadow) Exchange(a, b string) error {
	if s.Old {
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: errors.ErrUnsupported}
	}
	if err := s.begin("exchange", a); err != nil {
		return err
	}
	if err := (disk.OS{}).Exchange(a, b); err != nil {
		return err
	}
	folder, one := s.at(a)
	target, other := s.at(b)
	if folder != target {
		panic("exchange with another folder")
	}
	folder.change(func(m map[string]*inode) { m[one], m[other] = m[other], m[one] })
	return nil
}

// RemoveAll takes one operation for each thing it removes.
func (s *Shadow) RemoveAll(path string) error {
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

func (s *Shadow) SyncDir(path string) error {
	if err := s.begin("sync", path); err != nil {
		return err
	}
	n := s.tree
	if path != s.Root {
		folder, name := s.at(path)
		n = folder.names()[name]
	}
	n.entries = n.entries[len(n.entries)-1:]
	return nil
}

func (s *Shadow) Open(path string) (disk.File, error) {
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
	disk *Shadow
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

// Restore makes a new disk under root with what a power cut left. Of n versions of a thing, pick chooses one.
func (s *Shadow) Restore(root string, pick func(n int) int) (*Shadow, error) {
	next := New(root)
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

// DurableOnly picks what was synced, and no more.
func DurableOnly(int) int { return 0 }

// Everything picks what was done last.
func Everything(n int) int { return n - 1 }

// MemoryDir returns a folder for a test, in memory where the system has it: many small files on a disk take long.
func MemoryDir(t testing.TB) string {
	t.Helper()
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err != nil || !info.IsDir() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "disktest-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
