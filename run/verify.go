package run

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

// Status says how something is.
type Status string

// The statuses of findings.
const (
	Intact  Status = "ok"
	Note    Status = "note"    // worth knowing; nothing is wrong
	Damaged Status = "damaged" // it contradicts a hash, or what belongs there is missing
	Unread  Status = "unread"  // it could not be read, which says nothing of its content
)

// Finding is what Verify says of a file or a folder.
type Finding struct {
	Status Status `json:"status"`
	Path   string `json:"path"`
	Text   string `json:"text"`
}

// Failure is the finding of a path that an error is about: it is damaged, unless the system or the age of this program
// keeps it from being read.
func Failure(path string, err error) Finding {
	status := Damaged
	_, system := errors.AsType[*fs.PathError](err)
	if !isDamage(err) && (system && !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNewer)) {
		status = Unread
	}
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, path); ok { // which is said already
		text = strings.TrimLeft(rest, `: /\`)
	}
	return Finding{status, path, text}
}

// verifyDepth is how deep runs may lie below a folder: a folder of grids, a grid, a row, a cell.
const verifyDepth = 3

// Verify looks at everything in the folder of a run, a grid, or several of them, and says what it finds: whether every
// file that has a hash matches it, every checkpoint is intact and finite, and journals, results and reports agree with
// the checkpoints. It writes nothing and takes no lock, so that a run may be written meanwhile. If there is no run its
// error wraps ErrNotRun.
func Verify(dir string, say func(Finding)) error {
	runs, err := verifier{say}.folder(dir, verifyDepth)
	if err == nil && runs == 0 {
		err = badinput.Errorf("%s is %w, and none is below it", dir, ErrNotRun)
	}
	return err
}

type verifier struct{ say func(Finding) }

func (v verifier) ok(path, format string, args ...any) {
	v.say(Finding{Intact, path, fmt.Sprintf(format, args...)})
}

func (v verifier) note(path, format string, args ...any) {
	v.say(Finding{Note, path, fmt.Sprintf(format, args...)})
}

func (v verifier) damaged(path, format string, args ...any) {
	v.say(Finding{Damaged, path, fmt.Sprintf(format, args...)})
}

func (v verifier) failed(path string, err error) { v.say(Failure(path, err)) }

// folder verifies a run, or the runs below a folder and what is shown of them, and returns their number.
func (v verifier) folder(dir string, depth int) (runs int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	names := make(map[string]fs.DirEntry)
	for _, e := range entries {
		names[e.Name()] = e
	}
	if names[infoName] != nil || names[configName] != nil && names[stateName] != nil {
		v.run(&Run{dir: dir, disk: disk.OS{}})
		return 1, nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			v.note(path, "a symbolic link, which is not followed")
		case e.IsDir() && depth > 0 && e.Name() != outputsTmp:
			below, err := v.folder(path, depth-1)
			if err != nil {
				v.failed(path, err)
			}
			runs += below
		}
	}
	if runs > 0 || names[outputsName] != nil {
		again := "give the command that made it again"
		if shown, err := readOutputs(disk.OS{}, dir); shown != nil && shown.State != "" {
			v.damaged(filepath.Join(dir, outputsName), "is of a run: %s", again)
		} else {
			v.outputs(dir, shown, err, again)
		}
	}
	return runs, nil
}

// outputs verifies what a run or a grid shows, given the list of it, which may be missing, and what makes it again.
func (v verifier) outputs(dir string, o *outputs, err error, again string) {
	const attempts = 100 // each time, a process has published something else meanwhile
	list := filepath.Join(dir, outputsName)
	var found []Finding
	for range attempts {
		if err != nil {
			v.failed(list, err)
			return
		}
		if o == nil {
			if _, err := os.Lstat(filepath.Join(dir, "report.html")); err == nil {
				v.note(list, "is missing: the report is being written, or that was interrupted, and is not verified; %s", again)
			}
			return
		}
		found = found[:0]
		for _, name := range slices.Sorted(maps.Keys(o.Files)) {
			path := filepath.Join(dir, filepath.Base(name))
			data, err := disk.ReadFile(path)
			switch {
			case err != nil:
				found = append(found, Failure(path, err))
			case disk.DigestOf(data) != o.Files[name]:
				found = append(found, Finding{Damaged, path, "does not match its hash: " + again})
			default:
				found = append(found, Finding{Intact, path, fmt.Sprintf("%d bytes", len(data))})
			}
		}
		before := o.SHA256
		if o, err = readOutputs(disk.OS{}, dir); o != nil && o.SHA256 == before {
			break
		}
	}
	for _, f := range found {
		v.say(f)
	}
}
