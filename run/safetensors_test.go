package run

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// safetensors builds a file from its header and data.
func safetensors(header, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestSafetensorsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arrays := drawState(t).Arrays
		metadata := rapid.MapOf(rapid.String(), rapid.StringMatching(`[a-zé"]*`)).Draw(t, "metadata")
		for key, value := range metadata {
			if strings.ToValidUTF8(key, "") != key {
				delete(metadata, key)
			} else {
				metadata[key] = value
			}
		}
		var b bytes.Buffer
		if err := WriteSafetensors(&b, arrays, metadata); err != nil {
			t.Fatal(err)
		}
		gotArrays, gotMetadata, err := ParseSafetensors(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(arrays, gotArrays); d != "" {
			t.Error(d)
		}
		if d := diff(metadata, gotMetadata); d != "" {
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
	if err := WriteSafetensors(&b, arrays, map[string]string{"format": "pt"}); err != nil {
		t.Fatal(err)
	}
	header := `{"__metadata__":{"format":"pt"},"a":{"dtype":"BOOL","shape":[1],"data_offsets":[4,5]},` +
		`"b":{"dtype":"U8","shape":[3],"data_offsets":[5,8]},"z":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`
	header += strings.Repeat(" ", (8-len(header)%8)%8)
	want := safetensors(header, "\x00\x00\x80\x3f\x01\x07\x08\x09")
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("got  %q\nwant %q", b.Bytes(), want)
	}
}

func TestParseSafetensorsRefuses(t *testing.T) {
	const good = `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`
	if _, _, err := ParseSafetensors(safetensors(good, "xyz")); err != nil {
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
		"not object":     {safetensors("[1]", ""), "not a JSON object"},
		"open object":    {safetensors(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, ""), "EOF"},
		"two objects":    {safetensors("{}{}", ""), "text after the JSON object"},
		"not UTF-8":      {edit(`"b"`, "\"\xff\""), "not UTF-8"},
		"twice":          {edit(`"b"`, `"a"`), `key "a" appears twice`},
		"unknown field":  {edit(`"dtype"`, `"kind":1,"dtype"`), "unknown field"},
		"no shape":       {edit(`"shape":[2],`, ``), "no shape"},
		"one offset":     {edit(`[0,2]`, `[0]`), "not two offsets"},
		"three offsets":  {edit(`[0,2]`, `[0,2,3]`), "not two offsets"},
		"dtype":          {edit(`"U8"`, `"F8"`), `unknown dtype "F8"`},
		"wrong size":     {edit(`"shape":[2]`, `"shape":[3]`), "takes 3 bytes, not 2"},
		"negative":       {edit(`"shape":[2]`, `"shape":[-1,-2]`), "negative dimension"},
		"overflow":       {edit(`"shape":[2]`, `"shape":[9223372036854775807,3]`), "too large"},
		"overlap":        {edit(`[2,3]`, `[1,2]`), "overlap"},
		"backwards":      {edit(`[2,3]`, `[2,1]`), "overlap"},
		"outside":        {edit(`[2,3]`, `[2,4]`), "lie outside"},
		"gap":            {edit(`"shape":[2],"data_offsets":[0,2]`, `"shape":[1],"data_offsets":[0,1]`), "leave a gap"},
		"negative begin": {edit(`[0,2]`, `[-1,1]`), "lie outside"},
		"trailing":       {safetensors(good, "wxyz"), "1 bytes after the last array"},
		"boolean":        {safetensors(`{"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}`, "\x02"), "boolean with value 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := ParseSafetensors(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// What the parser accepts, the writer can write, and it means the same.
func FuzzParseSafetensors(f *testing.F) {
	f.Add(safetensors(`{"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  `, "abcd"))
	f.Add(safetensors(`{"a":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}`, "\x01"))
	f.Add(safetensors(`{}`, ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		arrays, metadata, err := ParseSafetensors(data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := WriteSafetensors(&b, arrays, metadata); err != nil {
			t.Fatal(err)
		}
		again, metadataAgain, err := ParseSafetensors(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(arrays, again) + diff(metadata, metadataAgain); d != "" {
			t.Fatal(d)
		}
	})
}

func TestExport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	writeString(t, path, "old")
	arrays := map[string]Array{"w": {"U8", []int{2}, []byte{1, 2}}}
	if err := Export(path, map[string]Array{"w": {DType: "?"}}, nil); err == nil {
		t.Error("exported an impossible array")
	}
	if readFile(t, path) != "old" {
		t.Error("a failed export changed the file")
	}
	if err := Export(path, arrays, map[string]string{"task": "mixture"}); err != nil {
		t.Fatal(err)
	}
	got, metadata, err := ParseSafetensors([]byte(readFile(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(arrays, got) + diff(map[string]string{"task": "mixture"}, metadata); d != "" {
		t.Error(d)
	}
	if names := listDir(t, filepath.Dir(path)); len(names) != 1 {
		t.Errorf("export left %v", names)
	}
}
