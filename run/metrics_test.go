package run

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestLog(t *testing.T) {
	r := newRun(t)
	for _, p := range []Point{
		{1, map[string]float64{"z": 0.1, "a": 1e-7, "m/loss": 1e21}},
		{2, map[string]float64{"nan": math.NaN(), "inf": math.Inf(1), "neg": math.Inf(-1)}},
		{math.MaxUint64, nil},
	} {
		if err := r.Log(p.Step, p.Values); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"step":1,"a":1e-7,"m/loss":1e+21,"z":0.1}
{"step":2,"inf":"Inf","nan":"NaN","neg":"-Inf"}
{"step":18446744073709551615}
`
	if got := readFile(t, r.path(metricsName)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if err := r.Log(3, map[string]float64{"step": 1}); err == nil {
		t.Error("logged a value named step")
	}
}

func TestPointRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Point{
			Step:   rapid.Uint64().Draw(t, "step"),
			Values: rapid.MapOf(rapid.StringMatching(`[a-z/"é]{1,6}`), rapid.Float64()).Draw(t, "values"),
		}
		if rapid.Bool().Draw(t, "special") {
			want.Values["special"] = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(t, "f")
		}
		delete(want.Values, stepKey)
		line, err := encodePoint(want)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(line) || strings.Count(string(line), "\n") != 1 {
			t.Errorf("not a line of JSON: %q", line)
		}
		got, err := decodePoint(line)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func TestReadMetrics(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, metricsName)
	const whole = "{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":2}\n"
	const torn = "{\"step\":3,\"a\":3}"
	for cut := range len(torn) + 1 {
		writeString(t, path, whole+torn[:cut])
		points, err := ReadMetrics(dir)
		if err != nil || len(points) != 2 || points[1].Values["a"] != 2 {
			t.Errorf("with a torn line %q: %v, %v", torn[:cut], points, err)
		}
	}
	for _, bad := range []string{"{\"step\":\n", "{\"a\":1}\n", "{\"step\":1,\"a\":\"many\"}\n", "{\"step\":1,\"a\":null}\n",
		"{\"step\":-1}\n", "\n"} {
		writeString(t, path, whole+bad+whole)
		if _, err := ReadMetrics(dir); err == nil || !strings.Contains(err.Error(), metricsName+":3: ") {
			t.Errorf("with line %q: %v", bad, err)
		}
	}
	if _, err := ReadMetrics(t.TempDir()); err == nil {
		t.Error("read metrics that are not there")
	}
}

func TestCurve(t *testing.T) {
	points := []Point{
		{Step: 1, Values: map[string]float64{"a": 3}}, {Step: 2, Values: map[string]float64{"b": 4}},
		{Step: 5, Values: map[string]float64{"a": -1, "b": 0}},
	}
	if x, y := Curve(points, "a"); !slices.Equal(x, []float64{1, 5}) || !slices.Equal(y, []float64{3, -1}) {
		t.Errorf("the curve is at %v, with values %v", x, y)
	}
}
