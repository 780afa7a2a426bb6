package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

const (
	outputsName   = "outputs.json"
	outputsTmp    = "outputs" + disk.TmpSuffix
	outputsFormat = 1
)

// outputs lists what a run or a grid shows: its report, figures and exported parameters.
type outputs struct {
	Format int                    `json:"format"`
	Step   uint64                 `json:"step"`         // of the state they were made from
	State  string                 `json:"state_sha256"` // its hash; empty in a grid
	Files  map[string]disk.Digest `json:"files"`
	SHA256 string                 `json:"sha256"` // of this list with this field empty
}

// Publish lets write make files in a folder and moves them to the run's: what a finished run shows of its newest
// checkpoint. They are listed with their hashes in outputs.json, which is gone while they are moved, so that a kill
// leaves what was published before, or no list.
func (r *Run) Publish(write func(dir string) error) error {
	s, _, err := r.Load()
	if err == nil {
		err = r.writable()
	}
	if err == nil {
		err = r.checkOwner()
	}
	if err == nil {
		err = publish(r.disk, r.dir, outputs{Step: s.Step, State: StateHash(s)}, write)
	}
	return published(r.dir, err)
}

// Publish is Run.Publish for what a grid shows.
func (g Grid) Publish(write func(dir string) error) error {
	return published(g.Dir, publish(disk.OS{}, g.Dir, outputs{}, write))
}

func published(dir string, err error) error {
	if err != nil {
		return fmt.Errorf("write the report of %s: %w", dir, err)
	}
	return nil
}

func publish(d disk.Disk, dir string, o outputs, write func(dir string) error) (err error) {
	if err := disk.MkdirAll(d, dir); err != nil {
		return err
	}
	if err := sweepOutputs(d, dir); err != nil {
		return err
	}
	tmp, list := filepath.Join(dir, outputsTmp), filepath.Join(dir, outputsName)
	if err := d.Mkdir(tmp); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.RemoveAll(tmp)) }()
	if err := write(tmp); err != nil {
		return err
	}
	made, err := d.ReadDir(tmp)
	if err != nil {
		return err
	}
	o.Format, o.Files = outputsFormat, make(map[string]disk.Digest)
	for _, e := range made {
		data, err := d.ReadFile(filepath.Join(tmp, e.Name()))
		if err != nil {
			return err
		}
		o.Files[e.Name()] = disk.DigestOf(data)
	}
	sealed, err := disk.Seal(&o, &o.SHA256)
	if err != nil {
		return err
	}
	if err := d.RemoveAll(list); err != nil {
		return err
	}
	if err := d.SyncDir(dir); err != nil {
		return err
	}
	for _, e := range made {
		if err := d.Rename(filepath.Join(tmp, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	if err := d.SyncDir(dir); err != nil {
		return err
	}
	return disk.ReplaceFile(d, list, disk.Content(sealed))
}

// leftover matches what earlier versions of the program left when they were killed.
var leftover = regexp.MustCompile(`^(\.(report\.html|[a-z0-9_-]+\.(png|svg))\.[0-9]+|parameters\.safetensors\.tmp)$`)

// sweepOutputs removes what a killed process was writing.
func sweepOutputs(d disk.Disk, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == outputsTmp || e.Type().IsRegular() && leftover.MatchString(e.Name()) {
			if err := d.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// readOutputs reads the list of a folder; nil if there is none.
func readOutputs(d disk.Reader, dir string) (*outputs, error) {
	data, err := d.ReadFile(filepath.Join(dir, outputsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var o outputs
	err = disk.Unseal(data, &o, &o.SHA256)
	if o.Format > outputsFormat && disk.Intact(data) {
		err = ErrNewer
	}
	if err != nil {
		return nil, badinput.Errorf("%s: %w", filepath.Join(dir, outputsName), err)
	}
	return &o, nil
}
