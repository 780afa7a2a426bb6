package run

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/gfnem/gfnem/internal/disk"
)

// journalNames are the files that grow while a run is trained.
var journalNames = []string{metricsName, eventsName}

// JournalNotes has a line for each journal, metrics or events, that contradicted the checkpoint of the last Load: it is
// missing, cut or changed. In a Run that may write, it is then in step with the checkpoint again, and the line says what
// was lost.
func (r *Run) JournalNotes() []string { return r.notes }

// contradictions has a line for each journal that contradicts a checkpoint.
func (r *Run) contradictions(m manifest) (lines []string, err error) {
	for _, name := range journalNames {
		data, err := readJournal(r.disk, r.path(name))
		if err != nil {
			return nil, err
		}
		if fault := journalFault(data, m.Journals[name]); fault != "" {
			lines = append(lines, fmt.Sprintf("%s %s since checkpoint %d was saved: %s mends it",
				r.path(name), fault, m.Step, r.again()))
		}
	}
	return lines, nil
}

// mend returns what is kept of the journals: what was there when the checkpoint of a manifest was saved.
//
// A journal that contradicts the checkpoint is brought in step with it, and a line says what was lost: the longest part
// of it that any checkpoint vouches for is kept, the rest is copied to a file beside it, and all checkpoints vouch for
// what is kept from then on. After a kill, the next Load does the same again: the newest checkpoint is changed last.
func (r *Run) mend(m manifest, older []uint64) (kept map[string][]byte, lines []string, err error) {
	kept = make(map[string][]byte)
	var vouching []manifest // oldest first
	for _, name := range journalNames {
		data, err := readJournal(r.disk, r.path(name))
		if err != nil {
			return nil, nil, err
		}
		fault := journalFault(data, m.Journals[name])
		if fault == "" {
			kept[name] = data[:m.Journals[name].Size]
			continue
		}
		if vouching == nil {
			if vouching, err = r.manifests(older); err != nil {
				return nil, nil, err
			}
			slices.Reverse(vouching)
			vouching = append(vouching, m)
		}
		var size int64
		for _, v := range vouching {
			if want := v.Journals[name]; journalFault(data, want) == "" {
				size = max(size, want.Size)
			}
		}
		kept[name] = data[:size]
		line := fmt.Sprintf("%s %s since checkpoint %d was saved: its first %d bytes are kept, what was logged after them "+
			"is lost", r.path(name), fault, m.Step, size)
		if rest := data[size:]; len(rest) > 0 {
			aside, err := r.keepAside(r.path(name)+damagedSuffix, rest)
			if err != nil {
				return nil, nil, err
			}
			line += fmt.Sprintf(" (the other %d bytes are in %s)", len(rest), filepath.Base(aside))
		}
		lines = append(lines, line)
	}
	for _, v := range vouching {
		if err := r.vouch(v, kept); err != nil {
			return nil, nil, err
		}
	}
	return kept, lines, nil
}

// manifests returns those of the steps' checkpoints, without the damaged ones.
func (r *Run) manifests(steps []uint64) (all []manifest, err error) {
	for _, step := range steps {
		_, m, err := r.readCheckpoint(step)
		if err == nil {
			all = append(all, m)
		} else if !isDamage(err) {
			return nil, err
		}
	}
	return all, nil
}

// keepAside writes data to a path that nothing has, unless a file there has it already, and returns the path.
func (r *Run) keepAside(path string, data []byte) (string, error) {
	for n := 1; ; n++ {
		name := numbered(path, n)
		switch old, err := r.disk.ReadFile(name); {
		case errors.Is(err, fs.ErrNotExist):
			return name, disk.ReplaceFile(r.disk, name, disk.Content(data))
		case err != nil:
			return "", err
		case bytes.Equal(old, data):
			return name, nil
		}
	}
}

// vouch seals a checkpoint's manifest again if it contradicts what is kept of the journals.
func (r *Run) vouch(m manifest, kept map[string][]byte) error {
	changed := false
	for name, data := range kept {
		if journalFault(data, m.Journals[name]) != "" {
			m.Journals[name] = disk.DigestOf(data)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	sealed, err := disk.Seal(&m, &m.SHA256)
	if err != nil {
		return err
	}
	return disk.ReplaceFile(r.disk, filepath.Join(r.checkpointPath(m.Step), manifestName), disk.Content(sealed))
}
