package sweep

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
)

// A connection that breaks is no fault of the worker's machine, nor of the cell; a disk that is full is.
func TestWhoseErrors(t *testing.T) {
	broken := boardError(&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)})
	full := &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	for _, c := range []struct {
		err          error
		ours, passes bool
	}{
		{broken, false, true}, {fmt.Errorf("upload: %w", broken), false, true}, {full, true, false},
		{boardError(full), true, false}, {syscall.EIO, true, false}, {errors.New("a mistake"), false, true},
	} {
		if isOurs(c.err) != c.ours || passing(c.err) != c.passes {
			t.Errorf("%v: ours %v, passes %v", c.err, isOurs(c.err), passing(c.err))
		}
	}
}
