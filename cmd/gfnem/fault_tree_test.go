package main

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
)

// tree is the content of a folder, by path, without what differs from one life of the program to the next. A folder
// that is made and replaced as a whole has the contents of its files for its content.
type tree map[string]string

// readTree reads a folder.
func readTree(t *testing.T, dir string) tree {
	t.Helper()
	out := tree{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			out[name] = "folder"
			return nil
		}
		data, err := os.ReadFile(path)
		out[name] = lastingContent(name, data)
		if folder := filepath.Dir(name); isUnit(folder) {
			out[folder] += "\n" + e.Name() + "\n" + out[name]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	unit      = regexp.MustCompile(`(^data|/state/\d{12})$`)
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ| \d\d:\d\d UTC)`)
	// trained is how long that took, in a report; spent is the same in a summary.
	trained = regexp.MustCompile(`<dt>trained for</dt><dd>[^<]*</dd>`)
	spent   = regexp.MustCompile(`"seconds": [^,]*,`)
	// ownHash ends a sealed file; timedHash is that of a file with times, in another file.
	ownHash   = regexp.MustCompile(`"sha256": "[0-9a-f]{64}"\n}\n$`)
	timedHash = regexp.MustCompile(
		`("run": "|"(?:events[^"]*|run\.json)": {\s*"size": \d+,\s*"sha256": ")[0-9a-f]{64}`)
	timedReport = regexp.MustCompile(`("report\.html": {\s*"size": )\d+(,\s*"sha256": ")[0-9a-f]{64}`)
)

// isUnit reports whether a folder is made and replaced as a whole.
func isUnit(path string) bool { return unit.MatchString(path) }

func isJournal(path string) bool {
	return filepath.Base(path) == "metrics.jsonl" || isEvents(path)
}

// isSummary reports whether a path is that of a file that is written again with every checkpoint.
func isSummary(path string) bool { return filepath.Base(path) == "summary.json" }

func isEvents(path string) bool { return strings.HasPrefix(filepath.Base(path), "events.") }

// isTemporary reports whether a path is that of something that is being written or removed.
func isTemporary(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasSuffix(part, ".tmp") || strings.HasPrefix(part, ".") {
			return true
		}
	}
	return false
}

// temporary lists what a tree has of this.
func (t tree) temporary() []string { return slices.DeleteFunc(slices.Sorted(maps.Keys(t)), isLasting) }

func isLasting(path string) bool { return !isTemporary(path) }

// lasting is a tree without this.
func (t tree) lasting() tree {
	out := maps.Clone(t)
	maps.DeleteFunc(out, func(path, _ string) bool { return isTemporary(path) })
	return out
}

// lastingContent is the content of a file without times, hashes of times, and process ids.
func lastingContent(path string, data []byte) string {
	switch {
	case filepath.Base(path) == "lock":
		return "lock"
	case isEvents(path):
		return eventsWithoutTimes(data)
	}
	if disk.Intact(data) {
		if isSummary(path) {
			data = spent.ReplaceAll(data, nil)
		}
		data = ownHash.ReplaceAll(data, []byte("intact"))
	}
	data = timedHash.ReplaceAll(data, []byte("${1}HASH"))
	data = timedReport.ReplaceAll(data, []byte("${1}SIZE${2}HASH"))
	data = trained.ReplaceAll(data, nil)
	return string(timestamp.ReplaceAll(data, []byte("TIME")))
}

// eventsWithoutTimes returns the whole records of a file of events, without their times and checksums.
func eventsWithoutTimes(data []byte) string {
	const head, tail = 12, 4 // length and its checksum; checksum of the content
	var out bytes.Buffer
	for len(data) >= head {
		n := int(binary.LittleEndian.Uint32(data)) // of the content, which begins with a tag and 8 bytes of time
		if len(data) < head+n+tail {
			break
		}
		out.Write(data[head+9 : head+n])
		out.WriteString("\n")
		data = data[head+n+tail:]
	}
	return out.String()
}

// copyTree copies a folder's content.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// realDir is a new folder, by a path without symbolic links.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(disktest.MemoryDir(t))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestEventsWithoutTimes compares two writers of the same events.
func TestEventsWithoutTimes(t *testing.T) {
	t.Parallel()
	record := func(content string) []byte {
		head := binary.LittleEndian.AppendUint64(nil, uint64(len(content)))
		return append(append(append(head, "hsum"...), content...), "csum"...)
	}
	a := slices.Concat(record("\t12345678first"), record("\t12345678second"))
	b := slices.Concat(record("\tabcdefghfirst"), record("\tabcdefghsecond"))
	if got, want := eventsWithoutTimes(a), "first\nsecond\n"; got != want || eventsWithoutTimes(b) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := eventsWithoutTimes(a[:len(a)-1]), "first\n"; got != want {
		t.Errorf("of a record that is cut off, %q, want %q", got, want)
	}
}
