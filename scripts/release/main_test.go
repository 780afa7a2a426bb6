package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var whole = flag.Bool("whole", false, "build gfnem itself twice, not a small program: minutes, where nothing is cached")

// A small repository with what a release needs.
var small = map[string]string{
	"go.mod":    "module github.com/gfnem/gfnem\n\ngo 1.26\n",
	"README.md": "read me", "CHANGELOG.md": "changes", "LICENSE": "our licence", "mnist/LICENSE-DATA.md": "of data",
	"serve/static/uplot/LICENSE": "licence of charts",
	"cmd/gfnem/main.go": `package main

import (
	"os"
	"runtime"
)

func main() {
	if os.Args[1] == "version" {
		os.Stdout.WriteString("{\"version\":\"1.2.3\",\"revision\":\"abc\",\"date\":\"2026-01-02T03:04:05Z\"}")
		return
	}
	_, file, _, _ := runtime.Caller(0)
	os.Stdout.WriteString(os.Args[1] + " from " + file)
}
`,
}

// repository makes one in a new folder: the small one, or ours as it is, as a revision of git.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := maps.Clone(small)
	git := func(root string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		for _, who := range []string{"AUTHOR", "COMMITTER"} {
			cmd.Env = append(cmd.Env, "GIT_"+who+"_NAME=a", "GIT_"+who+"_EMAIL=a@example.com", "GIT_"+who+"_DATE=2026-01-02T03:04:05Z")
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if *whole {
		for name := range strings.SplitSeq(strings.TrimSpace(git("../..", "ls-files", "-co", "--exclude-standard")), "\n") {
			data, err := os.ReadFile(filepath.Join("../..", name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(data)
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if *whole {
		git(dir, "init", "-q")
		git(dir, "add", ".")
		git(dir, "commit", "-qm", "all")
	}
	return dir
}

// released makes a release in a new repository and returns its files.
func released(t *testing.T, traces bool, platforms ...string) map[string][]byte {
	t.Helper()
	out := t.TempDir()
	var log bytes.Buffer
	if err := (release{root: repository(t), out: out, platforms: platforms, log: &log, traces: traces}).run(); err != nil {
		t.Fatalf("%v\n%s", err, log.Bytes())
	}
	if strings.Contains(log.String(), "warning") {
		t.Error(log.String())
	}
	files := map[string][]byte{}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(out, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Two folders make the same bytes, and would not if programs held the names of these.
func TestReproducible(t *testing.T) {
	t.Parallel()
	here := runtime.GOOS + "/" + runtime.GOARCH
	one, other := released(t, false, here), released(t, false, here)
	if len(one) != 2 || !maps.EqualFunc(one, other, bytes.Equal) {
		t.Errorf("%d files in one folder differ from %d in another", len(one), len(other))
	}
	if *whole {
		return
	}
	if with := released(t, true, here); maps.EqualFunc(one, with, bytes.Equal) {
		t.Error("programs that hold the name of their folder are the same bytes")
	}
}

// An archive has everything, for every platform, and the sums are right.
func TestArchives(t *testing.T) {
	if *whole {
		t.Skip("of the small program")
	}
	t.Parallel()
	got := released(t, false, "linux/"+runtime.GOARCH, "windows/"+runtime.GOARCH)
	var sums strings.Builder
	onLinux, onWindows := "gfnem-1.2.3-linux-"+runtime.GOARCH, "gfnem-1.2.3-windows-"+runtime.GOARCH
	for _, name := range []string{onLinux + ".tar.gz", onWindows + ".zip"} {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(got[name]), name)
	}
	if string(got["SHA256SUMS"]) != sums.String() {
		t.Errorf("the sums are %s, want %s", got["SHA256SUMS"], sums.String())
	}
	want := []string{"CHANGELOG.md", "LICENSE", "LICENSE-DATA.md", "README.md", "THIRD-PARTY.txt",
		"completions/_gfnem", "completions/gfnem.bash", "completions/gfnem.fish"}
	linux := unTar(t, got[onLinux+".tar.gz"], onLinux+"/")
	if names := slices.Sorted(maps.Keys(linux)); !slices.Equal(names, append(slices.Clone(want), "gfnem", "gfnem.1")) {
		t.Errorf("linux: %q", names)
	}
	if !strings.HasPrefix(linux["gfnem"], "\x7fELF") || linux["README.md"] != "read me" ||
		!strings.Contains(linux["gfnem.1"], "man from ") {
		t.Error("files of linux are not what they should be")
	}
	if !strings.Contains(linux["THIRD-PARTY.txt"], "The Go Authors") {
		t.Error("the licence of Go is missing")
	}
	if !strings.Contains(linux["THIRD-PARTY.txt"], "licence of charts") {
		t.Error("the licence of the charts of the page is missing")
	}
	windows := unZip(t, got[onWindows+".zip"], onWindows+"/")
	if names := slices.Sorted(maps.Keys(windows)); !slices.Equal(names, append(slices.Clone(want), "gfnem.1", "gfnem.exe")) {
		t.Errorf("windows: %q", names)
	}
	if !strings.HasPrefix(windows["gfnem.exe"], "MZ") {
		t.Error("the program is not one of windows")
	}
}

func unTar(t *testing.T, data []byte, folder string) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files, archive := map[string]string{}, tar.NewReader(plain)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if runs := h.Mode == 0o755; runs != (h.Name == folder+"gfnem") {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(h.Name, folder)] = string(text)
	}
}

func unZip(t *testing.T, data []byte, folder string) map[string]string {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(f.Name, folder)] = string(text)
	}
	return files
}
