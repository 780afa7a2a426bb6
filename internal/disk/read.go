package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/gfnem/gfnem/badinput"
)

// Reader is every operation by which a program looks at what is stored, so that a test can fail any of them. The last
// name of a path is never followed: what is there may come from somebody else.
type Reader interface {
	ReadFile(path string) ([]byte, error)       // refuses what is no regular file
	ReadDir(path string) ([]fs.DirEntry, error) // refuses what is no folder
	Lstat(path string) (info fs.FileInfo, err error)
}

func (OS) ReadFile(path string) ([]byte, error)   { return ReadFile(path) }
func (OS) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

func (d OS) ReadDir(path string) ([]fs.DirEntry, error) {
	if err := CheckFolder(d, path); err != nil {
		return nil, err
	}
	return os.ReadDir(path)
}

// ReadFile reads a file that somebody else may have put there: a link or a pipe is refused, not followed or waited for.
func ReadFile(path string) ([]byte, error) {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// openRegular opens a file at a path that is neither a link, nor a pipe, nor a device.
func openRegular(path string, flag int) (*os.File, error) {
	if err := CheckFile(OS{}, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, flag|NoFollow, 0o666)
}

// CheckFile returns an error unless there is a regular file.
func CheckFile(d Reader, path string) error {
	return check(d, path, fs.FileMode.IsRegular, "regular file")
}

// CheckFolder returns an error unless there is a folder, not a link to one.
func CheckFolder(d Reader, path string) error { return check(d, path, fs.FileMode.IsDir, "folder") }

func check(d Reader, path string, is func(fs.FileMode) bool, want string) error {
	info, err := d.Lstat(path)
	if err == nil && !is(info.Mode()) {
		err = badinput.Errorf("%s is not a %s (it is %s): remove it or give back what belongs there", path, want,
			kind(info.Mode()))
	}
	return err
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	}
	return "of type " + m.Type().String()
}

// OpenRead opens a file to read parts of it, as ReadFile does.
func OpenRead(path string) (*os.File, error) { return openRegular(path, os.O_RDONLY) }
