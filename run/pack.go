package run

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

// Pack writes what is needed to go on with a run elsewhere, as a tar file: its newest intact checkpoint, what was
// logged until then, its summary, changes of its configuration, and the result of a finished cell. It may be called
// while the run is being trained. It returns the checkpoint's step; its error wraps ErrNoCheckpoint if there is none.
func Pack(dir string, w io.Writer) (step uint64, err error) {
	r, err := Read(dir)
	if err != nil {
		return 0, err
	}
	for name := range r.info.Files { // which may come from somebody else
		if name != path.Join(dataName, path.Base(name)) || strings.Contains(name, `\`) {
			return 0, badinput.Errorf("pack run: %s names %q, which is no file that a run keeps", r.path(infoName), name)
		}
	}
	s, _, err := r.Load()
	if err != nil {
		return 0, err
	}
	_, m, err := r.readCheckpoint(s.Step)
	if err != nil {
		return 0, err
	}
	out := tar.NewWriter(w)
	for _, name := range append(r.packs(s.Step), packedIfThere...) {
		data, err := disk.ReadFile(r.path(filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) && slices.Contains(packedIfThere, name) {
			continue
		} else if err != nil {
			return 0, fmt.Errorf("pack run: %w", err)
		}
		if slices.Contains(journalNames, name) {
			if fault := journalFault(data, m.Journals[name]); fault != "" {
				return 0, fmt.Errorf("pack run: %s %s", r.path(name), fault)
			}
			data = data[:m.Journals[name].Size]
		}
		if err := AddFile(out, name, data); err != nil {
			return 0, fmt.Errorf("pack run: %w", err)
		}
	}
	return s.Step, out.Close()
}

// packedIfThere are files that Pack takes if a run has them.
var packedIfThere = []string{resultName, summaryName, changesName}

// packs names the files that Pack takes of a run in any case, with its checkpoint of a step.
func (r *Run) packs(step uint64) []string {
	checkpoint := path.Join(stateName, checkpointName(step))
	names := []string{configName, infoName, path.Join(checkpoint, arraysName), path.Join(checkpoint, stateFileName),
		path.Join(checkpoint, manifestName), metricsName, eventsName}
	return append(names, slices.Sorted(maps.Keys(r.info.Files))...)
}

// Unpacked names the files and folders of a run's folder that Pack leaves out. It verifies nothing.
func Unpacked(dir string) (names []string, err error) {
	r, err := Read(dir)
	if err != nil {
		return nil, err
	}
	steps, err := r.checkpoints()
	if err != nil {
		return nil, err
	} else if len(steps) == 0 {
		return nil, fmt.Errorf("%s %w", dir, ErrNoCheckpoint)
	}
	keep := map[string]bool{".": true}
	for _, name := range append(r.packs(steps[0]), packedIfThere...) {
		for ; !keep[name]; name = path.Dir(name) {
			keep[name] = true
		}
	}
	err = filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, at)
		if err != nil || keep[filepath.ToSlash(name)] {
			return err
		}
		names = append(names, name)
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return names, err
}

// AddFile adds a file to a tar file, of which nothing but its name and content is kept, so that equal files make equal
// ones.
func AddFile(out *tar.Writer, name string, data []byte) error {
	err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatPAX})
	if err == nil {
		_, err = out.Write(data)
	}
	return err
}

// ErrUnpack says that a tar file is damaged, or has something else than plain files that belong below one folder.
var ErrUnpack = errors.New("it cannot be unpacked")

// Unpack writes the files of a tar file, which may come from somebody else, below a new folder: regular files alone,
// and nothing outside of it. They are durable when it returns. Its error wraps ErrUnpack if the tar file is at fault.
func Unpack(in io.Reader, dir string) error {
	err := unpack(in, dir)
	var system *fs.PathError
	if err == nil || errors.As(err, &system) && !slices.ContainsFunc(
		[]error{fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG}, // names that exclude each other, or are none
		func(fault error) bool { return errors.Is(err, fault) }) {
		return err
	}
	return fmt.Errorf("%w: %v", ErrUnpack, err) // not %w: it is no error of this machine
}

func unpack(in io.Reader, dir string) (err error) {
	d := disk.OS{}
	if err := disk.MkdirAll(d, dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	folders := []string{"."}
	files := tar.NewReader(in)
	for {
		h, err := files.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		name := filepath.FromSlash(h.Name)
		if h.Typeflag != tar.TypeReg || isSparse(h) || !filepath.IsLocal(name) || strings.Contains(h.Name, `\`) {
			return fmt.Errorf("%q is no file that belongs here", h.Name)
		}
		if folder := filepath.Dir(name); !slices.Contains(folders, folder) {
			if err := root.MkdirAll(folder, 0o777); err != nil {
				return err
			}
			for ; folder != "."; folder = filepath.Dir(folder) {
				folders = append(folders, folder)
			}
		}
		if err := unpackFile(root, name, files); err != nil {
			return err
		}
	}
	for _, folder := range folders {
		if err := d.SyncDir(filepath.Join(dir, folder)); err != nil {
			return err
		}
	}
	return nil
}

// isSparse reports whether a file has holes, with which a small tar file would fill a disk.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

func unpackFile(root *os.Root, name string, content io.Reader) (err error) {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	return f.Sync()
}
