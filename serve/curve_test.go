package serve

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// However many values there are, a curve has few cells, and the least and greatest values of each are there, where
// they were.
func TestCurveKeepsExtremes(t *testing.T) {
	for trial := range 50 {
		r := rand.New(rand.NewPCG(uint64(trial), 1))
		var c curve
		value := map[float64]float64{}
		step, n := float64(r.IntN(5)), 1+r.IntN(5000)
		low, high, sum := math.Inf(1), math.Inf(-1), 0.0
		for range n {
			y := r.NormFloat64()
			if r.IntN(200) == 0 {
				y *= 100 // a peak, which must not be lost
			}
			value[step] = y
			low, high, sum = min(low, y), max(high, y), sum+y
			c.add(step, y)
			step += float64(1 + r.IntN(9))
		}
		c.add(step, math.NaN())
		c.add(step, math.Inf(1))
		c.add(math.Inf(1), 0)
		if c.other != 3 || len(c.cells) > cells {
			t.Fatalf("%d cells, %d values that are not finite or nowhere", len(c.cells), c.other)
		}
		total, count := 0.0, 0.0
		for _, one := range c.cells {
			if total, count = total+one.sum, count+one.n; one.n > 0 && (value[one.minAt] != one.min || value[one.maxAt] != one.max) {
				t.Fatalf("a cell says %v at %v, and %v at %v", one.min, one.minAt, one.max, one.maxAt)
			}
		}
		if int(count) != n || math.Abs(total-sum) > 1e-9*float64(n) {
			t.Fatalf("%v values of %d, which add up to %v instead of %v", count, n, total, sum)
		}
		first, last, _ := c.span()
		for _, g := range []grid{{first, last, 300, false}, {first, last, 37, false}, {first, last, 120, true}} {
			got, gotHigh := math.Inf(1), math.Inf(-1)
			rows := c.on(g)
			for i, one := range rows {
				if one.n == 0 {
					continue
				}
				got, gotHigh = min(got, one.min), max(gotHigh, one.max)
				if one.min == low && g.at(one.minAt) != i || one.max == high && g.at(one.maxAt) != i {
					t.Fatalf("an extreme of step %v is in cell %d, not %d", one.minAt, i, g.at(one.minAt))
				}
			}
			if got != low || gotHigh != high {
				t.Fatalf("a picture from %v to %v, the curve is from %v to %v", got, gotHigh, low, high)
			}
			all := extremes(rows)
			if len(all) != 2*g.n {
				t.Fatal(len(all))
			}
		}
	}
}

// What was read bit by bit is what is read at once; a journal that is cut and written anew is read anew.
func TestFollowing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "metrics.jsonl")
	r := rand.New(rand.NewPCG(1, 1))
	var text []byte
	for step := range 3000 {
		text = fmt.Appendf(text, "{\"step\":%d,\"a\":%v,\"b/c\":%v}\n", step, r.NormFloat64(), r.Float64())
	}
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fresh := func() *entry {
		e := newEntry(dir)
		e.read()
		return e
	}
	same := func(what string, a, b *entry) {
		t.Helper()
		for _, name := range []string{"a", "b/c"} {
			x, wholeX := a.curve(name)
			y, wholeY := b.curve(name)
			if fmt.Sprint(x) != fmt.Sprint(y) || !wholeX || !wholeY {
				t.Fatalf("%s: %s differs", what, name)
			}
		}
	}
	e := newEntry(dir)
	for at := 0; at < len(text); at += 1 + r.IntN(20_000) { // also in the middle of lines
		write(text[:at])
		e.read()
	}
	write(text)
	if !e.read() || e.read() {
		t.Error("what was added was not seen, or seen twice")
	}
	same("bit by bit", e, fresh())
	other := append(append([]byte{}, text[:len(text)/2]...), "\n"...)
	other = other[:len(other)-1]
	for i := len(other) - 1; other[i] != '\n'; i-- {
		other = other[:i]
	}
	other = fmt.Appendf(other, "{\"step\":5000,\"a\":7,\"b/c\":8}\n")
	write(other)
	e.read()
	same("cut and written anew", e, fresh())
	write(append(other, "nonsense\n"...))
	if e.read(); e.wrong == "" {
		t.Error("nonsense is not noticed")
	}
}

func TestQuery(t *testing.T) {
	for _, one := range []string{"a<b", "step>=x"} {
		if _, err := parseQuery(one); err == nil {
			t.Errorf("%q is taken", one)
		}
	}
	q, err := parseQuery("wake.epsilon>=0.1 task=mixture !stopped x!=y")
	if err != nil || fmt.Sprint(q) != "[{wake.epsilon >= 0.1} {task = mixture} {  !stopped} {x != y}]" {
		t.Errorf("%v %v", q, err)
	}
}

// All that a browser loads is small.
func TestAssetsAreSmall(t *testing.T) {
	total := int64(0)
	for _, files := range []fs.FS{static, templates} {
		if err := fs.WalkDir(files, ".", func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			total += info.Size()
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if total == 0 || total > 300_000 {
		t.Errorf("%d bytes", total)
	}
}
