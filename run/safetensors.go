package run

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gomlx/compute/dtypes"
)

// Array is a tensor as bytes: its elements in row-major order, little endian. BOOL takes a byte, 0 or 1, each.
type Array struct {
	DType string // F32, F64, I32, I64, U32, U64, U8 or BOOL
	Shape []int  // empty for a scalar
	Data  []byte
}

// dtypeOf are the dtypes that an Array can have.
var dtypeOf = map[string]dtypes.DType{
	"F32": dtypes.Float32, "F64": dtypes.Float64,
	"I32": dtypes.Int32, "I64": dtypes.Int64,
	"U32": dtypes.Uint32, "U64": dtypes.Uint64,
	"U8": dtypes.Uint8, "BOOL": dtypes.Bool,
}

// Check returns an error unless the data is what dtype and shape say.
func (a Array) Check() error {
	dtype, ok := dtypeOf[a.DType]
	if !ok {
		return fmt.Errorf("unknown dtype %q", a.DType)
	}
	size := dtype.Size()
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
	metadataKey = "__metadata__" // names no array
	// maxHeader is the limit of the reference implementation (https://github.com/huggingface/safetensors).
	maxHeader = 100_000_000
)

// tensorInfo is an entry of the header.
type tensorInfo struct {
	DType   string  `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"` // begin and end
}

// WriteSafetensors writes arrays in the safetensors format. The same arrays always give the same bytes: arrays lie in
// order of element size, largest first, so that each is aligned, and then of name.
func WriteSafetensors(w io.Writer, arrays map[string]Array) error {
	header, names, err := encodeHeader(arrays)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := w.Write(arrays[name].Data); err != nil {
			return err
		}
	}
	return nil
}

// encodeHeader returns what a file has before its data, and the names of the arrays in the order of the data.
func encodeHeader(arrays map[string]Array) (header []byte, names []string, err error) {
	names = slices.Sorted(maps.Keys(arrays))
	for _, name := range names {
		if name == metadataKey || !utf8.ValidString(name) {
			return nil, nil, fmt.Errorf("write array %q: not a name for an array", name)
		}
		if err := arrays[name].Check(); err != nil {
			return nil, nil, fmt.Errorf("write array %q: %w", name, err)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return dtypeOf[arrays[b].DType].Size() - dtypeOf[arrays[a].DType].Size()
	})
	infos := make(map[string]tensorInfo, len(arrays))
	var end int64
	for _, name := range names {
		a, begin := arrays[name], end
		end += int64(len(a.Data))
		infos[name] = tensorInfo{a.DType, append([]int{}, a.Shape...), []int64{begin, end}}
	}
	text, err := json.Marshal(infos)
	if err != nil {
		return nil, nil, fmt.Errorf("write arrays: %w", err)
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	if len(text) > maxHeader {
		return nil, nil, fmt.Errorf("write arrays: a header of %d bytes is over the limit of %d", len(text), maxHeader)
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), names, nil
}

// ParseSafetensors reads what WriteSafetensors wrote, and nothing else: arrays have one encoding, so that those of a
// file are written as the same bytes again. The arrays share memory with data.
func ParseSafetensors(data []byte) (map[string]Array, error) {
	if len(data) < 8 {
		return nil, errors.New("not a safetensors file: shorter than 8 bytes")
	}
	size := binary.LittleEndian.Uint64(data)
	if size > maxHeader || size > uint64(len(data)-8) {
		return nil, fmt.Errorf("not a safetensors file: header of %d bytes", size)
	}
	header, data := data[:8+size], data[8+size:]
	var infos map[string]tensorInfo
	if err := json.Unmarshal(header[8:], &infos); err != nil {
		return nil, fmt.Errorf("safetensors header: %w", err)
	}
	arrays := make(map[string]Array, len(infos))
	var end int64
	for name, info := range infos {
		if len(info.Offsets) != 2 {
			return nil, fmt.Errorf("array %q: not two offsets", name)
		}
		from, to := info.Offsets[0], info.Offsets[1]
		if from < 0 || to < from || to > int64(len(data)) {
			return nil, fmt.Errorf("array %q: bytes %d to %d lie outside the file", name, from, to)
		}
		a := Array{DType: info.DType, Shape: info.Shape, Data: data[from:to:to]}
		if err := a.Check(); err != nil {
			return nil, fmt.Errorf("array %q: %w", name, err)
		}
		arrays[name], end = a, max(end, to)
	}
	again, _, err := encodeHeader(arrays)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, header) || end != int64(len(data)) {
		return nil, errors.New("not what WriteSafetensors writes: arrays overlap, leave a gap, or are written in another way")
	}
	return arrays, nil
}

// Export writes arrays to a safetensors file at any path, for other programs to read. Whatever happens, there is
// either the whole file or what was there before.
func Export(path string, arrays map[string]Array) error {
	if err := WriteFile(path, func(w io.Writer) error { return WriteSafetensors(w, arrays) }); err != nil {
		return fmt.Errorf("export to %s: %w", path, err)
	}
	return nil
}

// WriteFile writes a file at any path. Whatever happens, there is either the whole file or what was there before. A
// file with the same name and .tmp is overwritten and then gone; a folder is left alone.
func WriteFile(path string, write func(io.Writer) error) error { return disk.WriteFile(path, write) }
