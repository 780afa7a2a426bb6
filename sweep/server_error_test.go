package sweep

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A connection that breaks is no fault of the worker's machine, nor of the cell; a disk that is full is, and data that
// are missing are the cell's.
func TestWhoseErrors(t *testing.T) {
	broken := boardError(&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)})
	full := &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	data := &fs.PathError{Op: "open", Path: filepath.Join("data", "corpus.txt"), Err: syscall.ENOENT}
	own := &fs.PathError{Op: "open", Path: filepath.Join("work", "worker-1", "cell-1", "run.toml"), Err: syscall.ENOENT}
	w := Worker{Dir: filepath.Join("work", "worker-1")}
	for _, c := range []struct {
		err          error
		ours, passes bool
	}{
		{broken, false, true}, {fmt.Errorf("upload: %w", broken), false, true}, {full, true, false},
		{boardError(full), true, false}, {syscall.EIO, true, false}, {errors.New("a mistake"), false, true},
		{data, false, false}, {own, true, false}, {fmt.Errorf("read: %w", own), true, false},
	} {
		if w.isOurs(c.err) != c.ours || passing(c.err) != c.passes {
			t.Errorf("%v: ours %v, passes %v", c.err, w.isOurs(c.err), passing(c.err))
		}
	}
}
