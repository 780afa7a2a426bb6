package run

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/gfnem/gfnem/internal/disk"
)

// CreateNext makes a new run in the first of the folders dir, dir-2, dir-3, ... that is not there. Processes that call it
// at the same time get different ones.
func CreateNext(dir string, o Options) (*Run, error) {
	d, parent := disk.OS{}, filepath.Dir(dir)
	if err := disk.MkdirAll(d, parent); err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	name := dir
	for n := 2; ; n++ {
		err := d.Mkdir(name) // which fails if somebody else has just done it
		if err == nil {
			err = d.SyncDir(parent)
		}
		if err == nil {
			return create(d, name, o)
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("create run: %w", err)
		}
		name = fmt.Sprintf("%s-%d", dir, n)
	}
}
