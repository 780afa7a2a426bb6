package serve

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/gfnem/gfnem/run/catalog"
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

// On a logarithmic axis the first steps of a long run are as fine as the last ones.
func TestCurveBegins(t *testing.T) {
	var c curve
	for step := range 100_000 {
		c.add(float64(step), float64(step%7))
	}
	filled := 0
	for _, one := range c.on(grid{0, 99_999, 300, true})[:150] {
		if one.n > 0 {
			filled++
		}
	}
	if filled < 50 {
		t.Errorf("the first 300 steps of 100,000 fill %d of 150 cells", filled)
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
		e := newEntry(dir, 1<<40, new(atomic.Int64))
		e.read()
		return e
	}
	same := func(what string, a, b *entry) {
		t.Helper()
		for _, name := range []string{"a", "b/c"} {
			var x, y string
			wholeX := a.look(name, 0, func(c *curve) { x = fmt.Sprint(*c) })
			wholeY := b.look(name, 0, func(c *curve) { y = fmt.Sprint(*c) })
			if x != y || x == "" || !wholeX || !wholeY {
				t.Fatalf("%s: %s differs", what, name)
			}
		}
	}
	e := newEntry(dir, 1<<40, new(atomic.Int64))
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

// Values that are not finite leave gaps where they are, however wide cells are, and in means over runs too.
func TestGaps(t *testing.T) {
	for _, width := range []int{1, 50} {
		var c, straight curve
		for step := range 100 * width {
			y := float64(step)
			straight.add(float64(step), y)
			if at := step / width; at >= 40 && at < 60 {
				y = math.NaN()
			}
			c.add(float64(step), y)
		}
		if c.other != 20*width {
			t.Errorf("%d values are not finite", c.other)
		}
		low, high, _ := c.span()
		for _, g := range []grid{{low, high, 30, false}, {low, high, 300, false}, {low, high, 50, true}} {
			steps := make([]float64, g.n)
			for i := range steps {
				steps[i] = g.edge(float64(i))
			}
			gaps := 0
			for i, y := range means(c.on(g), 1) {
				if in := g.edge(float64(i)) >= low+.42*(high-low) && g.edge(float64(i)+1) <= low+.58*(high-low); in && !(y == gap || math.IsNaN(y)) {
					t.Errorf("%v: %v in the gap", g, y)
				}
				if y == gap {
					gaps++
				}
			}
			if gaps == 0 || extremes(c.on(g))[g.at(low+.5*(high-low))*2] != gap && g.n < 100 {
				t.Errorf("%v: there is no gap", g)
			}
			both := catalog.BandAt([]catalog.Series{series(steps, means(c.on(g), 1)), series(steps, means(straight.on(g), 1))}, steps)
			middle := g.at(low + .5*(high-low))
			if both.N[middle] != 1 || both.N[g.n/10] != 2 {
				t.Errorf("%v: %v runs count", g, both.N)
			}
		}
	}
	var c curve
	c.add(5, math.Inf(1))
	if low, high, ok := c.span(); !ok || low != 5 || high != 5 {
		t.Error("a curve without a finite value is not there")
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

// All that a browser loads is small; what we wrote of it has short lines.
func TestAssets(t *testing.T) {
	total := 0
	for _, files := range []fs.FS{static, templates} {
		if err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, path)
			total += len(text)
			n := 0
			for line := range strings.Lines(string(text)) {
				if n++; utf8.RuneCountInString(line) > 121 && !strings.Contains(path, "uplot") {
					t.Errorf("%s:%d is longer than 120 characters", path, n)
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if total == 0 || total > 300_000 {
		t.Errorf("%d bytes", total)
	}
}
