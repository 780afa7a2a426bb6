package catalog

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/internal/disk"
)

// Folders returns what Find opens, in the same order, without opening it: runs that have a Dir only, and folders
// that cannot be read, as broken runs.
func Folders(dir string) ([]Run, error) {
	top, err := disk.Follow(dir)
	if err != nil {
		return nil, err
	}
	found, err := below(top, dir)
	if err != nil {
		return nil, fmt.Errorf("find runs: %w", err)
	}
	slices.SortStableFunc(found, func(a, b Run) int { return natural(a.Dir, b.Dir) })
	return found, nil
}

// Mark changes when what Open says of a run may change, apart from whether a process that writes it has died.
func Mark(dir string) string {
	var b strings.Builder
	for _, name := range []string{"run.json", "run.toml", metricsName, "state", "summary.json", "result.json", "outputs.json", "lock"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			fmt.Fprint(&b, info.Size(), " ", info.ModTime().UnixNano(), ";")
		} else {
			b.WriteString("-;")
		}
	}
	return b.String()
}
