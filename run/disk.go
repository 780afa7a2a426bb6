package run

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

// disk is every operation by which a run changes what is stored, so that a test can cut the power before any of
// them.
//
// Laws: the content of a file outlives a power cut once Sync returned; a name, made, renamed or removed, once
// SyncDir of its folder returned; and Rename is atomic.
type disk interface {
	Mkdir(path string) error
	Open(path string) (file, error) // for writing; made if missing, kept as it is if not
	Rename(from, to string) error
	RemoveAll(path string) error
	SyncDir(path string) error
}

type file interface {
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

type osDisk struct{}

var _ disk = osDisk{}

func (osDisk) Mkdir(path string) error      { return os.Mkdir(path, 0o777) }
func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) RemoveAll(path string) error  { return os.RemoveAll(path) }

func (osDisk) Open(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
}

// SyncDir does nothing where the system (Windows) or the file system has no notion of syncing a folder.
func (osDisk) SyncDir(path string) error {
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

// digest identifies the content of a file.
type digest struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func digestOf(data []byte) digest {
	sum := sha256.Sum256(data)
	return digest{Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
}

// writeFile writes a whole file and syncs its content; its name is durable only after SyncDir.
func writeFile(d disk, path string, write func(io.Writer) error) (_ digest, err error) {
	f, err := d.Open(path)
	if err != nil {
		return digest{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(0); err != nil {
		return digest{}, err
	}
	out, sum := io.NewOffsetWriter(f, 0), sha256.New()
	buf := bufio.NewWriterSize(out, 1<<16)
	if err := write(io.MultiWriter(buf, sum)); err != nil {
		return digest{}, err
	}
	if err := buf.Flush(); err != nil {
		return digest{}, err
	}
	if err := f.Sync(); err != nil {
		return digest{}, err
	}
	size, err := out.Seek(0, io.SeekCurrent)
	return digest{Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// tmpSuffix marks what was being written or removed; a leftover with it means nothing and may be deleted.
const tmpSuffix = ".tmp"

// replace puts what write makes, durable, in the place of a path: whatever happens, the path has the old or the new.
func replace(d disk, path string, write func(tmp string) error) error {
	tmp := path + tmpSuffix
	err := write(tmp)
	if err == nil {
		err = d.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, d.RemoveAll(tmp))
	}
	return d.SyncDir(filepath.Dir(path))
}

// replaceFile is replace for a file.
func replaceFile(d disk, path string, write func(io.Writer) error) error {
	return replace(d, path, func(tmp string) error {
		_, err := writeFile(d, tmp, write)
		return err
	})
}

// content writes what is in memory.
func content(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// WriteFile writes a file at any path. Whatever happens, there is either the whole file or what was there before. A
// file with the same name and .tmp is overwritten and then gone; a folder is left alone.
func WriteFile(path string, write func(io.Writer) error) error {
	if info, err := os.Lstat(path + tmpSuffix); err == nil && !info.Mode().IsRegular() {
		return badinput.Errorf("%s is in the way of writing %s: move it", path+tmpSuffix, path)
	}
	return replaceFile(osDisk{}, path, write)
}

// mkdirAll makes a folder and those above it, each durable.
func mkdirAll(d disk, dir string) error {
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
	if err := mkdirAll(d, parent); err != nil {
		return err
	}
	if err := d.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.SyncDir(parent)
}
