// Package input reads files that a user names.
package input

import (
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/memory"
)

// Read returns what is in a file of at most so many bytes, or in a pipe that is open already, as the shell's <(command)
// is. Anything else could be endless, or wait for ever to be opened: it is an error of badinput.
func Read(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	isOpen := strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/")
	if kind := info.Mode(); !kind.IsRegular() && !(kind.Type() == fs.ModeNamedPipe && isOpen) {
		return nil, badinput.Errorf("%s is not a file", path)
	}
	if info.Size() > most {
		return nil, tooLong(path, most)
	}
	if err := memory.Need("the file "+path, int(info.Size())); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = tooLong(path, most)
	}
	return data, err
}

func tooLong(path string, most int64) error {
	return badinput.Errorf("%s is longer than %d bytes, which is too long for what it should be", path, most)
}
