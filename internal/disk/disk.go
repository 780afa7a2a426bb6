// Package disk writes files so that a kill or a power cut leaves the old or the new one, and tells files that are whole
// from files that are damaged.
package disk

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/gfnem/gfnem/badinput"
)

// Disk is every operation by which a program changes what is stored, so that a test can cut the power before any of
// them, and by which it looks at that.
//
// Laws: the content of a file outlives a power cut once Sync returned; a name, made, renamed or removed, once
// SyncDir of its folder returned; and Rename and Exchange are atomic.
type Disk interface {
	Reader
	Mkdir(path string) error
	Open(path string) (File, error) // for writing; made if missing, kept as it is if not
	Rename(from, to string) error
	Exchange(a, b string) error // the names of two folders; errors.ErrUnsupported where the file system cannot
	RemoveAll(path string) error
	SyncDir(path string) error
}

// File is a file that is open for writing.
type File interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// OS is the disk of the system.
type OS struct{}

var _ Disk = OS{}

func (OS) Mkdir(path string) error      { return os.Mkdir(path, 0o777) }
func (OS) Rename(from, to string) error { return os.Rename(from, to) }
func (OS) RemoveAll(path string) error  { return os.RemoveAll(path) }

func (OS) Open(path string) (File, error) {
	f, err := openRegular(path, os.O_WRONLY|os.O_CREATE)
	if err != nil { // not a File that holds a nil pointer
		return nil, err
	}
	return f, nil
}

// Unsynced is the disk of the system for what need not outlive a power cut, since it is handed on when it is whole.
type Unsynced struct{ OS }

// SyncDir does nothing.
func (Unsynced) SyncDir(string) error { return nil }

// Open opens a file whose Sync does nothing.
func (u Unsynced) Open(path string) (File, error) {
	f, err := u.OS.Open(path)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

type unsyncedFile struct{ File }

func (unsyncedFile) Sync() error { return nil }

// SyncDir does nothing where the system (Windows) or the file system has no notion of syncing a folder.
func (OS) SyncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Digest identifies the content of a file.
type Digest struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// DigestOf hashes what is in memory.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest{Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
}

// Write writes a whole file and syncs its content; its name is durable only after SyncDir.
func Write(d Disk, path string, write func(io.Writer) error) (_ Digest, err error) {
	f, err := d.Open(path)
	if err != nil {
		return Digest{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(0); err != nil {
		return Digest{}, err
	}
	out, sum := io.NewOffsetWriter(f, 0), sha256.New()
	buf := bufio.NewWriterSize(out, 1<<16)
	if err := write(io.MultiWriter(buf, sum)); err != nil {
		return Digest{}, err
	}
	if err := buf.Flush(); err != nil {
		return Digest{}, err
	}
	if err := f.Sync(); err != nil {
		return Digest{}, err
	}
	size, err := out.Seek(0, io.SeekCurrent)
	return Digest{Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// TmpSuffix marks what was being written or removed; a leftover with it means nothing and may be deleted.
const TmpSuffix = ".tmp"

// Replace puts what write makes, durable, in the place of a path: whatever happens, the path has the old or the new.
func Replace(d Disk, path string, write func(tmp string) error) error {
	tmp := path + TmpSuffix
	err := write(tmp)
	if err == nil {
		err = d.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, d.RemoveAll(tmp))
	}
	return d.SyncDir(filepath.Dir(path))
}

// ReplaceFile is Replace for a file.
func ReplaceFile(d Disk, path string, write func(io.Writer) error) error {
	return Replace(d, path, func(tmp string) error {
		_, err := Write(d, tmp, write)
		return err
	})
}

// Content writes what is in memory.
func Content(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// WriteFile writes a file at any path. Whatever happens, there is either the whole file or what was there before. A
// file with the same name and .tmp is overwritten and then gone; a folder is left alone.
func WriteFile(path string, write func(io.Writer) error) error {
	if info, err := os.Lstat(path + TmpSuffix); err == nil && !info.Mode().IsRegular() {
		return badinput.Errorf("%s is in the way of writing %s: move it", path+TmpSuffix, path)
	}
	return ReplaceFile(OS{}, path, write)
}

// MkdirAll makes a folder and those above it, each durable.
func MkdirAll(d Disk, dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(dir)
	if err := MkdirAll(d, parent); err != nil {
		return err
	}
	if err := d.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.SyncDir(parent)
}
