package disk

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The names beside a folder while it is replaced, hidden and told by the folder's own name.
const (
	madeInfix  = ".gfnem-new-" // and a number: what is being made, or was replaced
	asideInfix = ".gfnem-old"  // what is replaced, where two names cannot be exchanged at once
)

func beside(dir, infix string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+infix)
}

func newMade(dir string) string {
	number := make([]byte, 4)
	rand.Read(number) // never fails
	return beside(dir, madeInfix) + hex.EncodeToString(number)
}

// Aside returns where ReplaceFolder, if it was killed, may have left the old folder, while there is none at dir.
func Aside(dir string) string { return beside(dir, asideInfix) }

// ReplaceFolder puts a folder, which write fills durably, in the place of what is at dir: a folder or nothing. Whatever
// happens, the old or the new one is at dir; only where the file system cannot exchange two names at once, a kill can
// leave the old one at Aside, from where RecoverFolder brings it back.
func ReplaceFolder(d Disk, dir string, write func(made string) error) (err error) {
	made := newMade(dir)
	if err := d.Mkdir(made); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.RemoveAll(made)) }() // by now what was replaced, or what was not finished
	if err := write(made); err != nil {
		return err
	}
	if err := errors.Join(d.SyncDir(made), d.SyncDir(filepath.Dir(dir))); err != nil {
		return err
	}
	_, err = d.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = d.Rename(made, dir)
	case err == nil:
		err = d.Exchange(made, dir)
		if errors.Is(err, errors.ErrUnsupported) {
			return exchangeSlowly(d, made, dir)
		}
	}
	if err != nil {
		return err
	}
	return d.SyncDir(filepath.Dir(dir))
}

func exchangeSlowly(d Disk, made, dir string) error {
	aside := Aside(dir)
	if err := d.Rename(dir, aside); err != nil {
		return err
	}
	if err := d.Rename(made, dir); err != nil {
		return errors.Join(err, d.Rename(aside, dir))
	}
	if err := d.SyncDir(filepath.Dir(dir)); err != nil {
		return err
	}
	return d.RemoveAll(aside)
}

// RecoverFolder brings back the old folder if a killed ReplaceFolder left none at dir.
func RecoverFolder(d Disk, dir string) error {
	if _, err := d.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := d.Rename(Aside(dir), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return d.SyncDir(filepath.Dir(dir))
}

// SweepFolder removes what killed calls of ReplaceFolder left beside dir, when RecoverFolder has been called. One that
// still runs, in another process, then ends with an error.
func SweepFolder(d Disk, dir string) error {
	parent, err := Follow(filepath.Dir(dir))
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(dir), e.Name())
		if !e.IsDir() || path != Aside(dir) && !isMade(path, dir) {
			continue
		}
		// Nobody may put a folder in its place while half of it is gone.
		gone := newMade(dir)
		if err := d.Rename(path, gone); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := d.RemoveAll(gone); err != nil {
			return err
		}
	}
	return nil
}

func isMade(path, dir string) bool {
	digits, ok := strings.CutPrefix(path, beside(dir, madeInfix))
	number, err := hex.DecodeString(digits)
	return ok && err == nil && len(number) == 4 && digits == strings.ToLower(digits)
}

// Follow returns the path that a path stands for, if it is a symbolic link, perhaps to nothing.
func Follow(path string) (string, error) {
	const most = 40 // as on Linux
	for range most {
		to, err := os.Readlink(path)
		if err != nil { // no link, or nothing
			return path, nil
		}
		if !filepath.IsAbs(to) {
			folder, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			to = filepath.Join(folder, to)
		}
		path = to
	}
	return "", &fs.PathError{Op: "follow", Path: path, Err: errors.New("too many symbolic links")}
}
