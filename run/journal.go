package run

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"

	"github.com/gfnem/gfnem/internal/disk"
)

// journal is a file that grows by whole records. A record that could not be written whole is cut off again, and the
// next one takes its place.
type journal struct {
	file   disk.File
	path   string
	size   int64     // of the whole records
	sum    hash.Hash // of the same
	broken error     // a failed sync: what the disk holds is unknown from then on
}

// openJournal opens a journal cut down to its first bytes, which are given.
func openJournal(d disk.Disk, path string, kept []byte) (*journal, error) {
	f, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(int64(len(kept))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	sum := sha256.New()
	sum.Write(kept)
	return &journal{file: f, path: path, size: int64(len(kept)), sum: sum}, nil
}

// digest identifies the whole records.
func (j *journal) digest() disk.Digest {
	return disk.Digest{Size: j.size, SHA256: hex.EncodeToString(j.sum.Sum(nil))}
}

func (j *journal) append(record []byte) error {
	if j.broken != nil {
		return j.broken
	}
	if _, err := j.file.WriteAt(record, j.size); err != nil {
		return errors.Join(err, j.file.Truncate(j.size))
	}
	j.size += int64(len(record))
	j.sum.Write(record)
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

// readJournal reads a journal; nil means that it is missing.
func readJournal(d disk.Reader, path string) ([]byte, error) {
	data, err := d.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// journalFault says in what a journal contradicts what a manifest has of it; "" if in nothing. What was logged later is
// no contradiction.
func journalFault(data []byte, want disk.Digest) string {
	switch n := int64(len(data)); {
	case data == nil && want.Size > 0:
		return "is missing"
	case n < want.Size:
		return fmt.Sprintf("has %d bytes instead of %d", n, want.Size)
	case want.SHA256 != "" && disk.DigestOf(data[:want.Size]) != want:
		return fmt.Sprintf("was changed in its first %d bytes", want.Size)
	}
	return ""
}
