package disk

import (
	"errors"
	"io"
	"os"

	"github.com/gfnem/gfnem/badinput"
)

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
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, badinput.Errorf("%s is not a regular file (it is %s): remove it or give back the file that belongs there",
			path, kind(info.Mode()))
	}
	return os.OpenFile(path, flag|noFollow, 0o666)
}

func kind(m os.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&os.ModeSymlink != 0:
		return "a symbolic link"
	case m&os.ModeNamedPipe != 0:
		return "a named pipe"
	}
	return "of type " + m.Type().String()
}
