package run

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"time"
)

// TensorBoard reads a sequence of TFRecords, each an Event of tensorflow/core/util/event.proto. We write three of
// its fields and encode them by hand.
const (
	eventVersion = "brain.Event:2" // the first record must say so

	tagWallTime    = 1<<3 | 1 // Event.wall_time, double
	tagStep        = 2 << 3   // Event.step, int64: wire type 0
	tagFileVersion = 3<<3 | 2 // Event.file_version, string
	tagSummary     = 5<<3 | 2 // Event.summary, message
	tagValue       = 1<<3 | 2 // Summary.value, repeated message
	tagTag         = 1<<3 | 2 // Summary.Value.tag, string
	tagSimple      = 2<<3 | 5 // Summary.Value.simple_value, float
)

func appendBytes(b []byte, tag byte, content []byte) []byte {
	b = append(b, tag)
	b = binary.AppendUvarint(b, uint64(len(content)))
	return append(b, content...)
}

func appendWallTime(b []byte, t time.Time) []byte {
	seconds := float64(t.UnixNano()) / 1e9
	return binary.LittleEndian.AppendUint64(append(b, tagWallTime), math.Float64bits(seconds))
}

// scalarsEvent is the event of some scalars at a step, in order of name.
func scalarsEvent(t time.Time, step uint64, values map[string]float64) []byte {
	var summary []byte
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := appendBytes(nil, tagTag, []byte(name))
		value = append(value, tagSimple)
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(float32(values[name])))
		summary = appendBytes(summary, tagValue, value)
	}
	event := append(appendWallTime(nil, t), tagStep)
	event = binary.AppendUvarint(event, step)
	return appendBytes(event, tagSummary, summary)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is the checksum of a TFRecord: CRC-32C, rotated right by 15 bits, plus a constant
// (tensorflow/core/lib/hash/crc32c.h).
func maskedCRC(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// appendRecord appends a TFRecord: length, its checksum, content, its checksum.
func appendRecord(b, content []byte) []byte {
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(content)))
	b = append(b, length...)
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(length))
	b = append(b, content...)
	return binary.LittleEndian.AppendUint32(b, maskedCRC(content))
}

// recordsFault says what is wrong with a sequence of TFRecords; "" if nothing is.
func recordsFault(b []byte) string {
	for at, rest := 0, b; len(rest) > 0; {
		const head, tail = 12, 4
		if len(rest) < head+tail || maskedCRC(rest[:8]) != binary.LittleEndian.Uint32(rest[8:]) ||
			binary.LittleEndian.Uint64(rest) > uint64(len(rest)-head-tail) {
			return fmt.Sprintf("has no record at byte %d", at)
		}
		end := head + int(binary.LittleEndian.Uint64(rest))
		if maskedCRC(rest[head:end]) != binary.LittleEndian.Uint32(rest[end:]) {
			return fmt.Sprintf("the record at byte %d does not match its checksum", at)
		}
		at, rest = at+end+tail, rest[end+tail:]
	}
	return ""
}
