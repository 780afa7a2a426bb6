package config

import (
	"math"
	"path/filepath"
	"testing"
)

func TestCheckRanges(t *testing.T) {
	if err := CheckRanges([]Range{{"a", 1, 1, 2}, {"b", 2, 1, 2}, {"c", math.Inf(1), 0, math.Inf(1)}}); err != nil {
		t.Error(err)
	}
	for want, v := range map[string]float64{
		"b = 0.5 is not between 1 and 2": 0.5, "b = 3 is not between 1 and 2": 3, "b = NaN is not between 1 and 2": math.NaN(),
	} {
		err := CheckRanges([]Range{{"a", 1, 1, 2}, {"b", v, 1, 2}, {"c", 5, 1, 2}})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestCheckName(t *testing.T) {
	if err := CheckName("shape", "square", "round", "square"); err != nil {
		t.Error(err)
	}
	for _, value := range []string{"squar", "", "round square"} {
		want := `shape = "` + value + `" is not one of round square`
		if err := CheckName("shape", value, "round", "square"); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestMakeAbsolute(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	dir, err := filepath.Abs(".") // as the system names it
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"digits": "digits", "": "", "./digits": filepath.Join(dir, "digits"), "a/../b": filepath.Join(dir, "b"), dir: dir,
	} {
		got := path
		if err := MakeAbsolute("data", &got, "digits", ""); err != nil || got != want {
			t.Errorf("%q becomes %q, error %v, want %q", path, got, err, want)
		}
	}
}
