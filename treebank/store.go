package treebank

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

// manifestFormat is raised when a program of today could not read what a later one writes.
const manifestFormat = 1

// manifest says what a data set holds.
type manifest struct {
	Format     int                   `json:"format"`
	Source     string                `json:"source"`
	Options    Options               `json:"options"`
	Vocabulary int                   `json:"vocabulary"` // words, <unk> included
	Splits     []splitManifest       `json:"splits"`
	Files      map[string]fileDigest `json:"files"`
	SHA256     string                `json:"sha256"` // of the manifest with this field empty
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

type fileDigest struct {
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
}

func digestOf(data []byte) fileDigest {
	return fileDigest{len(data), fmt.Sprintf("%x", sha256.Sum256(data))}
}

func (d *Dataset) manifest(files []namedData) manifest {
	m := manifest{
		Format: manifestFormat, Source: d.Source, Options: d.Options, Vocabulary: d.Vocabulary.Size(),
		Files: make(map[string]fileDigest),
	}
	for _, f := range files {
		m.Files[f.name] = digestOf(f.data)
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

// Save writes the data set to a folder, whole or not at all: the folder is written under another name first. A folder
// that holds something is refused, but a data set in it is replaced if replace is true.
//
// The same data set always gives the same bytes.
func (d *Dataset) Save(dir string, replace bool) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := checkTarget(dir, replace); err != nil {
		return err
	}
	files := d.files()
	m := d.manifest(files)
	sealed, err := disk.Seal(&m, &m.SHA256)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".tmp")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	made := filepath.Join(tmp, "new")
	if err := os.Mkdir(made, 0o777); err != nil {
		return err
	}
	for _, f := range append(files, namedData{manifestName, sealed}) {
		if err := writeSynced(filepath.Join(made, f.name), f.data); err != nil {
			return err
		}
	}
	return swap(dir, made, filepath.Join(tmp, "old"))
}

// swap puts a new folder in the place of what is at dir, which goes to old.
func swap(dir, made, old string) error {
	err := os.Rename(dir, old)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	had := err == nil
	if err := os.Rename(made, dir); err != nil {
		if had {
			err = errors.Join(err, os.Rename(old, dir))
		}
		return err
	}
	return nil
}

func writeSynced(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return cmp.Or(err, f.Sync(), f.Close())
}

// checkTarget refuses a folder whose content would be lost.
func checkTarget(dir string, replace bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if len(entries) == 0 {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	var m manifest
	if err != nil || json.Unmarshal(data, &m) != nil || m.Format == 0 {
		return badinput.Errorf("%s is not empty and holds no data set: choose another folder", dir)
	}
	for _, e := range entries {
		if _, known := m.Files[e.Name()]; !known && e.Name() != manifestName {
			return badinput.Errorf("%s holds %s, which is no part of its data set: move it away or choose another folder", dir,
				e.Name())
		}
	}
	if !replace {
		return badinput.Errorf("%s already holds a data set: replace it with --force, or choose another folder", dir)
	}
	return nil
}

// Load reads a data set from a folder and verifies all of it.
func Load(dir string) (*Dataset, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	content := make(map[string][]byte)
	for name, want := range m.Files {
		data, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, damaged(dir, fmt.Errorf("%s is missing", name))
		} else if err != nil {
			return nil, err
		}
		if digestOf(data) != want {
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
	return badinput.Errorf("the data set in %s is damaged: %w; make it again with \"gfnem data treebank\"", dir, err)
}

func readManifest(dir string) (manifest, error) {
	var m manifest
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, badinput.Errorf("%s is not a data set: it has no %s (make one with \"gfnem data treebank\")", dir,
			manifestName)
	} else if err != nil {
		return m, err
	}
	err = disk.Unseal(data, &m, &m.SHA256)
	if m.Format > manifestFormat {
		return m, badinput.Errorf("the data set in %s was made by a newer version of the program", dir)
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
	d := &Dataset{Source: m.Source, Options: m.Options, Vocabulary: v}
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
