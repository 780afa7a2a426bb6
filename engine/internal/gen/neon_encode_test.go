package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var armWord = regexp.MustCompile(`WORD \$0x([0-9a-f]{8}) // (.*)`)

// armLines is the words of all generated files, by line.
func armLines(t *testing.T) map[string]string {
	all := map[string]string{}
	for _, build := range packages {
		texts, err := build().texts()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			for _, m := range armWord.FindAllStringSubmatch(text, -1) {
				all[m[2]] = m[1]
			}
		}
	}
	return all
}

// TestWords has GNU's assembler read the lines beside the words. It needs aarch64-linux-gnu-as, which is in Debian's
// package binutils-aarch64-linux-gnu, and is skipped where that is not.
func TestWords(t *testing.T) {
	as, err := exec.LookPath("aarch64-linux-gnu-as")
	if err != nil {
		t.Skip(err)
	}
	lines := armLines(t)
	var order []string
	for l := range lines {
		order = append(order, l)
	}
	slices.Sort(order)
	if len(order) < 100 {
		t.Fatalf("only %d instructions", len(order))
	}
	dir := t.TempDir()
	source, object, code := filepath.Join(dir, "a.s"), filepath.Join(dir, "a.o"), filepath.Join(dir, "a.bin")
	if err := os.WriteFile(source, []byte(strings.Join(order, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	objcopy := strings.TrimSuffix(as, "as") + "objcopy"
	for _, c := range [][]string{{as, source, "-o", object}, {objcopy, "-O", "binary", object, code}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
	}
	words, err := os.ReadFile(code)
	if err != nil {
		t.Fatal(err)
	}
	if len(words) != 4*len(order) {
		t.Fatalf("%d bytes for %d instructions", len(words), len(order))
	}
	for i, l := range order {
		if want := fmt.Sprintf("%08x", binary.LittleEndian.Uint32(words[4*i:])); lines[l] != want {
			t.Errorf("%s is %s, want %s", l, lines[l], want)
		}
	}
	t.Logf("%d instructions", len(order))
}

// TestEncode has words that GNU's assembler makes, one of each shape.
func TestEncode(t *testing.T) {
	for line, want := range map[string]uint32{
		"fadd v3.4s, v17.4s, v30.4s":     0x4e3ed623,
		"fadd v3.2d, v17.2d, v30.2d":     0x4e7ed623,
		"fmla v1.4s, v2.4s, v31.s[3]":    0x4fbf1841,
		"fmla v1.2d, v2.2d, v31.d[1]":    0x4fdf1841,
		"fmla v1.2s, v2.2s, v31.s[0]":    0x0f9f1041,
		"bsl v9.16b, v8.16b, v7.16b":     0x6e671d09,
		"shl v4.2d, v5.2d, #52":          0x4f7454a4,
		"ushr v4.4s, v5.4s, #23":         0x6f2904a4,
		"ext v0.16b, v1.16b, v2.16b, #8": 0x6e024020,
		"dup v0.4s, v1.s[0]":             0x4e040420,
	} {
		if got, err := encode(line); err != nil || got != want {
			t.Errorf("%s is %08x, %v, want %08x", line, got, err, want)
		}
	}
	for _, line := range []string{"fadd v1", "vadd v1.4s, v1.4s, v1.4s", "fadd v1.4s, x1, v1.4s", "fadd"} {
		if w, err := encode(line); err == nil {
			t.Errorf("%q is %08x", line, w)
		}
	}
}
