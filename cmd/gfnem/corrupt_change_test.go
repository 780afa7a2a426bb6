package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// change is one thing that happened to a folder.
type change struct {
	kind  string
	file  string   // below the folder; a checkpoint's folder if that was deleted
	where string   // in the file
	also  []string // other files that it touched
	away  string   // the file that a link points to, which is not in the folder
	kept  []byte   // what is in it; nil if it is not there
}

// wroteAway reports whether somebody has followed the link to write.
func (c change) wroteAway() bool {
	now, err := os.ReadFile(c.away)
	return c.away != "" && !(errors.Is(err, fs.ErrNotExist) && c.kept == nil) && !(err == nil && bytes.Equal(now, c.kept))
}

func (c change) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s", c.file, c.kind, c.where))
}

// kinds of changes. Each returns false where it makes no sense.
var kinds = []struct {
	name string
	do   func(*disturbance) bool
}{
	{"bit flipped", func(d *disturbance) bool {
		i := d.IntN(len(d.data))
		d.data[i] ^= 1 << d.IntN(8)
		return d.at(i)
	}},
	{"bytes set", func(d *disturbance) bool {
		i := d.IntN(len(d.data))
		for j := i; j < min(len(d.data), i+1+d.IntN(16)); j++ {
			d.data[j] = byte(d.IntN(256))
		}
		return d.at(i)
	}},
	{"digit changed", func(d *disturbance) bool {
		var digits []int
		for i, c := range d.data {
			if '0' <= c && c <= '9' {
				digits = append(digits, i)
			}
		}
		if !d.isText() || len(digits) == 0 {
			return false
		}
		i := digits[d.IntN(len(digits))]
		d.data[i] = '0' + (d.data[i]-'0'+1+byte(d.IntN(9)))%10
		return d.at(i)
	}},
	{"truncated", func(d *disturbance) bool {
		d.data = d.data[:d.IntN(len(d.data))]
		return d.at(len(d.data))
	}},
	{"extended", func(d *disturbance) bool {
		more := [][]byte{{0}, []byte("\n"), []byte("{}"), d.data, bytes.Repeat([]byte{0}, 4096)}[d.IntN(5)]
		d.where = fmt.Sprintf("by %d bytes", len(more))
		d.data = slices.Concat(d.data, more)
		return true
	}},
	{"emptied", func(d *disturbance) bool { d.data = nil; return true }},
	{"other JSON", func(d *disturbance) bool {
		d.where = []string{"{}", "null", "[]", "1", `{"format":1}`}[d.IntN(5)]
		d.data = []byte(d.where)
		return strings.Contains(filepath.Ext(d.file), "json")
	}},
	{"line twice", func(d *disturbance) bool {
		lines := bytes.SplitAfter(d.data, []byte("\n"))
		i := d.IntN(len(lines))
		d.where = fmt.Sprintf("(line %d)", i+1)
		d.data = bytes.Join(slices.Insert(lines, i, lines[i]), nil)
		return d.isText()
	}},
	{"line removed", func(d *disturbance) bool {
		lines := bytes.SplitAfter(d.data, []byte("\n"))
		i := d.IntN(len(lines))
		d.where = fmt.Sprintf("(line %d)", i+1)
		d.data = bytes.Join(slices.Delete(lines, i, i+1), nil)
		return d.isText()
	}},
	{"from elsewhere", func(d *disturbance) bool { // the same file of another checkpoint, cell or run
		var same []string
		for _, f := range d.copies {
			if filepath.Base(f) == filepath.Base(d.file) && f != filepath.Join(d.copy(), d.file) {
				same = append(same, f)
			}
		}
		if len(same) == 0 {
			return false
		}
		from := same[d.IntN(len(same))]
		d.where = "(" + from + ")"
		d.data, d.err = os.ReadFile(from)
		return true
	}},
	{"swapped", func(d *disturbance) bool {
		other := d.files[d.IntN(len(d.files))]
		if other == d.file {
			return false
		}
		d.where, d.also = "with "+other, []string{other}
		mine := d.data
		d.data, d.err = os.ReadFile(d.path(other))
		d.err = errors.Join(d.err, os.WriteFile(d.path(other), mine, 0o666))
		return true
	}},
	{"deleted", func(d *disturbance) bool { return d.instead(func(string) error { return nil }) }},
	{"a folder", func(d *disturbance) bool { return d.instead(func(p string) error { return os.Mkdir(p, 0o777) }) }},
	{"a pipe", func(d *disturbance) bool { return d.instead(mkfifo) }},
	{"a link to a copy", func(d *disturbance) bool {
		d.away, d.kept = d.copy()+"-away", slices.Concat([]byte{}, d.data)
		d.err = os.WriteFile(d.away, d.data, 0o666)
		return d.instead(func(p string) error { return os.Symlink(d.away, p) })
	}},
	{"a link to nothing", func(d *disturbance) bool {
		d.away = d.copy() + "-away"
		d.err = os.RemoveAll(d.away)
		return d.instead(func(p string) error { return os.Symlink(d.away, p) })
	}},
	{"a link to itself", func(d *disturbance) bool {
		return d.instead(func(p string) error { return os.Symlink(filepath.Base(p), p) })
	}},
	{"unreadable", func(d *disturbance) bool {
		d.gone = true
		d.err = os.Chmod(d.path(d.file), 0)
		return os.Getuid() > 0
	}},
	{"checkpoint deleted", func(d *disturbance) bool {
		if filepath.Base(filepath.Dir(filepath.Dir(d.file))) != "state" {
			return false
		}
		d.file, d.gone = filepath.Dir(d.file), true
		d.err = os.RemoveAll(d.path(d.file))
		return true
	}},
}

// disturbance makes a change.
type disturbance struct {
	*rand.Rand
	*fixture
	change
	data []byte // of the file
	gone bool   // the file is changed already
	err  error
}

func (d *disturbance) path(name string) string { return filepath.Join(d.dir(), name) }

func (d *disturbance) at(i int) bool {
	d.where = fmt.Sprintf("at byte %d", i)
	return true
}

// isText reports whether somebody may have edited the file.
func (d *disturbance) isText() bool {
	return slices.Contains([]string{".json", ".toml", ".jsonl", ".txt", ".spans"}, filepath.Ext(d.file))
}

// instead puts something else in the place of the file.
func (d *disturbance) instead(put func(path string) error) bool {
	d.gone = true
	path := d.path(d.file)
	d.err = errors.Join(d.err, os.Remove(path), put(path))
	return true
}

// disturb makes a change of any kind to a file, and reports whether anything is different now.
func (f *fixture) disturb(r *rand.Rand, file string) (change, bool, error) {
	for {
		whole, err := os.ReadFile(filepath.Join(f.dir(), file))
		if err != nil {
			return change{}, false, err
		}
		k := kinds[r.IntN(len(kinds))]
		if k.name == "unreadable" && os.Getuid() <= 0 || len(whole) == 0 && slices.Contains(nonempty, k.name) {
			continue
		}
		d := &disturbance{Rand: r, fixture: f, change: change{kind: k.name, file: file}, data: bytes.Clone(whole)}
		if !k.do(d) {
			continue
		}
		if d.err != nil || d.gone {
			return d.change, true, d.err
		}
		return d.change, !bytes.Equal(whole, d.data), os.WriteFile(d.path(file), d.data, 0o666)
	}
}

// nonempty are the kinds of changes that need something in the file.
var nonempty = []string{"bit flipped", "bytes set", "truncated", "emptied"}
