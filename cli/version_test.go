package cli

import (
	"encoding/json"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/gfnem/gfnem/run"
)

// What the compiler leaves in a program says which version it is, ours by its constant and others by their module.
func TestBuild(t *testing.T) {
	vcs := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		{Key: "vcs.modified", Value: "true"},
	}
	at := func(path, version string) debug.Module { return debug.Module{Path: path, Version: version} }
	for _, c := range []struct {
		version string
		info    *debug.BuildInfo
		want    string
		library string
	}{
		{"", nil, "devel", ""},
		{"1.2.3", nil, "1.2.3", ""},
		{"", &debug.BuildInfo{Main: at("example.com/words", "(devel)")}, "devel", Version},
		{"", &debug.BuildInfo{Main: at("example.com/words", "v1.0.0"), Settings: vcs[:2]},
			"1.0.0 (revision 0123456789ab, of 2026-01-02T03:04:05Z)", Version},
		{Version, &debug.BuildInfo{Main: at(ours, "v0.0.0-2026"), Settings: vcs},
			Version + " (revision 0123456789ab, of 2026-01-02T03:04:05Z, modified)", ""},
	} {
		if b := newBuild(c.version, c.info); b.String() != c.want || b.Library != c.library {
			t.Errorf("%+v: %q of library %q, want %q of %q", c.info, b, b.Library, c.want, c.library)
		}
	}
}

func TestVersion(t *testing.T) {
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(Version) {
		t.Errorf("the version %q is not three numbers", Version)
	}
	p := Program{Name: "adder", Version: "4.5.6", Tasks: []run.Task{adding{"plain"}}}
	line, _ := says(t, p, ExitOK, "--version")
	contains(t, line, "adder 4.5.6")
	text, _ := says(t, p, ExitOK, "version")
	if text[:len(line)] != line {
		t.Errorf("--version says %q, version %q", line, text)
	}
	contains(t, text, "\nbackends: ")
	out, _ := says(t, p, ExitOK, "version", "--json")
	var b map[string]any
	if err := json.Unmarshal([]byte(out), &b); err != nil || b["version"] != "4.5.6" || b["revision"] == nil || b["date"] == nil {
		t.Errorf("%s: %v", out, err)
	}
	says(t, p, ExitBadInput, "completion", "csh")
}
