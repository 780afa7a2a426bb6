package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

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

// readOnly opens the locked file.
var readOnly = flock.SetFlag(os.O_RDONLY | disk.NoFollow)

// lockAttempts are several, since InUse holds a lock for a moment.
const lockAttempts = 5

// acquire takes the lock of a file in a run's folder. The system releases it when the process ends, however it ends.
func acquire(d disk.Reader, dir, name string) (*flock.Flock, error) {
	path := filepath.Join(dir, name)
	lock := flock.New(path, readOnly)
	ok, err := false, disk.CheckFile(d, path)
	for attempt := 0; err == nil && !ok && attempt < lockAttempts; attempt++ {
		if attempt > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		ok, err = lock.TryLock()
	}
	if ok {
		if ok, err = holds(d, lock, path); !ok {
			err = errors.Join(err, release(lock))
		}
	}
	switch {
	case ok:
		return lock, nil
	case err == nil || errors.Is(err, fs.ErrNotExist): // what was there a moment ago was replaced or renamed
		return nil, badinput.Errorf("%s is %w by %s", dir, ErrLocked, holder(d, dir))
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// release gives a lock back.
func release(lock *flock.Flock) error {
	if err := lock.Unlock(); err != nil {
		return fmt.Errorf("unlock %s: %w", lock.Path(), err)
	}
	return nil
}

// holds reports whether a path still names the file whose lock is held.
func holds(d disk.Reader, lock *flock.Flock, path string) (bool, error) {
	held, err := lock.Stat()
	if err != nil {
		return false, err
	}
	now, err := d.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(held, now), err
}

// checkOwner returns an error if the run's folder is no longer the one that is locked.
func (r *Run) checkOwner() error {
	path := r.path(lockedName)
	ok, err := holds(r.disk, r.lock, path)
	if err == nil && !ok {
		err = badinput.Errorf("%s was deleted or replaced: nothing more is written, since the folder may be another "+
			"run's now", path)
	}
	return err
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
