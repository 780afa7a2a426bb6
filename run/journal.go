package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/gfnem/gfnem/internal/disk"
)

// journal is a file that grows by whole records. A record that could not be written whole is cut off again, and the
// next one takes its place.
type journal struct {
	file   disk.File
	path   string
	size   int64 // of the whole records
	broken error // a failed sync: what the disk holds is unknown from then on
}

// openJournal opens a journal cut down to its first size bytes.
func openJournal(d disk.Disk, path string, size int64) (*journal, error) {
	f, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &journal{file: f, path: path, size: size}, nil
}

func (j *journal) append(record []byte) error {
	if j.broken != nil {
		return j.broken
	}
	if _, err := j.file.WriteAt(record, j.size); err != nil {
		return errors.Join(err, j.file.Truncate(j.size))
	}
	j.size += int64(len(record))
	return nil
}

func (j *journal) sync() error {
	if j.broken == nil {
		j.broken = j.file.Sync()
	}
	return j.broken
}

func (j *journal) close() error {
	return errors.Join(j.sync(), j.file.Close())
}

// checkJournal reports whether a journal still holds the first size bytes that a checkpoint counts on. One that was
// deleted is begun anew, from byte 0, with a warning.
func checkJournal(path string, size int64) (from int64, warning string, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && size > 0:
		return 0, fmt.Sprintf("%s is missing and begins anew", path), nil
	case errors.Is(err, fs.ErrNotExist):
		return 0, "", nil
	case err != nil:
		return 0, "", err
	case info.Size() < size:
		return 0, "", fmt.Errorf("%s has %d bytes, but the checkpoint was saved after %d: restore it, or delete it to begin it anew",
			path, info.Size(), size)
	}
	return size, "", nil
}
