package bench

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/memory"
)

// Options that no workload can run with are refused, and so is what does not fit into memory, with one line.
func TestEndsOfOptions(t *testing.T) {
	usual := Options{Nonterminals: 2, Preterminals: 2, Words: 3, Sentences: 2, Vocabulary: 20, Preset: "quick"}
	for flag, change := range map[string]func(*Options, int){
		"--nt":    func(o *Options, n int) { o.Nonterminals = n },
		"--pt":    func(o *Options, n int) { o.Preterminals = n },
		"--n":     func(o *Options, n int) { o.Words = n },
		"--batch": func(o *Options, n int) { o.Sentences = n },
		"--words": func(o *Options, n int) { o.Vocabulary = n },
		"--for":   func(o *Options, n int) { o.For = time.Duration(min(n, 0)) - 1 },
		"--seed":  func(o *Options, n int) { o.Seed = uint64(max(n, 0)) | 1<<63 },
	} {
		for _, w := range Workloads {
			for _, n := range []int{-math.MaxInt, -1, 0, math.MaxInt} {
				o := usual
				change(&o, n)
				err := w.Check(o)
				if !errors.As(err, new(*badinput.Error)) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), flag) {
					t.Errorf("%s %s %d: error %v", w.Name, flag, n, err)
				}
			}
		}
	}
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("how much memory there is is not known here")
	}
	for name, change := range map[string]func(*Options){
		"inside":      func(o *Options) { o.Nonterminals = 1 << 20 },
		"inside-grad": func(o *Options) { o.Preterminals, o.Nonterminals = 1<<20, 1<<20 },
		"inside ":     func(o *Options) { o.Sentences = 1 << 30 },
	} {
		o := usual
		change(&o)
		_, err := brief(t, "simd", strings.TrimSpace(name), o)
		if !errors.As(err, new(*memory.Error)) || !errors.As(err, new(*badinput.Error)) {
			t.Errorf("%s %+v: error %v", name, o, err)
		}
	}
}

// An option that nothing would read is an error.
func TestUnreadOptions(t *testing.T) {
	usual := Options{Nonterminals: 30, Preterminals: 60, Words: 20, Sentences: 32, Vocabulary: 9672, Preset: "paper"}
	for _, names := range [][]string{{"inside"}, {"mlp"}, {"grammar", "vae"}} {
		if err := usual.unread(names); err != nil {
			t.Errorf("%v without options: %v", names, err)
		}
	}
	large := usual
	large.Sentences = 1_000_000_000
	if err := large.unread([]string{"mlp", "inside"}); err != nil {
		t.Errorf("inside reads --batch: %v", err)
	}
	if err := large.unread([]string{"grammar"}); err == nil || !strings.Contains(err.Error(), "--batch") {
		t.Errorf("--batch, which grammar does not read: error %v", err)
	}
}
