// Package bilevel packs many small images of two colours into few bytes.
//
// Each pixel is coded with the probability it has given ten pixels left of it and above, and where it lies; a stretch
// with nothing near it needs one decision in all (model.go). The probabilities are counted beforehand and stored with
// the images. An arithmetic coder turns the decisions into bytes (coder.go). Everything is integers, so that the same
// images give the same bytes, and these the same images, on every machine.
package bilevel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// A packed file is this header, the table of probabilities, and the segments.
type header struct {
	Magic         [8]byte
	Height, Width uint32
	Images        uint32
	Table         uint32           // bytes of the table
	Segments      [segments]uint32 // bytes of each
}

const (
	segments  = 8       // parts of the images that can be decoded side by side
	maxPacked = 1 << 30 // bytes of images
)

var magic = [8]byte{'b', 'i', 'l', 'e', 'v', 'e', 'l', '1'}

// Encode packs images. Each lies in whole bytes of bits: its pixels row by row, from the lowest bit of a byte up, and
// zeros to the end of its last byte.
func Encode(height, width int, bits []byte) ([]byte, error) {
	s, err := newShape(height, width)
	if err != nil {
		return nil, err
	}
	if len(bits)%s.stride() != 0 {
		return nil, fmt.Errorf("bilevel: %d bytes are no whole number of %dx%d images", len(bits), height, width)
	}
	n := len(bits) / s.stride()
	table := s.learn(bits)
	body := table.squeeze()
	h := header{Magic: magic, Height: uint32(height), Width: uint32(width), Images: uint32(n), Table: uint32(len(body))}
	for i := range segments {
		from, to := segment(i, n)
		part := s.encode(table, bits[from*s.stride():to*s.stride()])
		h.Segments[i] = uint32(len(part))
		body = append(body, part...)
	}
	var out bytes.Buffer
	if err := binary.Write(&out, binary.BigEndian, h); err != nil {
		return nil, err
	}
	return append(out.Bytes(), body...), nil
}

// Decode returns what was given to Encode.
func Decode(data []byte) (height, width int, bits []byte, err error) {
	var h header
	if n, err := binary.Decode(data, binary.BigEndian, &h); err != nil || h.Magic != magic {
		return 0, 0, nil, errors.New("bilevel: not a packed file")
	} else {
		data = data[n:]
	}
	s, err := newShape(int(h.Height), int(h.Width))
	if err != nil {
		return 0, 0, nil, err
	}
	if uint64(h.Images)*uint64(s.stride()) > maxPacked {
		return 0, 0, nil, fmt.Errorf("bilevel: too many images: %d", h.Images)
	}
	parts, err := h.split(data)
	if err != nil {
		return 0, 0, nil, err
	}
	table, err := expand(parts[0])
	if err != nil {
		return 0, 0, nil, err
	}
	n := int(h.Images)
	bits = make([]byte, n*s.stride())
	var all sync.WaitGroup
	for i, part := range parts[1:] {
		from, to := segment(i, n)
		all.Go(func() { s.decode(table, bits[from*s.stride():to*s.stride()], part) })
	}
	all.Wait()
	return s.height, s.width, bits, nil
}

// split cuts what follows the header into the table and the segments.
func (h header) split(data []byte) ([][]byte, error) {
	var parts [][]byte
	for _, size := range append([]uint32{h.Table}, h.Segments[:]...) {
		if uint64(len(data)) < uint64(size) {
			return nil, errors.New("bilevel: the packed file is cut short")
		}
		parts = append(parts, data[:size])
		data = data[size:]
	}
	if len(data) > 0 {
		return nil, errors.New("bilevel: something follows the packed file")
	}
	return parts, nil
}

// segment returns the numbers of the first image of a segment and of the one after its last.
func segment(i, images int) (from, to int) {
	return i * images / segments, (i + 1) * images / segments
}

// squeeze returns the table with each run of zeros, which are many, as a zero and its length.
func (t *table) squeeze() []byte {
	var out []byte
	for i := 0; i < len(t); {
		if t[i] != 0 {
			out = append(out, t[i])
			i++
			continue
		}
		run := 1
		for run < 255 && i+run < len(t) && t[i+run] == 0 {
			run++
		}
		out = append(out, 0, byte(run))
		i += run
	}
	return out
}

// expand is the inverse of squeeze.
func expand(data []byte) (*table, error) {
	var t table
	at := 0
	for ; len(data) > 0 && at < len(t); data = data[1:] {
		if t[at] = data[0]; t[at] != 0 {
			at++
		} else if data = data[1:]; len(data) > 0 {
			at += int(data[0])
		} else {
			break
		}
	}
	if len(data) > 0 || at != len(t) {
		return nil, errors.New("bilevel: the table of probabilities is damaged")
	}
	return &t, nil
}
