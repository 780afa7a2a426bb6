package run

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// Array is a tensor as bytes: its elements in row-major order, little endian. BOOL takes a byte, 0 or 1, each.
type Array struct {
	DType string // F32, F64, I32, I64, U32, U64, U8 or BOOL
	Shape []int  // empty for a scalar
	Data  []byte
}

// elementSize is the number of bytes of an element of each dtype.
var elementSize = map[string]int{
	"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "U8": 1, "BOOL": 1,
}

// Check returns an error unless the data is what dtype and shape say.
func (a Array) Check() error {
	size, ok := elementSize[a.DType]
	if !ok {
		return fmt.Errorf("unknown dtype %q", a.DType)
	}
	for _, n := range a.Shape {
		if n < 0 {
			return fmt.Errorf("negative dimension in shape %v", a.Shape)
		}
		if n > 0 && size > math.MaxInt/n {
			return fmt.Errorf("shape %v is too large", a.Shape)
		}
		size *= n
	}
	if size != len(a.Data) {
		return fmt.Errorf("%s of shape %v takes %d bytes, not %d", a.DType, a.Shape, size, len(a.Data))
	}
	if a.DType == "BOOL" {
		for _, b := range a.Data {
			if b > 1 {
				return fmt.Errorf("boolean with value %d", b)
			}
		}
	}
	return nil
}

const (
	metadataKey = "__metadata__"
	// maxHeader is the limit of the reference implementation (https://github.com/huggingface/safetensors).
	maxHeader = 100_000_000
)

// tensorInfo is an entry of the header.
type tensorInfo struct {
	DType   string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"` // begin and end
}

// WriteSafetensors writes arrays in the safetensors format. The same arrays and metadata always give the same bytes:
// arrays lie in order of element size, largest first, so that each is aligned, and then of name.
func WriteSafetensors(w io.Writer, arrays map[string]Array, metadata map[string]string) error {
	names := slices.SortedFunc(maps.Keys(arrays), func(a, b string) int {
		return cmp.Or(
			cmp.Compare(elementSize[arrays[b].DType], elementSize[arrays[a].DType]),
			cmp.Compare(a, b))
	})
	header := make(map[string]any, len(arrays)+1)
	if len(metadata) > 0 {
		header[metadataKey] = metadata
	}
	var end int64
	for _, name := range names {
		a := arrays[name]
		if name == metadataKey || !utf8.ValidString(name) {
			return fmt.Errorf("write array %q: not a name for an array", name)
		}
		if err := a.Check(); err != nil {
			return fmt.Errorf("write array %q: %w", name, err)
		}
		begin := end
		end += int64(len(a.Data))
		header[name] = tensorInfo{a.DType, append([]int{}, a.Shape...), []int64{begin, end}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("write arrays: %w", err)
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	if len(text) > maxHeader {
		return fmt.Errorf("write arrays: a header of %d bytes is over the limit of %d", len(text), maxHeader)
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := w.Write(arrays[name].Data); err != nil {
			return err
		}
	}
	return nil
}

// ParseSafetensors reads the safetensors format. The arrays share memory with data. It accepts exactly the files in
// which every array is what its entry says, and the arrays cover the data without gap or overlap.
func ParseSafetensors(data []byte) (arrays map[string]Array, metadata map[string]string, err error) {
	if len(data) < 8 {
		return nil, nil, errors.New("not a safetensors file: shorter than 8 bytes")
	}
	size := binary.LittleEndian.Uint64(data)
	data = data[8:]
	if size > maxHeader || size > uint64(len(data)) {
		return nil, nil, fmt.Errorf("not a safetensors file: header of %d bytes", size)
	}
	infos, metadata, err := parseHeader(data[:size])
	if err != nil {
		return nil, nil, fmt.Errorf("safetensors header: %w", err)
	}
	data = data[size:]
	names := slices.SortedFunc(maps.Keys(infos), func(a, b string) int {
		return cmp.Or(slices.Compare(infos[a].Offsets, infos[b].Offsets), cmp.Compare(a, b))
	})
	arrays = make(map[string]Array, len(infos))
	var covered int64
	for _, name := range names {
		info := infos[name]
		begin, end := info.Offsets[0], info.Offsets[1]
		if begin != covered || end < begin || end > int64(len(data)) {
			return nil, nil, fmt.Errorf("array %q: bytes %d to %d overlap, leave a gap or lie outside the file",
				name, begin, end)
		}
		a := Array{DType: info.DType, Shape: info.Shape, Data: data[begin:end:end]}
		if err := a.Check(); err != nil {
			return nil, nil, fmt.Errorf("array %q: %w", name, err)
		}
		arrays[name] = a
		covered = end
	}
	if covered != int64(len(data)) {
		return nil, nil, fmt.Errorf("%d bytes after the last array", int64(len(data))-covered)
	}
	return arrays, metadata, nil
}

// parseHeader reads a header key by key: a map would hide keys given twice.
func parseHeader(text []byte) (map[string]tensorInfo, map[string]string, error) {
	if !utf8.Valid(text) {
		return nil, nil, errors.New("not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if t, err := dec.Token(); err != nil {
		return nil, nil, err
	} else if t != json.Delim('{') {
		return nil, nil, errors.New("not a JSON object")
	}
	infos := make(map[string]tensorInfo)
	var metadata map[string]string
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		name, ok := t.(string)
		if !ok {
			return nil, nil, fmt.Errorf("key %v is not a string", t)
		}
		if _, twice := infos[name]; twice || (name == metadataKey && metadata != nil) {
			return nil, nil, fmt.Errorf("key %q appears twice", name)
		}
		if name == metadataKey {
			if err := dec.Decode(&metadata); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", metadataKey, err)
			}
			continue
		}
		var info tensorInfo
		if err := dec.Decode(&info); err != nil {
			return nil, nil, fmt.Errorf("array %q: %w", name, err)
		}
		if len(info.Offsets) != 2 || info.Shape == nil {
			return nil, nil, fmt.Errorf("array %q: no shape, or not two offsets", name)
		}
		infos[name] = info
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, nil, errors.New("text after the JSON object")
	}
	return infos, metadata, nil
}

// Export writes arrays to a safetensors file at any path, for other programs to read. Whatever happens, there is
// either the whole file or what was there before.
func Export(path string, arrays map[string]Array, metadata map[string]string) error {
	err := WriteFile(path, func(w io.Writer) error {
		return WriteSafetensors(w, arrays, metadata)
	})
	if err != nil {
		return fmt.Errorf("export to %s: %w", path, err)
	}
	return nil
}
