package run

import (
	"errors"
	"fmt"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

// formatVersion is the version of run.json and of checkpoints. It grows when an older program would misread what a newer
// one writes; this file is where the newer program then translates what older ones wrote:
//
//  1. run.json has no hash of its own; checkpoints have no format number and know only how long the journals were.
//  2. Both have a number and a hash, and checkpoints know the journals' hashes.
//
// From 2 on, both are sealed as disk.Seal does it in every version, so that a newer one can be told from damage. A
// translation of arrays or counters belongs into readCheckpoint, after they are read.
const formatVersion = 2

// ErrNewer is wrapped by the error for what this program is too old to read.
var ErrNewer = errors.New("written by a newer version of the program")

func newer(path string, format int) error {
	return badinput.Errorf("%s was %w: it has format %d, this one reads up to %d", path, ErrNewer, format, formatVersion)
}

// formatOf reads the number alone: all else may mean something else in another version.
func formatOf(data []byte) (int, error) {
	var head struct {
		Format int `json:"format"`
	}
	err := disk.Decode(data, &head)
	return head.Format, err
}

// manifest1 is a manifest of format 1.
type manifest1 struct {
	Step     uint64                 `json:"step"`
	Files    map[string]disk.Digest `json:"files"`
	Journals map[string]int64       `json:"journals"`
	SHA256   string                 `json:"sha256"`
}

func (old manifest1) upgrade() manifest {
	m := manifest{Format: formatVersion, Step: old.Step, Files: old.Files, Journals: make(map[string]disk.Digest)}
	for name, size := range old.Journals {
		m.Journals[name] = disk.Digest{Size: size} // no hash: any content of this size will do
	}
	return m
}

// parseManifest reads the manifest at a path in any known format.
func parseManifest(path string, data []byte) (m manifest, err error) {
	format, err := formatOf(data)
	switch {
	case err != nil:
	case format > formatVersion && disk.Intact(data):
		return m, newer(path, format)
	case format == formatVersion:
		err = disk.Unseal(data, &m, &m.SHA256)
	case format == 0:
		var old manifest1
		err = disk.Unseal(data, &old, &old.SHA256)
		m = old.upgrade()
	default:
		err = fmt.Errorf("no format %d is known", format)
	}
	if err != nil {
		err = damage{fmt.Errorf("%s: %w", path, err)}
	}
	return m, err
}

// infoFile is run.json.
type infoFile struct {
	Info
	SHA256 string `json:"sha256"`
}

// parseInfo reads run.json in any known format.
func parseInfo(dir, path string, data []byte) (infoFile, error) {
	format, err := formatOf(data)
	var f infoFile
	switch {
	case err != nil:
	case format > formatVersion && disk.Intact(data):
		return f, newer(dir, format)
	case format == formatVersion:
		err = disk.Unseal(data, &f, &f.SHA256)
	case format == 1:
		if err = disk.Decode(data, &f); err == nil && f.SHA256 != "" {
			err = errors.New("format 1 has no hash")
		}
	case format == 0:
		err = errors.New("no format number")
	default:
		err = fmt.Errorf("no format %d is known", format)
	}
	if err != nil {
		err = badinput.Errorf("%s is damaged or was edited (%w): undo the edit, even a harmless one, restore the file "+
			"from a copy, or start again in another folder", path, err)
	}
	return f, err
}
