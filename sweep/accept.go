package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/run"
)

// accept takes a result that was handed in: it brings the run below the grid's folder, and only then says so. One that
// is not what it should be is refused, and the cell made again.
func (c *collection) accept(ctx context.Context, key string, i int, e entry, revision uint64) error {
	result, err := c.bring(ctx, key, c.cells[i], e)
	switch {
	case refused(err):
		c.warn("%s: what %s handed in is refused: %v: it is made again", e, e.Worker, err)
		return c.lose(ctx, key, e, revision)
	case err != nil:
		return err
	}
	drop := []*blob{e.Result, e.Checkpoint}
	e.State, e.Result, e.Checkpoint = kept, nil, nil
	if err := c.board.update(ctx, key, e, revision); err != nil {
		return err
	}
	c.board.drop(ctx, drop...)
	c.results[i] = result
	delete(c.open, key)
	c.show()
	return nil
}

var errRefused = errors.New("it is not the cell")

// refused reports whether what was handed in is at fault.
func refused(err error) bool {
	return errors.Is(err, errRefused) || errors.Is(err, errDamaged) || errors.Is(err, run.ErrUnpack)
}

// bring verifies a run that was handed in and moves it to its place.
func (c *collection) bring(ctx context.Context, key string, cell run.Cell, e entry) (result json.RawMessage, err error) {
	if e.Program != Program() {
		return nil, fmt.Errorf("%w: it was made by another build of the program (%s)", errRefused, e.Program)
	}
	if e.Result == nil {
		return nil, fmt.Errorf("%w: there is none", errRefused)
	}
	left := e.Result.isLeft()
	dir := c.below(filepath.Join("in", strings.TrimPrefix(key, cellKeys)))
	if left {
		dir = filepath.Join(c.below(leftName), leftFolder(key, e.Epoch))
	} else if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	made := filepath.Join(dir, cell.Path())
	if left {
		if result := c.placed(made, cell); result != nil {
			return result, os.RemoveAll(dir)
		}
		err = takeLeft(made, e.Result.Digest)
	} else if err = c.board.fetch(ctx, c.spool(), *e.Result, made); err == nil {
		err = verify(made)
	}
	if err == nil {
		result, err = c.resultOf(dir, cell)
	}
	if err == nil {
		err = c.place(made, cell)
	}
	if err == nil || refused(err) {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return result, err
}

// verify refuses what is no whole run, or more than that.
func verify(made string) error {
	more, err := run.Unpacked(made)
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	if more != nil {
		return fmt.Errorf("%w: it has files that are no part of a run, such as %q", errRefused, more[0])
	}
	var faults []string
	if err := run.Verify(made, func(f run.Finding) {
		if f.Status == run.Damaged || f.Status == run.Unread {
			faults = append(faults, filepath.Base(f.Path)+": "+f.Text)
		}
	}); err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	if faults != nil {
		return fmt.Errorf("%w: %s", errRefused, strings.Join(faults, "; "))
	}
	return nil
}

// resultOf returns the result of a cell that is finished below a folder.
func (c *collection) resultOf(dir string, cell run.Cell) (json.RawMessage, error) {
	var faults []string
	in := c.grid
	in.Dir, in.Scratch = dir, true // what Finished writes is not needed
	result, _, err := in.Finished(cell, func(line string) { faults = append(faults, line) })
	if err != nil || result == nil {
		return nil, fmt.Errorf("%w: it has no result of its newest checkpoint: %v %s", errRefused, err, strings.Join(faults, "; "))
	}
	return result, nil
}

// place moves a run, which is durable, below the grid's folder, in the place of what is there.
func (c *collection) place(made string, cell run.Cell) error {
	d, to := disk.OS{}, filepath.Join(c.Dir, cell.Path())
	if err := disk.MkdirAll(d, filepath.Dir(to)); err != nil {
		return err
	}
	if err := d.RemoveAll(filepath.Join(made, "lock")); err != nil {
		return err
	}
	if _, err := d.Lstat(to); err == nil { // until it is replaced, its result is on the board
		if err := d.Rename(to, made+".old"); err != nil {
			return err
		}
	}
	if err := d.Rename(made, to); err != nil {
		return err
	}
	return d.SyncDir(filepath.Dir(to))
}
