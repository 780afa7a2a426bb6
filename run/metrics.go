package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gfnem/gfnem/internal/disk"
)

// Point is one line of metrics.jsonl.
type Point struct {
	Step   uint64
	Values map[string]float64
}

// Curve returns the steps and the values of a metric, where it was logged.
func Curve(points []Point, name string) (x, y []float64) {
	for _, p := range points {
		if v, ok := p.Values[name]; ok {
			x, y = append(x, float64(p.Step)), append(y, v)
		}
	}
	return x, y
}

// stepKey holds the step of a line; no value may have this name.
const stepKey = "step"

// Log appends scalars to metrics.jsonl and to the TensorBoard events. In metrics.jsonl the same scalars always give
// the same bytes.
func (r *Run) Log(step uint64, values map[string]float64) error {
	if err := r.log(Point{step, values}); err != nil {
		return fmt.Errorf("log step %d: %w", step, err)
	}
	return nil
}

func (r *Run) log(p Point) error {
	if err := r.writable(); err != nil {
		return err
	}
	line, err := encodePoint(p)
	if err != nil {
		return err
	}
	if err := r.metrics.append(line); err != nil {
		return err
	}
	var record []byte
	if r.events.size == 0 {
		record = appendRecord(record, appendBytes(appendWallTime(nil, now()), tagFileVersion, []byte(eventVersion)))
	}
	return r.events.append(appendRecord(record, scalarsEvent(now(), p.Step, p.Values)))
}

// encodePoint returns a line of JSON: the step first, then the values in order of name.
func encodePoint(p Point) ([]byte, error) {
	line := fmt.Appendf(nil, `{"%s":%d`, stepKey, p.Step)
	values := make(map[string]scalar, len(p.Values))
	for name, value := range p.Values {
		values[name] = scalar(value)
	}
	if _, ok := values[stepKey]; ok {
		return nil, fmt.Errorf("a value cannot be named %q", stepKey)
	} else if len(values) == 0 {
		return append(line, '}', '\n'), nil
	}
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	text[0] = ',' // in place of the bracket
	return append(append(line, text...), '\n'), nil
}

// scalar is a float64 that JSON can hold even if it is not finite, as "NaN", "Inf" or "-Inf".
type scalar float64

func (s scalar) MarshalJSON() ([]byte, error) {
	f := float64(s)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return json.Marshal(strings.TrimPrefix(fmt.Sprint(f), "+"))
	}
	return json.Marshal(f)
}

func (s *scalar) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `"NaN"`, `"Inf"`, `"-Inf"`:
		f, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
		*s = scalar(f)
		return err
	case "null":
		return errors.New("null is not a number")
	}
	return json.Unmarshal(text, (*float64)(s))
}

func decodePoint(line []byte) (Point, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return Point{}, err
	}
	p := Point{Values: make(map[string]float64, len(fields))}
	step, ok := fields[stepKey]
	if !ok {
		return Point{}, errors.New("no step")
	}
	if err := json.Unmarshal(step, &p.Step); err != nil {
		return Point{}, fmt.Errorf("step: %w", err)
	}
	delete(fields, stepKey)
	for name, text := range fields {
		var s scalar
		if err := json.Unmarshal(text, &s); err != nil {
			return Point{}, fmt.Errorf("%s: %w", name, err)
		}
		p.Values[name] = float64(s)
	}
	return p, nil
}

// ReadMetrics returns what a run has logged. A last line without its end, which a killed process leaves and a
// running one may be writing, is not part of it.
func ReadMetrics(dir string) ([]Point, error) {
	path := filepath.Join(dir, metricsName)
	data, err := disk.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	lines := bytes.Split(data, []byte("\n"))
	points := make([]Point, len(lines)-1)
	for i := range points {
		if points[i], err = decodePoint(lines[i]); err != nil {
			return nil, fmt.Errorf("read metrics: %s:%d: %w", path, i+1, err)
		}
	}
	return points, nil
}
