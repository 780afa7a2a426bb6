package treebank

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gfnem/gfnem/internal/disk"
)

func small(t testing.TB) *Dataset {
	t.Helper()
	dir := write(t, map[string]string{
		"a.trees": "(S (NP (DT the) (NN dog)) (VP (VBZ sleeps)))\n(S (NN yes) (NP (DT a) (NN dog)))", "b.txt": "the dog sleeps\nthe fox",
	})
	d, err := Build(Inputs{Train: []string{dir + "/a.trees"}, Test: []string{dir + "/b.txt"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSaveAndLoad(t *testing.T) {
	d := small(t)
	logProb := -12.5
	d.Splits[0].TrueLogProb = &logProb
	dir := filepath.Join(t.TempDir(), "deep", "data")
	if err := d.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"train.txt": "the dog sleeps\nyes a dog\n", "train.spans": "0-1 0-2\n1-2 0-2\n", "test.txt": "the dog sleeps\nthe <unk>\n",
		"vocabulary.txt": "<unk>\ndog\na\nsleeps\nthe\nyes\n",
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(data) != want {
			t.Errorf("%s is %q, %v; want %q", name, data, err, want)
		}
	}
	loaded, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, loaded, cmp.AllowUnexported(Vocabulary{})); diff != "" {
		t.Error(diff)
	}
	if d.Hash() != loaded.Hash() {
		t.Error("the hash changed on the way to the disk and back")
	}
	if d.Hash() == d.Between(0, 2).Hash() {
		t.Error("different data sets have the same hash")
	}
}

func TestSaveRefuses(t *testing.T) {
	d := small(t)
	dir := write(t, map[string]string{"mine/notes": "keep", "file": "x"})
	data := filepath.Join(dir, "data")
	if err := d.Save(data, false); err != nil {
		t.Fatal(err)
	}
	refused := func(path string, replace bool, want string) {
		t.Helper()
		if err := d.Save(path, replace); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Save(%s, %v): %v, want %q", path, replace, err, want)
		}
	}
	refused(data, false, "already holds a data set")
	refused(filepath.Join(dir, "mine"), true, "is not empty and holds no data set")
	refused(filepath.Join(dir, "file"), true, "file")
	refused(filepath.Join(dir, "file", "below"), true, "file")
	if err := d.Save(data, true); err != nil {
		t.Errorf("replacing a data set: %v", err)
	}
	if err := os.WriteFile(filepath.Join(data, "notes"), []byte("keep"), 0o666); err != nil {
		t.Fatal(err)
	}
	refused(data, true, "notes, which is no part of its data set")
	if err := d.Save(t.TempDir(), false); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	checkNames(t, dir, "data", "file", "mine")
}

func checkNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("in %s: %s", dir, diff)
	}
}

// TestSaveFails breaks the writing of the last file: what was there must stay, and nothing else.
func TestSaveFails(t *testing.T) {
	d := small(t)
	parent := t.TempDir()
	dir := filepath.Join(parent, "data")
	broken := *d
	broken.Splits = append(broken.Splits[:len(broken.Splits):len(broken.Splits)], Split{Name: "no/where"})
	if err := broken.Save(dir, false); err == nil {
		t.Fatal("a file below a folder that is not there was written")
	}
	checkNames(t, parent)
	if err := d.Save(dir, false); err != nil {
		t.Fatal(err)
	}
	if err := broken.Save(dir, true); err == nil {
		t.Fatal("a file below a folder that is not there was written")
	}
	checkNames(t, parent, "data")
	if loaded, err := Load(dir); err != nil || loaded.Hash() != d.Hash() {
		t.Errorf("the old data set is lost: %v", err)
	}
}

// TestLoadFindsDamage flips bytes of every file, one at a time, and removes each file.
func TestLoadFindsDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := small(t).Save(dir, false); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(whole); i += 1 + len(whole)/100 {
			changed := bytes.Clone(whole)
			changed[i] ^= 1
			if err := os.WriteFile(path, changed, 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir); err == nil {
				t.Fatalf("a change of byte %d of %s was not seen", i, e.Name())
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), e.Name()) {
			t.Errorf("without %s: %v", e.Name(), err)
		}
		if err := os.WriteFile(path, whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Load(dir); err != nil {
		t.Errorf("after all was put back: %v", err)
	}
}

// TestLoadChecksContent writes sealed data sets whose content is wrong.
func TestLoadChecksContent(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"word":       {"train.txt", "the dog sleeps\nyes a cat\n", `train.txt:2: the word "cat" is not in vocabulary.txt`},
		"blank":      {"train.txt", "the dog sleeps\n\n", "train.txt:2: "},
		"lines":      {"train.spans", "0-1 0-2\n", "train.txt has 2 lines, train.spans 1"},
		"no span":    {"train.spans", "0-1 0-2\nx 0-2\n", `train.spans:2: "x" is not a span`},
		"outside":    {"train.spans", "0-1 0-2\n1-3 0-2\n", `train.spans:2: "1-3" is not a span`},
		"one word":   {"train.spans", "0-1 0-2\n1-1 0-2\n", `train.spans:2: "1-1" is not a span`},
		"not whole":  {"train.spans", "0-1 0-2\n0-2 1-2\n", "train.spans:2: the last span is not the whole sentence, 0-2"},
		"vocabulary": {"vocabulary.txt", "<unk>\ndog\ndog\n", `"dog", number 2, occurs twice`},
	} {
		t.Run(name, func(t *testing.T) {
			d := small(t)
			files := d.files()
			m := d.manifest(files)
			content := make(map[string][]byte)
			for _, f := range files {
				content[f.name] = f.data
			}
			content[c.file] = []byte(c.text)
			if _, err := m.decode(content); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	later := manifest{Format: 99}
	sealed, err := disk.Seal(&later, &later.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	newer, damaged := string(sealed), strings.Replace(string(sealed), "99", "98", 1)
	for dir, want := range map[string]string{
		t.TempDir(): "is not a data set", write(t, map[string]string{"manifest.json": newer}): "newer version",
		write(t, map[string]string{"manifest.json": damaged}): "damaged",
		write(t, map[string]string{"manifest.json": "{"}):     "damaged",
	} {
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
