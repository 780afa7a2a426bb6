package treebank

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/self"
)

// manifestFormat is raised when a program of today could not read what a later one writes.
const manifestFormat = 1

// manifest says what a data set holds.
type manifest struct {
	Format     int                    `json:"format"`
	Source     string                 `json:"source"`
	Notes      []string               `json:"notes,omitempty"`
	Options    Options                `json:"options"`
	Vocabulary int                    `json:"vocabulary"` // words, <unk> included
	Splits     []splitManifest        `json:"splits"`
	Files      map[string]disk.Digest `json:"files"`
	SHA256     string                 `json:"sha256"` // of the manifest with this field empty
}

type splitManifest struct {
	Name        string   `json:"name"`
	Sentences   int      `json:"sentences"`
	Words       int      `json:"words"`
	Gold        bool     `json:"gold"`
	Leaves      int      `json:"leaves"`
	Dropped     Dropped  `json:"dropped"`
	TrueLogProb *float64 `json:"true_logprob,omitempty"`
}

func (d *Dataset) manifest(files []namedData) manifest {
	m := manifest{
		Format: manifestFormat, Source: d.Source, Notes: d.Notes, Options: d.Options, Vocabulary: d.Vocabulary.Size(),
		Files: make(map[string]disk.Digest),
	}
	for _, f := range files {
		m.Files[f.name] = disk.DigestOf(f.data)
	}
	for _, s := range d.Splits {
		words := 0
		for _, sentence := range s.Sentences {
			words += len(sentence.Words)
		}
		m.Splits = append(m.Splits, splitManifest{s.Name, len(s.Sentences), words, s.Gold, s.Leaves, s.Dropped, s.TrueLogProb})
	}
	return m
}

// Save writes the data set to a folder, whole or not at all: a kill or a power cut leaves the old folder or the new
// one. A folder that holds something is refused, but a data set in it is replaced if replace is true.
//
// The same data set always gives the same bytes.
func (d *Dataset) Save(dir string, replace bool) error { return d.save(disk.OS{}, dir, replace) }

func (d *Dataset) save(on disk.Disk, dir string, replace bool) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if dir, err = disk.Follow(dir); err != nil {
		return err
	}
	if err := disk.RecoverFolder(on, dir); err != nil {
		return err
	}
	if err := checkTarget(on, dir, replace); err != nil {
		return err
	}
	files, err := d.Files()
	if err != nil {
		return err
	}
	if err := disk.MkdirAll(on, filepath.Dir(dir)); err != nil {
		return err
	}
	if err := disk.SweepFolder(on, dir); err != nil {
		return err
	}
	return disk.ReplaceFolder(on, dir, func(made string) error {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if _, err := disk.Write(on, filepath.Join(made, name), disk.Content(files[name])); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkTarget refuses a folder whose content would be lost.
func checkTarget(on disk.Disk, dir string, replace bool) error {
	entries, err := on.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if len(entries) == 0 {
		return nil
	}
	data, err := on.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return badinput.Errorf("%s is not empty and holds no data set: choose another folder", dir)
	} else if err != nil {
		return err
	}
	var m manifest
	if json.Unmarshal(data, &m) != nil || m.Format == 0 {
		return badinput.Errorf("%s is not empty, and its %s is damaged: remove the folder or choose another", dir, manifestName)
	}
	for _, e := range entries {
		if _, known := m.Files[e.Name()]; e.IsDir() || !known && e.Name() != manifestName {
			return badinput.Errorf("%s holds %s, which is no part of its data set: move it away or choose another folder", dir,
				e.Name())
		}
	}
	if !replace {
		return badinput.Errorf("%s already holds a data set: replace it with --force, or choose another folder", dir)
	}
	return nil
}

// Load reads a data set from a folder and verifies all of it. While another process replaces the folder, it reads the
// old or the new one. Of a folder that is missing because its replacement was killed, it reads the old one, and the
// data set says where that is.
func Load(dir string) (*Dataset, error) { return loadFrom(disk.OS{}, dir) }

func loadFrom(on disk.Reader, dir string) (*Dataset, error) {
	const most = 100 // replacements in a row, each while Load reads
	for range most {
		d, same, err := loadOnce(on, dir)
		if same {
			return d, err
		}
	}
	return nil, badinput.Errorf("%s is replaced again and again: wait for the command that does it", dir)
}

// loadOnce also reports whether the folder was the same from the first file to the last.
func loadOnce(on disk.Reader, dir string) (_ *Dataset, same bool, err error) {
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		d, err := loadAside(on, dir)
		_, missing := os.Stat(dir)
		return d, missing != nil, err
	} else if err != nil || !info.IsDir() {
		d, err := load(on, dir)
		return d, true, err
	}
	open, err := os.Open(dir) // while it is open, no other folder can be taken for this one
	if err != nil {
		return nil, !errors.Is(err, fs.ErrNotExist), err
	}
	defer open.Close()
	d, err := load(on, dir)
	before, errBefore := open.Stat()
	after, errAfter := os.Stat(dir)
	return d, errBefore == nil && errAfter == nil && os.SameFile(before, after), err
}

// loadAside reads the folder that a replacement has put aside.
func loadAside(on disk.Reader, dir string) (*Dataset, error) {
	path, err := disk.Follow(dir)
	if err != nil {
		return nil, err
	}
	aside := disk.Aside(path)
	if _, err := os.Stat(aside); err != nil {
		return nil, badinput.Errorf("there is no %s: make a data set with %s", dir, maker())
	}
	d, err := load(on, aside)
	if err != nil {
		return nil, err
	}
	d.Aside = aside
	return d, nil
}

func load(on disk.Reader, dir string) (*Dataset, error) {
	m, err := readManifest(on, dir)
	if err != nil {
		return nil, err
	}
	content := make(map[string][]byte)
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		if name != filepath.Base(name) {
			return nil, damaged(dir, fmt.Errorf("%s names %q, which is outside", manifestName, name))
		}
		data, err := on.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, damaged(dir, fmt.Errorf("%s is missing", name))
		} else if err != nil {
			return nil, err
		}
		if disk.DigestOf(data) != m.Files[name] {
			return nil, damaged(dir, fmt.Errorf("%s does not match the hash in %s", name, manifestName))
		}
		content[name] = slices.Clip(data)
	}
	d, err := m.decode(content)
	if err != nil {
		return nil, damaged(dir, err)
	}
	return d, nil
}

func damaged(dir string, err error) error {
	return badinput.Errorf("the data set in %s is damaged: %w; make it again with %s", dir, err, maker())
}

// maker is the command that makes data sets.
func maker() string { return self.Command("data treebank") }

func readManifest(on disk.Reader, dir string) (manifest, error) {
	var m manifest
	data, err := on.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, badinput.Errorf("%s is not a data set: it has no %s (make one with %s)", dir,
			manifestName, maker())
	} else if err != nil {
		return m, err
	}
	err = disk.Unseal(data, &m, &m.SHA256)
	if m.Format > manifestFormat && disk.Intact(data) {
		return m, badinput.Errorf("%s is of a newer version of the program, or belongs elsewhere", filepath.Join(dir, manifestName))
	}
	if err != nil {
		return m, damaged(dir, fmt.Errorf("%s: %w", manifestName, err))
	}
	return m, nil
}

// decode makes the data set of a manifest from the content of its files.
func (m manifest) decode(content map[string][]byte) (*Dataset, error) {
	v, err := NewVocabulary(lines(content[vocabularyName]))
	if err != nil {
		return nil, err
	}
	d := &Dataset{Source: m.Source, Options: m.Options, Vocabulary: v, Notes: m.Notes}
	for _, s := range m.Splits {
		text, ok := content[s.Name+textEnding]
		spans, okSpans := content[s.Name+spansEnding]
		if !ok || okSpans != s.Gold {
			return nil, fmt.Errorf("%s and the files disagree on the split %q", manifestName, s.Name)
		}
		sentences, err := parseSplit(s.Name, text, spans, v)
		if err != nil {
			return nil, err
		}
		d.Splits = append(d.Splits, Split{s.Name, sentences, s.Gold, s.Leaves, s.Dropped, s.TrueLogProb})
	}
	return d, nil
}
