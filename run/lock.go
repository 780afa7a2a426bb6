package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/gfnem/gfnem/badinput"
)

// ErrLocked is wrapped by the error for a run that another process, or this one, is writing.
var ErrLocked = errors.New("in use")

// acquire takes the lock of a folder and writes our process id into it. The system releases it when the process
// ends, however it ends. The file stays: removing it would let two processes hold locks on two files of one name.
func acquire(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, lockName)
	lock := flock.New(path, flock.SetPermissions(0o666))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		holder := "another process" // between taking the lock and writing its id it has no name
		data, _ := os.ReadFile(path)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			holder = fmt.Sprintf("process %d", pid)
		}
		return nil, badinput.Errorf("%s is %w by %s", dir, ErrLocked, holder)
	}
	pid := strconv.Itoa(os.Getpid()) + "\n"
	if err := os.WriteFile(path, []byte(pid), 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), lock.Unlock())
	}
	return lock, nil
}
