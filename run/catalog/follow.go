package catalog

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

// Follower reads what a run logs: first all of it, and at each later call what was added since.
type Follower struct {
	Dir string

	path string
	read int64  // of the file
	last []byte // the line before that, to see whether the file was cut and written anew
}

// followBytes is what is read at once.
const followBytes = 1 << 18

// Next calls value for each value that was logged since the last call, in order; the name is valid until it returns.
// If the journal was cut, as by a run that was resumed from an earlier checkpoint, it calls anew and begins at the beginning.
func (f *Follower) Next(anew func(), value func(step float64, name []byte, y float64)) error {
	if f.path == "" {
		f.path = filepath.Join(f.Dir, metricsName)
	}
	file, err := disk.OpenRead(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == f.read {
		return nil
	}
	before := make([]byte, len(f.last))
	if _, err := file.ReadAt(before, f.read-int64(len(f.last))); f.read > 0 && (err != nil || !bytes.Equal(before, f.last)) {
		f.read, f.last = 0, nil
		anew()
	}
	buffer := make([]byte, min(followBytes, info.Size()-f.read))
	for {
		n, err := file.ReadAt(buffer, f.read)
		if err != nil && err != io.EOF {
			return err
		}
		end := bytes.LastIndexByte(buffer[:n], '\n') + 1
		if end == 0 && n < len(buffer) || n == 0 {
			return nil
		} else if end == 0 { // a line that is longer than the buffer
			if len(buffer) > longestLine {
				return badinput.Errorf("%s has a line of more than %d bytes", f.path, longestLine)
			}
			buffer = make([]byte, 2*len(buffer))
			continue
		}
		if err := Values(buffer[:end], value); err != nil {
			return badinput.Errorf("%s: %w", f.path, err)
		}
		f.read += int64(end)
		begin := bytes.LastIndexByte(buffer[:end-1], '\n') + 1
		f.last = bytes.Clone(buffer[begin:end])
	}
}

// Values calls value for each value of some whole lines of metrics.
func Values(lines []byte, value func(step float64, name []byte, y float64)) error {
	for len(lines) > 0 {
		line, rest, _ := bytes.Cut(lines, []byte{'\n'})
		step, first := 0.0, true
		if err := fields(line, func(name, text []byte) error {
			y, err := number(text)
			if first {
				step, first = y, false
			} else if err == nil {
				value(step, name, y)
			}
			return err
		}); err != nil {
			return err
		}
		lines = rest
	}
	return nil
}

// Glimpse is Values of a few places of a run's metrics, so many at most, evenly spread, and of the end: what the run
// looks like before all of it has been read.
func Glimpse(dir string, places int, value func(step float64, name []byte, y float64)) error {
	const piece = 1024
	file, err := disk.OpenRead(filepath.Join(dir, metricsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	buffer := make([]byte, piece)
	for k := range places {
		from := (info.Size() - piece) * int64(k) / int64(max(places-1, 1))
		n, err := file.ReadAt(buffer, max(from, 0))
		if err != nil && err != io.EOF {
			return err
		}
		text := buffer[:n]
		if from > 0 {
			text = text[bytes.IndexByte(text, '\n')+1:]
		}
		if err := Values(text[:bytes.LastIndexByte(text, '\n')+1], value); err != nil {
			return err
		}
		if from <= 0 && info.Size() <= piece {
			return nil
		}
	}
	return nil
}
