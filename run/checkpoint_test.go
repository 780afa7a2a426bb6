package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
	"pgregory.net/rapid"
)

// drawState draws any state that can be saved.
func drawState(t *rapid.T) State {
	arrays := rapid.MapOf(rapid.StringMatching(`(/[a-z_é"<]{1,4}){1,3}`), rapid.Custom(drawArray)).Draw(t, "arrays")
	extra := rapid.SampledFrom([]string{"", "null", "3", `{"a":[1,2.50,1e400,"<&>é"]}`, " { \"spaced\" : 1 }\n"})
	return State{
		Step:   rapid.Uint64().Draw(t, "step"),
		Arrays: arrays,
		Extra:  json.RawMessage(extra.Draw(t, "extra")),
	}
}

func drawArray(t *rapid.T) Array {
	a := Array{
		DType: rapid.SampledFrom(slices.Sorted(maps.Keys(dtypeOf))).Draw(t, "dtype"),
		Shape: rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(t, "shape"),
	}
	size := dtypeOf[a.DType].Size()
	for _, n := range a.Shape {
		size *= n
	}
	element := rapid.Byte()
	if a.DType == "BOOL" {
		element = rapid.ByteRange(0, 1)
	}
	a.Data = rapid.SliceOfN(element, size, size).Draw(t, "data")
	return a
}

func TestSaveLoad(t *testing.T) {
	base := disktest.MemoryDir(t)
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		s := disktest.New(dir)
		r, err := create(s, filepath.Join(dir, "run"), testOptions())
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		want := drawState(t)
		if err := r.Save(want); err != nil {
			t.Fatal(err)
		}
		got, warnings, err := r.Load()
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		if StateHash(got) != StateHash(want) {
			t.Error("the hash changed")
		}
		want.Extra = compact(want.Extra)
		if d := diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func compact(text json.RawMessage) json.RawMessage {
	return json.RawMessage(strings.NewReplacer(" ", "", "\n", "").Replace(string(text)))
}

func TestSaveIsDeterministic(t *testing.T) {
	s := State{Step: 5, Arrays: make(map[string]Array)}
	for i := range 50 {
		s.Arrays[fmt.Sprint("/v", i)] = Array{DType: "U8", Shape: []int{1}, Data: []byte{byte(i)}}
	}
	var first map[string]string
	for range 3 {
		r := newRun(t)
		if err := r.Save(s); err != nil {
			t.Fatal(err)
		}
		files := make(map[string]string)
		for _, name := range listDir(t, r.checkpointPath(5)) {
			files[name] = readFile(t, filepath.Join(r.checkpointPath(5), name))
		}
		if first == nil {
			first = files
		}
		if d := diff(first, files); d != "" || len(files) != 3 {
			t.Errorf("two checkpoints of one state differ: %s", d)
		}
	}
}

// Any change to any part of a state changes its hash.
func TestStateHash(t *testing.T) {
	base := func() State {
		return State{Step: 1, Extra: json.RawMessage(`{"a":1}`), Arrays: map[string]Array{
			"ab": {DType: "U8", Shape: []int{2}, Data: []byte{1, 2}},
			"c":  {DType: "U8", Shape: []int{1, 1}, Data: []byte{3}},
		}}
	}
	seen := map[string]string{StateHash(base()): "base"}
	for name, change := range map[string]func(*State){
		"step":    func(s *State) { s.Step = 2 },
		"extra":   func(s *State) { s.Extra = json.RawMessage(`{"a":2}`) },
		"bad":     func(s *State) { s.Extra = json.RawMessage(`{"a"`) },
		"missing": func(s *State) { delete(s.Arrays, "c") },
		"renamed": func(s *State) { s.Arrays["d"] = s.Arrays["c"]; delete(s.Arrays, "c") },
		"dtype":   func(s *State) { s.Arrays["ab"] = Array{"BOOL", []int{2}, []byte{1, 2}} },
		"shape":   func(s *State) { s.Arrays["ab"] = Array{"U8", []int{1, 2}, []byte{1, 2}} },
		"data":    func(s *State) { s.Arrays["ab"] = Array{"U8", []int{2}, []byte{1, 3}} },
	} {
		s := base()
		change(&s)
		if other, ok := seen[StateHash(s)]; ok {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[StateHash(s)] = name
	}
}

func TestSaveKeepsNewest(t *testing.T) {
	r := newRun(t)
	for step := uint64(1); step <= 5; step++ {
		if err := r.Save(toyState(step)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{checkpointName(3), checkpointName(4), checkpointName(5)}
	if d := diff(want, listDir(t, r.path(stateName))); d != "" {
		t.Error(d)
	}
}

func TestSaveTwice(t *testing.T) {
	r := newRun(t)
	other := toyState(1)
	other.Extra = json.RawMessage(`"other"`)
	if err := errors.Join(r.Save(toyState(1)), r.Save(other)); err != nil {
		t.Fatal(err)
	}
	if got, _, err := r.Load(); err != nil || string(got.Extra) != `{"cursor":3}` {
		t.Errorf("the second Save replaced the first: %s, %v", got.Extra, err)
	}
	// Unless the first does not verify any more.
	writeString(t, filepath.Join(r.checkpointPath(1), stateFileName), "{}")
	if err := r.Save(other); err != nil {
		t.Fatal(err)
	}
	if got, warnings, err := r.Load(); err != nil || len(warnings) > 0 || string(got.Extra) != `"other"` {
		t.Errorf("the second Save did not replace a damaged checkpoint: %s, %v, %v", got.Extra, warnings, err)
	}
}

func TestSaveRefuses(t *testing.T) {
	r := newRun(t)
	for want, s := range map[string]State{
		`save checkpoint 1: write array "a": F32 of shape [2] takes 8 bytes, not 4`: {Step: 1,
			Arrays: map[string]Array{"a": {"F32", []int{2}, make([]byte, 4)}}},
		`save checkpoint 2: write array "__metadata__": not a name for an array`: {Step: 2,
			Arrays: map[string]Array{"__metadata__": {"U8", []int{0}, nil}}},
	} {
		if err := r.Save(s); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := r.Save(State{Extra: json.RawMessage("{")}); err == nil {
		t.Error("saved broken JSON")
	}
	if names := listDir(t, r.path(stateName)); len(names) > 0 {
		t.Errorf("refused states left %v", names)
	}
}

// A flipped bit anywhere in a checkpoint, or a file cut or lost, makes Load fall back to the one before, and say so.
func TestLoadFallsBack(t *testing.T) {
	r := newRun(t)
	if err := errors.Join(r.Save(toyState(1)), r.Save(toyState(2)), r.Close()); err != nil {
		t.Fatal(err)
	}
	reader, err := Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T) {
		t.Helper()
		got, warnings, err := reader.Load()
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(toyState(1), got); d != "" {
			t.Fatal(d)
		}
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "checkpoint 2 is damaged and skipped: ") {
			t.Fatalf("warnings: %q", warnings)
		}
	}
	for _, name := range []string{arraysName, stateFileName, manifestName} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(r.checkpointPath(2), name)
			good := readFile(t, path)
			defer writeString(t, path, good)
			for i := range good {
				bad := []byte(good)
				bad[i] ^= 1 << (i % 8)
				writeString(t, path, string(bad))
				check(t)
			}
			writeString(t, path, good[:len(good)/2])
			check(t)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			check(t)
		})
	}
	t.Run("renamed", func(t *testing.T) {
		if err := os.Rename(reader.checkpointPath(1), reader.checkpointPath(7)); err != nil {
			t.Fatal(err)
		}
		if got, warnings, err := reader.Load(); err != nil || got.Step != 2 || len(warnings) != 1 {
			t.Errorf("loaded %d: %v, %v", got.Step, warnings, err)
		}
	})
}

func TestLoadAllDamaged(t *testing.T) {
	r := newRun(t)
	if err := errors.Join(r.Log(1, nil), r.Save(toyState(1)), r.Save(toyState(2)), r.Log(2, nil), r.Close()); err != nil {
		t.Fatal(err)
	}
	for step := uint64(1); step <= 2; step++ {
		writeString(t, filepath.Join(r.checkpointPath(step), manifestName), "")
	}
	r, err := Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, _, err = r.Load()
	if err == nil || errors.Is(err, ErrNoCheckpoint) || !strings.Contains(err.Error(), "all 2 checkpoints are damaged") {
		t.Errorf("Load returned %v", err)
	}
	if points, err := ReadMetrics(r.dir); err != nil || len(points) != 2 {
		t.Errorf("a failed Load changed the metrics: %v, %v", points, err)
	}
	if d := diff([]string{checkpointName(1), checkpointName(2)}, listDir(t, r.path(stateName))); d != "" {
		t.Errorf("a failed Load changed the checkpoints: %s", d)
	}
}

// Resuming from an older checkpoint sets the damaged one aside and takes the journals back.
func TestLoadRewinds(t *testing.T) {
	r := newRun(t)
	for step := uint64(1); step <= 2; step++ {
		if err := errors.Join(r.Log(step, map[string]float64{"a": 1}), r.Save(toyState(step))); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	writeString(t, filepath.Join(r.checkpointPath(2), arraysName), "")
	r, err := Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if s, warnings, err := r.Load(); err != nil || s.Step != 1 || len(warnings) != 1 {
		t.Fatalf("loaded %d: %v, %v", s.Step, warnings, err)
	}
	if s, warnings, err := r.Load(); err != nil || s.Step != 1 || len(warnings) != 0 {
		t.Fatalf("loaded again %d: %v, %v", s.Step, warnings, err)
	}
	if got := readFile(t, r.path(metricsName)); got != "{\"step\":1,\"a\":1}\n" {
		t.Errorf("metrics: %q", got)
	}
	if got := len(decodeEvents(t, readFile(t, r.path(eventsName)))); got != 2 {
		t.Errorf("%d events, want the version and step 1", got)
	}
	if err := r.Save(toyState(2)); err != nil {
		t.Fatal(err)
	}
	want := []string{checkpointName(1), checkpointName(2), checkpointName(2) + damagedSuffix}
	if d := diff(want, listDir(t, r.path(stateName))); d != "" {
		t.Error(d)
	}
	if s, warnings, err := r.Load(); err != nil || s.Step != 2 || len(warnings) != 0 {
		t.Errorf("loaded %d: %v, %v", s.Step, warnings, err)
	}
}

func TestOpenSweeps(t *testing.T) {
	r := newRun(t)
	if err := errors.Join(r.Save(toyState(1)), r.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(r.checkpointPath(2)+disk.TmpSuffix, 0o777); err != nil {
		t.Fatal(err)
	}
	r, err := Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if d := diff([]string{checkpointName(1)}, listDir(t, r.path(stateName))); d != "" {
		t.Error(d)
	}
}

// Save works even if an earlier one could not clean up after itself.
func TestSaveOverLeftovers(t *testing.T) {
	r := newRun(t)
	if err := os.MkdirAll(filepath.Join(r.checkpointPath(1)+disk.TmpSuffix, "leftover"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := r.Save(toyState(1)); err != nil {
		t.Fatal(err)
	}
	want := []string{arraysName, manifestName, stateFileName}
	if d := diff(want, listDir(t, r.checkpointPath(1))); d != "" {
		t.Error(d)
	}
}
