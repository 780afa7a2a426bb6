package run

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// safetensors builds a file from its header, which it pads, and data.
func safetensors(header, data string) []byte {
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestSafetensorsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arrays := drawState(t).Arrays
		var b bytes.Buffer
		if err := WriteSafetensors(&b, arrays); err != nil {
			t.Fatal(err)
		}
		got, err := ParseSafetensors(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(arrays, got); d != "" {
			t.Error(d)
		}
	})
}

// The bytes are those of the reference implementation, down to the order and the padding.
func TestSafetensorsBytes(t *testing.T) {
	arrays := map[string]Array{
		"b": {"U8", []int{3}, []byte{7, 8, 9}},
		"a": {"BOOL", []int{1}, []byte{1}},
		"z": {"F32", []int{}, []byte{0, 0, 128, 63}},
	}
	var b bytes.Buffer
	if err := WriteSafetensors(&b, arrays); err != nil {
		t.Fatal(err)
	}
	header := `{"a":{"dtype":"BOOL","shape":[1],"data_offsets":[4,5]},` +
		`"b":{"dtype":"U8","shape":[3],"data_offsets":[5,8]},"z":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`
	want := safetensors(header, "\x00\x00\x80\x3f\x01\x07\x08\x09")
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got  %q\nwant %q", b.Bytes(), want)
	}
}

func TestParseSafetensorsRefuses(t *testing.T) {
	const good = `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`
	if _, err := ParseSafetensors(safetensors(good, "xyz")); err != nil {
		t.Fatal(err)
	}
	edit := func(from, to string) []byte {
		if !strings.Contains(good, from) {
			t.Fatalf("nothing to edit: %s", from)
		}
		return safetensors(strings.Replace(good, from, to, 1), "xyz")
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":          {nil, "shorter than 8 bytes"},
		"long header":    {binary.LittleEndian.AppendUint64(nil, 1<<63), "header of 9223372036854775808 bytes"},
		"cut header":     {safetensors(good, "")[:20], "header of"},
		"not JSON":       {safetensors("hello", ""), "invalid character"},
		"not object":     {safetensors("[1]", ""), "cannot unmarshal array"},
		"open object":    {safetensors(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, ""), "unexpected end"},
		"two objects":    {safetensors("{}{}", ""), "after top-level value"},
		"not UTF-8":      {edit(`"b"`, "\"\xff\""), "in another way"},
		"twice":          {edit(`"b"`, `"a"`), "in another way"},
		"unknown field":  {edit(`"dtype"`, `"kind":1,"dtype"`), "in another way"},
		"no shape":       {edit(`"shape":[1],`, ``), "in another way"},
		"one offset":     {edit(`[0,2]`, `[0]`), "not two offsets"},
		"three offsets":  {edit(`[0,2]`, `[0,2,3]`), "not two offsets"},
		"dtype":          {edit(`"U8"`, `"F8"`), `unknown dtype "F8"`},
		"wrong size":     {edit(`"shape":[2]`, `"shape":[3]`), "takes 3 bytes, not 2"},
		"negative":       {edit(`"shape":[2]`, `"shape":[-1,-2]`), "negative dimension"},
		"overflow":       {edit(`"shape":[2]`, `"shape":[9223372036854775807,3]`), "too large"},
		"overlap":        {edit(`[2,3]`, `[1,2]`), "overlap"},
		"backwards":      {edit(`[2,3]`, `[2,1]`), "lie outside"},
		"outside":        {edit(`[2,3]`, `[2,4]`), "lie outside"},
		"gap":            {edit(`"shape":[2],"data_offsets":[0,2]`, `"shape":[1],"data_offsets":[0,1]`), "leave a gap"},
		"negative begin": {edit(`[0,2]`, `[-1,1]`), "lie outside"},
		"trailing":       {safetensors(good, "wxyz"), "leave a gap"},
		"space":          {edit(`,"b"`, `, "b"`), "in another way"},
		"order":          {safetensors(strings.NewReplacer(`"a"`, `"b"`, `"b"`, `"a"`).Replace(good), "xyz"), "in another way"},
		"boolean":        {safetensors(`{"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}`, "\x02"), "boolean with value 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseSafetensors(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// What the parser accepts, the writer writes.
func FuzzParseSafetensors(f *testing.F) {
	f.Add(safetensors(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  `, "abcd"))
	f.Add(safetensors(`{"a":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}`, "\x01"))
	f.Add(safetensors(`{}`, ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		arrays, err := ParseSafetensors(data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteSafetensors(&b, arrays); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), data) {
			t.Fatalf("read %q, wrote %q", data, b.Bytes())
		}
	})
}

func TestExport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	writeString(t, path, "old")
	arrays := map[string]Array{"w": {"U8", []int{2}, []byte{1, 2}}}
	if err := Export(path, map[string]Array{"w": {DType: "?"}}); err == nil {
		t.Error("exported an impossible array")
	}
	if readFile(t, path) != "old" {
		t.Error("a failed export changed the file")
	}
	if err := Export(path, arrays); err != nil {
		t.Fatal(err)
	}
	got, err := ParseSafetensors([]byte(readFile(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(arrays, got); d != "" {
		t.Error(d)
	}
	if names := listDir(t, filepath.Dir(path)); len(names) != 1 {
		t.Errorf("export left %v", names)
	}
}
