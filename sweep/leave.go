package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/run"
)

// Workers of the pool's own process leave finished runs in a folder, from which the pool moves them to their place: what
// others send through the object store. A blob then says nothing but the hash: where a run lies follows from its cell.
// If it is the run that was left, nobody else can have touched it, and it needs no closer look.

const leftName = "left"

func (b *blob) isLeft() bool { return b.Name == leftName }

// leftFolder is the name of the folder with a run that was made by the claim of an epoch.
func leftFolder(key string, epoch uint64) string {
	return fmt.Sprintf("%s-%d", strings.TrimPrefix(key, cellKeys), epoch)
}

// leave moves the finished run to where the pool finds it. The other func takes it back.
func (m *making) leave() (_ blob, back func() error, err error) {
	made := filepath.Join(m.dir, m.cell.Path())
	digest, err := sealOf(made)
	if err != nil {
		return blob{}, nil, err
	}
	more, err := run.Unpacked(made)
	if err != nil {
		return blob{}, nil, err
	}
	for _, name := range more {
		if err := os.RemoveAll(filepath.Join(made, name)); err != nil {
			return blob{}, nil, err
		}
	}
	dir := filepath.Join(m.leaves, leftFolder(m.key, m.now().Epoch))
	to := filepath.Join(dir, m.cell.Path())
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return blob{}, nil, err
	}
	back = func() error { return errors.Join(os.Rename(to, made), os.RemoveAll(dir)) }
	return blob{Name: leftName, Digest: digest}, back, os.Rename(made, to)
}

// sealOf hashes a run as Pack writes it.
func sealOf(dir string) (disk.Digest, error) {
	sum := sha256.New()
	_, err := run.Pack(dir, sum)
	return disk.Digest{SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// takeLeft checks a run that was left, and makes it durable.
func takeLeft(made string, want disk.Digest) error {
	got, err := sealOf(made)
	switch {
	case ofSystem(err) && !errors.Is(err, fs.ErrNotExist):
		return err // it stays, perhaps it can be read another time
	case err != nil:
		return fmt.Errorf("%w: %w", errRefused, err)
	case got != want:
		return fmt.Errorf("what was left %w", errDamaged)
	}
	return filepath.WalkDir(made, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return disk.OS{}.SyncDir(path)
		}
		f, err := disk.OS{}.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// placed returns the result of a cell that was left and has got its place, while the board was not told; nil otherwise.
func (c *collection) placed(made string, cell run.Cell) json.RawMessage {
	if _, err := os.Lstat(made); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	result, _, err := c.grid.Finished(cell, func(string) {})
	if err != nil {
		return nil // what was left is refused
	}
	return result
}

// forget removes what workers of a killed pool have left of this grid's cells and not handed in. What they left of
// others waits for the call of Run that asks for these.
func (c *collection) forget() error {
	ours := make(map[string]bool)
	for _, cell := range c.cells {
		ours[strings.TrimPrefix(keyOf(cell), cellKeys)] = true
	}
	var errs []error
	for name := range c.leftovers {
		if cell, _, _ := strings.Cut(name, "-"); ours[cell] {
			errs = append(errs, os.RemoveAll(filepath.Join(c.below(leftName), name)))
			delete(c.leftovers, name)
		}
	}
	return errors.Join(errs...)
}
