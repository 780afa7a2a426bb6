package run

import (
	"encoding/binary"
	"math"
	"testing"
	"time"
)

// event is what a reader of the events file sees.
type event struct {
	wallTime float64
	step     uint64
	version  string
	values   map[string]float32
}

// decodeEvents reads a whole events file, checking every length and checksum.
func decodeEvents(t *testing.T, data string) []event {
	t.Helper()
	var events []event
	b := []byte(data)
	for len(b) > 0 {
		if len(b) < 16 {
			t.Fatalf("%d bytes after the last record", len(b))
		}
		size := binary.LittleEndian.Uint64(b)
		if got, want := binary.LittleEndian.Uint32(b[8:]), slowMaskedCRC(b[:8]); got != want {
			t.Fatalf("checksum of the length is %x, want %x", got, want)
		}
		if uint64(len(b)) < 16+size {
			t.Fatalf("a record of %d bytes is cut", size)
		}
		content := b[12 : 12+size]
		if got, want := binary.LittleEndian.Uint32(b[12+size:]), slowMaskedCRC(content); got != want {
			t.Fatalf("checksum of the content is %x, want %x", got, want)
		}
		events = append(events, decodeEvent(t, content))
		b = b[16+size:]
	}
	return events
}

// slowMaskedCRC computes CRC-32C bit by bit.
func slowMaskedCRC(data []byte) uint32 {
	crc := ^uint32(0)
	for _, b := range data {
		crc ^= uint32(b)
		for range 8 {
			if crc&1 == 1 {
				crc = crc>>1 ^ 0x82f63b78
			} else {
				crc >>= 1
			}
		}
	}
	crc = ^crc
	return (crc>>15 | crc<<17) + 0xa282ead8
}

func decodeEvent(t *testing.T, b []byte) event {
	var e event
	fields(t, b, func(field int, number uint64, content []byte) {
		switch field {
		case 1:
			e.wallTime = math.Float64frombits(number)
		case 2:
			e.step = number
		case 3:
			e.version = string(content)
		case 5:
			e.values = make(map[string]float32)
			fields(t, content, func(field int, _ uint64, value []byte) {
				if field != 1 {
					t.Fatalf("field %d in a summary", field)
				}
				var tag string
				var simple float32
				fields(t, value, func(field int, number uint64, content []byte) {
					switch field {
					case 1:
						tag = string(content)
					case 2:
						simple = math.Float32frombits(uint32(number))
					default:
						t.Fatalf("field %d in a value", field)
					}
				})
				e.values[tag] = simple
			})
		default:
			t.Fatalf("field %d in an event", field)
		}
	})
	return e
}

// fields calls f for each field of a protobuf message.
func fields(t *testing.T, b []byte, f func(field int, number uint64, content []byte)) {
	uvarint := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatal("bad varint")
		}
		b = b[n:]
		return v
	}
	for len(b) > 0 {
		tag := uvarint()
		var number uint64
		var content []byte
		switch tag & 7 {
		case 0:
			number = uvarint()
		case 1:
			number, b = binary.LittleEndian.Uint64(b), b[8:]
		case 2:
			size := uvarint()
			content, b = b[:size], b[size:]
		case 5:
			number, b = uint64(binary.LittleEndian.Uint32(b)), b[4:]
		default:
			t.Fatalf("wire type %d", tag&7)
		}
		f(int(tag>>3), number, content)
	}
}

func TestEvents(t *testing.T) {
	r := newRun(t)
	defer func(before func() time.Time) { now = before }(now)
	now = func() time.Time { return time.Unix(12, 500_000_000) }
	if err := r.Log(1, map[string]float64{"loss": 0.5, "acc": 0.25}); err != nil {
		t.Fatal(err)
	}
	if err := r.Log(1<<40, map[string]float64{"loss": math.Inf(-1)}); err != nil {
		t.Fatal(err)
	}
	want := []event{
		{wallTime: 12.5, version: "brain.Event:2"},
		{wallTime: 12.5, step: 1, values: map[string]float32{"loss": 0.5, "acc": 0.25}},
		{wallTime: 12.5, step: 1 << 40, values: map[string]float32{"loss": float32(math.Inf(-1))}},
	}
	got := decodeEvents(t, readFile(t, r.path(eventsName)))
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].wallTime != want[i].wallTime || got[i].step != want[i].step || got[i].version != want[i].version {
			t.Errorf("event %d is %+v, want %+v", i, got[i], want[i])
		}
		if d := diff(want[i].values, got[i].values); d != "" {
			t.Errorf("event %d: %s", i, d)
		}
	}
}

// Check value of CRC-32C ("123456789" gives e3069283), masked.
func TestMaskedCRC(t *testing.T) {
	crc := uint32(0xe3069283)
	want := (crc>>15 | crc<<17) + 0xa282ead8
	if got := maskedCRC([]byte("123456789")); got != want {
		t.Errorf("masked CRC is %x, want %x", got, want)
	}
}
