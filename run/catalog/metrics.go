package catalog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/run"
)

// Series is a metric of a run over its steps.
type Series struct{ X, Y []float64 }

const (
	metricsName = "metrics.jsonl"
	longestLine = 1 << 24
	tailBytes   = 1 << 16
)

// Series returns metrics of a run by name; those that were never logged are empty. A last line without its end is left
// out. It reads bytes: values of other names are passed over without being decoded.
func (r Run) Series(names ...string) (map[string]Series, error) {
	out := make(map[string]Series, len(names))
	at := make(map[string]int, len(names))
	all := make([]Series, len(names))
	for i, name := range names {
		at[name] = i
	}
	err := r.lines(func(line []byte) error {
		step := 0.0
		return fields(line, func(name, value []byte) (err error) {
			if string(name) == "step" {
				step, err = number(value)
			} else if i, ok := at[string(name)]; ok {
				var y float64
				y, err = number(value)
				all[i].X, all[i].Y = append(all[i].X, step), append(all[i].Y, y)
			}
			return err
		})
	})
	for name, i := range at {
		out[name] = all[i]
	}
	return out, err
}

// Metrics lists the names of what a run has logged.
func (r Run) Metrics() ([]string, error) {
	seen := map[string]bool{}
	err := r.lines(func(line []byte) error {
		return fields(line, func(name, _ []byte) error {
			if !seen[string(name)] {
				seen[string(name)] = true
			}
			return nil
		})
	})
	delete(seen, "step")
	return sortedKeys(seen), err
}

// lines calls f for each whole line of a run's metrics.
func (r Run) lines(f func(line []byte) error) error {
	path := filepath.Join(r.Dir, metricsName)
	file, err := disk.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read metrics: %w", err)
	}
	defer file.Close()
	in := bufio.NewScanner(file)
	in.Buffer(make([]byte, 1<<18), longestLine)
	in.Split(wholeLines)
	for n := 1; in.Scan(); n++ {
		if err := f(in.Bytes()); err != nil {
			return badinput.Errorf("read metrics: %s:%d: %w", path, n, err)
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("read metrics: %s: %w", path, err)
	}
	return nil
}

// wholeLines splits at line ends and drops what comes after the last one.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// TailProblem is how the part of Run.Wrong begins that is about the end of the journal.
const TailProblem = "read metrics: the end of "

// tail returns the values of the last lines, each the last one, also if there is an error about one of them.
func (r Run) tail() (last run.Point, err error) {
	path := filepath.Join(r.Dir, metricsName)
	file, err := disk.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return last, nil
	} else if err != nil {
		return last, fmt.Errorf("read metrics: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return last, err
	}
	from := max(0, info.Size()-tailBytes)
	data := make([]byte, info.Size()-from)
	n, err := file.ReadAt(data, from)
	if err != nil && !errors.Is(err, io.EOF) { // a resumed run has cut it meanwhile
		return last, fmt.Errorf("read metrics: %w", err)
	}
	data, err = data[:n], nil
	if from > 0 { // the first line may begin earlier
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	last.Values = map[string]float64{}
	for len(data) > 0 {
		_, line, _ := wholeLines(data, true)
		if line == nil {
			break
		}
		data = data[len(line)+1:]
		if e := fields(line, func(name, value []byte) error {
			y, err := number(value)
			switch {
			case err != nil:
			case string(name) == "step":
				last.Step = uint64(max(y, 0))
			default:
				last.Values[string(name)] = y
			}
			return err
		}); e != nil && err == nil {
			err = badinput.Errorf(TailProblem+"%s: %w", path, e)
		}
	}
	return last, err
}

var errLine = errors.New(`not a line of metrics, as {"step":1,"name":0.5}`)

// fields calls f for each name and value of a line, as run.Log writes it: without spaces, the step first, values that
// are numbers or texts without a backslash.
func fields(line []byte, f func(name, value []byte) error) error {
	n := len(line)
	if n < 2 || line[0] != '{' || line[n-1] != '}' {
		return errLine
	}
	rest, first := line[1:n-1], true
	for len(rest) > 0 || first {
		if len(rest) == 0 || rest[0] != '"' {
			return errLine
		}
		end := 1 + textEnd(rest[1:])
		if end == 0 || end+1 >= len(rest) || rest[end+1] != ':' {
			return errLine
		}
		name := rest[1:end]
		if bytes.IndexByte(name, '\\') >= 0 {
			var text string
			if err := json.Unmarshal(rest[:end+1], &text); err != nil {
				return err
			}
			name = []byte(text)
		}
		if first && string(name) != "step" {
			return errLine
		}
		first = false
		rest = rest[end+2:]
		end = bytes.IndexByte(rest, ',')
		if end < 0 {
			end = len(rest)
		} else if end == len(rest)-1 {
			return errLine
		}
		if err := f(name, rest[:end]); err != nil {
			return err
		}
		rest = rest[min(end+1, len(rest)):]
	}
	return nil
}

// textEnd finds the quote that ends a text; -1 if none does.
func textEnd(s []byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// number reads a value.
func number(text []byte) (float64, error) {
	s := string(text)
	switch s {
	case `"NaN"`, `"Inf"`, `"-Inf"`:
		s = strings.Trim(s, `"`)
	default: // ParseFloat takes more than JSON has
		if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') || strings.ContainsAny(s, "xXpPiInN_") {
			return 0, errLine
		}
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, errLine
	}
	return x, nil
}
