package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

// ErrLocked is wrapped by the error for a run that another process, or this one, is writing.
var ErrLocked = errors.New("in use")

// lockedName is the file whose lock the writer of a run holds: what makes the folder a run, so that no folder is a run
// whose locked file was deleted. Where a lock keeps readers out, or ends when its process closes any descriptor of the
// file, a file beside it is locked.
var lockedName = func() string {
	switch runtime.GOOS {
	case "windows", "aix", "solaris":
		return lockName
	}
	return infoName
}()

// acquire takes the lock of a file in a run's folder. The system releases it when the process ends, however it ends.
func acquire(d disk.Reader, dir, name string) (*flock.Flock, error) {
	path := filepath.Join(dir, name)
	if err := disk.CheckFile(d, path); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY|disk.NoFollow))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if !ok {
		return nil, badinput.Errorf("%s is %w by %s", dir, ErrLocked, holder(d, dir))
	}
	if err := checkHeld(d, lock, path); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return lock, nil
}

// checkHeld returns an error unless a path still names the file whose lock is held.
func checkHeld(d disk.Reader, lock *flock.Flock, path string) error {
	held, err := lock.Stat()
	if err != nil {
		return err
	}
	if now, err := d.Lstat(path); errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(held, now) {
		return badinput.Errorf("%s was deleted or replaced: nothing more is written, since the folder may be another run's now",
			path)
	} else if err != nil {
		return err
	}
	return nil
}

// checkOwner returns an error if the run's folder is no longer the one that is locked.
func (r *Run) checkOwner() error {
	return checkHeld(r.disk, r.lock, r.path(lockedName))
}

// writeHolder says who holds the lock, for the message to others and nothing else.
func writeHolder(d disk.Disk, dir string) error {
	if lockedName == lockName {
		return nil
	}
	pid := strconv.Itoa(os.Getpid()) + "\n"
	_, err := disk.Write(d, filepath.Join(dir, lockName), disk.Content([]byte(pid)))
	return err
}

func holder(d disk.Reader, dir string) string {
	data, _ := d.ReadFile(filepath.Join(dir, lockName))
	if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}
