package run

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

// dataName is the folder of what a run has made of its data and keeps, see Options.Files.
const dataName = "data"

// Preparer is a Task whose configuration can name data that a run prepares and keeps.
type Preparer interface {
	Task
	// Prepare reads the data that a configuration names, if it must be prepared, fills in what the configuration leaves to
	// it, and returns what there is to say about it, line by line. It is called before Start, when a run is to be made.
	Prepare(config any) (said []string, err error)
}

// Sharer is a configuration that can do with what another one of its task was prepared with.
type Sharer interface {
	// Share takes over what Prepare has made of the other configuration, if it would make the same of this one.
	Share(prepared any) bool
}

// Prepared prepares configurations, and what several of them need once.
type Prepared struct{ all []any }

// Prepare is Preparer.Prepare of tasks that have it, unless a configuration before has left all that is needed.
func (p *Prepared) Prepare(t Task, config any) (said []string, err error) {
	s, ok := config.(Sharer)
	if ok && slices.ContainsFunc(p.all, s.Share) {
		return nil, nil
	}
	if said, err = Prepare(t, config); ok && err == nil {
		p.all = append(p.all, config)
	}
	return said, err
}

// Keeper is a Session whose run keeps files: the data that Prepare has made, or what is to be known of others.
type Keeper interface {
	Session
	// Keeps returns the files, by name; nil if there are none.
	Keeps() (map[string][]byte, error)
}

// Housed is a configuration that can take its data from the run that keeps them.
type Housed interface {
	// House is told the folder of what a run keeps, and the names of its files. It returns the key whose path is not read
	// any more; "" if there is none.
	House(dir string, files []string) (key string, err error)
}

// Prepare is Preparer.Prepare of tasks that have it.
func Prepare(t Task, config any) ([]string, error) {
	if p, ok := t.(Preparer); ok {
		return p.Prepare(config)
	}
	return nil, nil
}

// Keeps is Keeper.Keeps of sessions that have it.
func Keeps(s Session) (map[string][]byte, error) {
	if k, ok := s.(Keeper); ok {
		return k.Keeps()
	}
	return nil, nil
}

// House lets a configuration take its data from the run's folder, if the run keeps them there, and returns the key whose
// path is not read then.
func (r *Run) House(config any) (key string, err error) {
	h, ok := config.(Housed)
	if !ok || len(r.info.Files) == 0 {
		return "", nil
	}
	var names []string
	for _, path := range slices.Sorted(maps.Keys(r.info.Files)) {
		names = append(names, strings.TrimPrefix(path, dataName+"/"))
	}
	return h.House(r.path(dataName), names)
}

// Kept returns a file that the run keeps; nil if it keeps none of that name.
func (r *Run) Kept(name string) ([]byte, error) {
	want, ok := r.info.Files[dataName+"/"+name]
	if !ok {
		return nil, nil
	}
	path := filepath.Join(r.path(dataName), name)
	data, err := r.disk.ReadFile(path)
	if err == nil && disk.DigestOf(data) != want {
		err = badinput.Errorf("%s does not match its hash in %s: put it back from a copy", path, infoName)
	}
	return data, err
}

// keep writes files that a run keeps, and says so in its provenance. A Create that was killed may have written them.
func (r *Run) keep(files map[string][]byte) error {
	if len(files) == 0 {
		return nil
	}
	r.info.Files = make(map[string]disk.Digest)
	for name, data := range files {
		r.info.Files[dataName+"/"+name] = disk.DigestOf(data)
	}
	if err := disk.CheckFolder(r.disk, r.path(dataName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp := r.path(dataName) + disk.TmpSuffix
	if err := r.disk.RemoveAll(tmp); err != nil {
		return err
	}
	if err := r.disk.Mkdir(tmp); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := disk.Write(r.disk, filepath.Join(tmp, name), disk.Content(files[name])); err != nil {
			return err
		}
	}
	if err := r.disk.SyncDir(tmp); err != nil {
		return err
	}
	if err := r.disk.Rename(tmp, r.path(dataName)); err != nil {
		return err
	}
	return r.disk.SyncDir(r.dir)
}

// isKept reports whether a folder holds files that are to be kept there, and nothing else: whole, or as far as a Create
// that was killed had written them.
func isKept(dir string, files map[string][]byte, whole bool) bool {
	entries, err := disk.OS{}.ReadDir(dir)
	if err != nil || len(files) == 0 || whole && len(entries) != len(files) {
		return false
	}
	for _, e := range entries {
		data, ok := files[e.Name()]
		found, err := disk.ReadFile(filepath.Join(dir, e.Name()))
		if !ok || err != nil || whole && !bytes.Equal(found, data) || len(found) > len(data) {
			return false
		}
	}
	return true
}

// kept verifies what a run keeps.
func (v verifier) kept(r *Run, files map[string]disk.Digest) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := r.path(filepath.FromSlash(name))
		if filepath.Dir(path) != r.path(dataName) {
			v.damaged(path, "is outside of the run, and %s names it", infoName)
			continue
		}
		switch data, err := r.disk.ReadFile(path); {
		case err != nil:
			v.failed(path, err)
		case disk.DigestOf(data) != files[name]:
			v.damaged(path, "does not match its hash in %s: put it back from a copy", infoName)
		default:
			v.ok(path, "%d bytes", len(data))
		}
	}
}
