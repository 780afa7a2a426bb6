package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/badinput"
)

const stockholm = `# STOCKHOLM 1.0
#=GF ID  two

one          .GGGa.AA
#=GR one SS  .((...[.
two          .GC-UAAA
three        AAAAAAAA

one          CCNT
#=GR one SS  ))].
two          CGAA
three        -UAA
#=GC SS_cons ......
//
`

// A file says the same plain and compressed; blocks of an alignment are joined, and gaps are left out.
func TestRead(t *testing.T) {
	text := strings.ReplaceAll(stockholm, "#=GC SS_cons ......\n", "#=GC SS_cons .<<.....>>..\n")
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "a.sto"), filepath.Join(dir, "a.sto.gz")
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	for name, data := range map[string][]byte{plain: []byte(text), packed: b.Bytes()} {
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		all, err := read(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []strand{
			{"one", []int32{2, 2, 2, 0, 0, 0, 1, 1, -1, 3}, []int32{7, 6, -1, -1, 8, -1, 1, 0, 4, -1}},
			{"two", []int32{2, 1, 3, 0, 0, 0, 1, 2, 0, 0}, []int32{7, 6, -1, -1, -1, -1, 1, 0, -1, -1}},
			{"three", []int32{0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0}, []int32{-1, 8, -1, -1, -1, -1, -1, -1, 1, -1, -1}},
		} {
			got := all[i]
			if got.Name != want.Name || !slices.Equal(got.Bases, want.Bases) || !slices.Equal(got.Partner, want.Partner) {
				t.Errorf("%s: sequence %d is %v, not %v", name, i+1, got, want)
			}
		}
	}
}

func TestFASTA(t *testing.T) {
	all, err := parse(strings.NewReader(">a b\nGGCA\naaGCC\n(((...)))\n>c\nACCA\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || !slices.Equal(all[0].Partner, []int32{8, 7, 6, -1, -1, -1, 2, 1, 0}) || all[1].Partner != nil ||
		!slices.Equal(all[1].Bases, []int32{0, 1, 1, 0}) {
		t.Errorf("got %v", all)
	}
}

// What is wrong with a file is one line that names it, and an error that the user can mend.
func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "no sequence",
		"GGCC\n":                                "line 1",
		"# STOCKHOLM 1.0\n//\n":                 "no sequence",
		"# STOCKHOLM 1.0\nGGCC\n":               "line 2 has 1 words",
		">a\nGG!C\n":                            `'!' is no base`,
		">a\nGGCC\n((.)\n":                      "1 brackets are not closed",
		">a\nGGCC\n(.))\n":                      "bracket 4 closes nothing",
		">a\nGGCC\n(.)\n":                       "4 letters, and 3 brackets",
		"# STOCKHOLM 1.0\na GG\n#=GR a SS (?\n": `'?' is no bracket`,
	} {
		name := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := read(name)
		var input *badinput.Error
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "x.gz"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, o := range []options{{data: "/nowhere/a.sto"}, {methods: "magic"}, {data: "data_test.go", methods: "gfn"}} {
		var input *badinput.Error
		if err := o.run(); !errors.As(err, &input) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// The sequences that a model covers are those whose candidates all fit, in numbers that Observe finds, too.
func TestCovers(t *testing.T) {
	b := open(t)
	e := small(false).Folding
	all := []strand{}
	for _, s := range []string{"GGGAAACCC", "GCGCAAGCGC", "AAAAAAA", "GUGUGUGUGU", "GG", "GGGAAACCCAAA", "GGNAAACC"} {
		one, err := newStrand(s, s, "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	for i, s := range all {
		if got := e.covers(s); got != (i < 5) {
			t.Errorf("%s: %v", s.Name, got)
		}
	}
	o, err := e.observe(b, all[:5])
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for i, s := range all[:5] {
		n := 0
		for _, code := range codes(o.X)[i*e.K : (i+1)*e.K] {
			if code >= 0 {
				n++
			}
		}
		most = max(most, n)
		for _, k := range []int{n - 1, n} {
			e := e
			if e.K = k; e.covers(s) != (k >= n) {
				t.Errorf("%s has %d candidates, and with room for %d that is %v", s.Name, n, k, e.covers(s))
			}
		}
	}
	if most < 5 {
		t.Errorf("there are at most %d candidates", most)
	}
}
