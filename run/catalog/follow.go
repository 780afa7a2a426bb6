package catalog

import (
	"bytes"
	"cmp"
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

	path  string
	read  int64  // of the file
	last  []byte // the line before that, to see whether the file was cut and written anew
	lines int    // before that
	// Lines that are none of metrics: how many, and the first.
	bad, firstBad int
}

// followBytes is what is read at once.
const followBytes = 1 << 18

// Next calls value for each value that was logged since the last call, in order; the name is valid until it returns.
// If the journal was cut, as by a run that was resumed from an earlier checkpoint, it calls anew and begins at the
// beginning. Lines that are none of metrics are passed over; as long as there are some, each call returns an error that
// says so.
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
		return f.damage()
	}
	before := make([]byte, len(f.last))
	if _, err := file.ReadAt(before, f.read-int64(len(f.last))); f.read > 0 && (err != nil || !bytes.Equal(before, f.last)) {
		*f = Follower{Dir: f.Dir, path: f.path}
		anew()
	}
	err = f.pieces(file, f.read, info.Size(), func(piece []byte) {
		f.lines += Values(piece, func(line int) {
			if f.bad++; f.bad == 1 {
				f.firstBad = f.lines + line
			}
		}, value)
		f.read += int64(len(piece))
		f.last = bytes.Clone(piece[bytes.LastIndexByte(piece[:len(piece)-1], '\n')+1:])
	})
	return cmp.Or(err, f.damage())
}

// Again calls value for each value that Next has handed on, once more.
func (f *Follower) Again(value func(step float64, name []byte, y float64)) error {
	if f.read == 0 {
		return nil
	}
	file, err := disk.OpenRead(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	return f.pieces(io.NewSectionReader(file, 0, f.read), 0, f.read, func(piece []byte) { Values(piece, nil, value) })
}

// pieces calls each for the whole lines of a file from a place on, many at a time. Its size, roughly, is known.
func (f *Follower) pieces(file io.ReaderAt, from, size int64, each func(lines []byte)) error {
	buffer := make([]byte, max(0, min(followBytes, size-from))) // it may be cut just now
	for {
		n, err := file.ReadAt(buffer, from)
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
		each(buffer[:end])
		from += int64(end)
	}
}

// damage says that lines could not be read.
func (f *Follower) damage() error {
	switch f.bad {
	case 0:
		return nil
	case 1:
		return badinput.Errorf("%s: line %d is left out: %w", f.path, f.firstBad, errLine)
	}
	return badinput.Errorf("%s: %d lines are left out, the first of them line %d: %w", f.path, f.bad, f.firstBad, errLine)
}

// Values calls value for each value of some whole lines of metrics, and wrong, if it is not nil, for the number of each
// line that is none, from 1. It returns the number of lines.
func Values(text []byte, wrong func(line int), value func(step float64, name []byte, y float64)) (lines int) {
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		step, first := 0.0, true
		lines++
		if err := fields(line, func(name, text []byte) error {
			y, err := number(text)
			if first {
				step, first = y, false
			} else if err == nil {
				value(step, name, y)
			}
			return err
		}); err != nil && wrong != nil {
			wrong(lines)
		}
		text = rest
	}
	return lines
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
		Values(text[:bytes.LastIndexByte(text, '\n')+1], nil, value)
		if from <= 0 && info.Size() <= piece {
			return nil
		}
	}
	return nil
}
