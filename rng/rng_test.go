package rng_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/rng"
)

// TestFrozen keeps the numbers of all runs ever made: a change here changes every experiment.
func TestFrozen(t *testing.T) {
	for _, c := range []struct {
		seed   uint64
		stream string
		step   []uint64
		key    string
		host   string
	}{
		{0, "", nil, "[d59d71f7ff084737 28d26cd575c89e97 3b7a31ecf73c6d6f]", "97a0f877595535bd 5bbf2660e353d74c 0.368817 718"},
		{1, "wake", []uint64{0}, "[ad1125c459ad225c b00a9fc60523de73 e2cb8c2a87dffdea]", "9d9d673e84d9f0f9 c8bd6ca1b8478190 0.116772 490"},
		{1, "wake", []uint64{1}, "[78c4c2ab8529f27f 49f3adb4baca124b 29f02ff2b1bd312]", "c5dfc1d30dca7d46 15c08c0b947941a6 0.719517 8"},
		{42, "data", []uint64{3, 7}, "[a3948d6c0104e18b 46ed743644c35807 5d3a3059401b9077]", "16996065e71c1223 aba51d14d47fbfa0 0.433792 242"},
	} {
		key := fmt.Sprintf("%x", tensors.MustCopyFlatData[uint64](rng.Key(c.seed, c.stream, c.step...)))
		if key != c.key {
			t.Errorf("Key(%d, %q, %v) = %s, want %s", c.seed, c.stream, c.step, key, c.key)
		}
		r := rng.New(c.seed, c.stream, c.step...)
		host := fmt.Sprintf("%x %x %.6f %d", r.Uint64(), r.Uint64(), r.Float64(), r.IntN(1000))
		if host != c.host {
			t.Errorf("New(%d, %q, %v) = %s, want %s", c.seed, c.stream, c.step, host, c.host)
		}
	}
}

// TestNames checks that every part of a name matters, and where its parts end.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	add := func(seed uint64, stream string, step ...uint64) {
		name := fmt.Sprint(seed, stream, step)
		key := fmt.Sprint(tensors.MustCopyFlatData[uint64](rng.Key(seed, stream, step...)))
		host := fmt.Sprint(rng.New(seed, stream, step...).Uint64())
		for _, k := range []string{"key " + key, "host " + host} {
			if other, ok := seen[k]; ok {
				t.Errorf("%s and %s have the same numbers", name, other)
			}
			seen[k] = name
		}
	}
	for seed := range uint64(3) {
		for _, stream := range []string{"", "a", "b", "ab", "a\x00", "\x00"} {
			add(seed, stream)
			for step := range uint64(3) {
				add(seed, stream, step)
				add(seed, stream, step, 0)
				add(seed, stream, 0, step+1, 0)
			}
		}
	}
	// The first eight bytes of a name are not a step.
	add(0, "\x01\x00\x00\x00\x00\x00\x00\x00")
	add(9, "wake", 1<<40)
	add(9, "wake", 1<<63)
}

func TestAgain(t *testing.T) {
	draw := func(r *rand.Rand) string { return fmt.Sprint(r.Uint64(), r.NormFloat64()) }
	if a, b := draw(rng.New(5, "x", 1)), draw(rng.New(5, "x", 1)); a != b {
		t.Errorf("the same name gave %s and %s", a, b)
	}
}

// A name always gives the same numbers, whatever was drawn before.
func ExampleNew() {
	for range 2 {
		r := rng.New(1, "shuffle", 0)
		fmt.Println(r.Perm(5))
	}
	// Output:
	// [2 3 1 4 0]
	// [2 3 1 4 0]
}
