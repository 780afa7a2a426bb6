package vec

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"testing"
	"text/tabwriter"
	"time"
)

// fastest is the least time of one call over many, which is what a busy machine leaves to compare.
func fastest(f func()) time.Duration {
	f()
	best := time.Hour
	inner := 1
	for start := time.Now(); time.Since(start) < 60*time.Millisecond; {
		t := time.Now()
		for range inner {
			f()
		}
		d := time.Since(t)
		if d < 20*time.Microsecond {
			inner *= 2
			continue
		}
		best = min(best, d/time.Duration(inner))
	}
	return best
}

func normals[T Float](n int) []T {
	r := rand.New(rand.NewPCG(1, 1))
	a := make([]T, n)
	for i := range a {
		a[i] = T(r.NormFloat64())
	}
	return a
}

// TestSpeed prints nanoseconds an element of every kernel, from L1 and from memory. It runs where VEC_SPEED is set
// to a pattern of their names, such as a dot for all.
func TestSpeed(t *testing.T) {
	if os.Getenv("VEC_SPEED") == "" {
		t.Skip("VEC_SPEED is not set")
	}
	speed(t, kindF32)
	speed(t, kindF64)
}

func speed[T Float](t *testing.T, k kind[T]) {
	w := tabwriter.NewWriter(os.Stdout, 6, 0, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	const small, large = 1024, 1 << 20
	fmt.Fprintf(w, "%s\t", k.name)
	for _, l := range levels() {
		fmt.Fprintf(w, "%s 1Ki\t1Mi\t", l)
	}
	fmt.Fprintln(w)
	line := func(name string, f func(tab *Table[T], n int) func()) {
		if !regexp.MustCompile(os.Getenv("VEC_SPEED")).MatchString(name) {
			return
		}
		fmt.Fprintf(w, "%s\t", name)
		for _, l := range levels() {
			for _, n := range []int{small, large} {
				d := fastest(f(k.make(l), n))
				fmt.Fprintf(w, "%.3f\t", float64(d)/float64(n))
			}
		}
		fmt.Fprintln(w)
	}
	a, b, c, dst := normals[T](large), normals[T](large), normals[T](large), make([]T, large)
	m := make([]bool, large)
	for i := range m {
		m[i] = a[i] > 0
	}
	line("copy", func(_ *Table[T], n int) func() { return func() { copy(dst[:n], a[:n]) } })
	for op := range Not {
		line(op.String(), func(tab *Table[T], n int) func() { f := tab.Unary[op]; return func() { f(dst[:n], a[:n]) } })
	}
	for op := range And {
		line(op.String(), func(tab *Table[T], n int) func() { f := tab.Binary[op]; return func() { f(dst[:n], a[:n], b[:n]) } })
	}
	line("add scalar", func(tab *Table[T], n int) func() { return func() { tab.BinaryVS[Add](dst[:n], a[:n], 3) } })
	line("fma", func(tab *Table[T], n int) func() { return func() { tab.FMA(dst[:n], a[:n], b[:n], c[:n]) } })
	line("axpby", func(tab *Table[T], n int) func() { return func() { tab.AXPBY(dst[:n], a[:n], 2, b[:n], 3) } })
	line("fill", func(tab *Table[T], n int) func() { return func() { tab.Fill(dst[:n], 2) } })
	line("lt", func(tab *Table[T], n int) func() { return func() { tab.Compare[Lt](m[:n], a[:n], b[:n]) } })
	line("select", func(tab *Table[T], n int) func() { return func() { tab.Select(dst[:n], m[:n], a[:n], b[:n]) } })
	line("sum", func(tab *Table[T], n int) func() { return func() { tab.Sum(a[:n]) } })
	line("max", func(tab *Table[T], n int) func() { return func() { tab.Max(a[:n]) } })
	for _, cols := range []int{2, 4, 9, 16, 32, 64, 256, 1024} {
		rows := func(n int) int { return n / cols }
		shape := func(s string) string { return fmt.Sprintf("%s of %d", s, cols) }
		line(shape("row sum"), func(tab *Table[T], n int) func() {
			r := rows(n)
			return func() { tab.RowSum(dst[:r], a[:r*cols], cols) }
		})
		line(shape("row max"), func(tab *Table[T], n int) func() {
			r := rows(n)
			return func() { tab.RowMax(dst[:r], a[:r*cols], cols) }
		})
		line(shape("column sum"), func(tab *Table[T], n int) func() {
			r := rows(n)
			return func() { tab.ColSum(dst[:cols], a[:r*cols]) }
		})
		at := make([]int32, large)
		line(shape("argmax"), func(tab *Table[T], n int) func() {
			r := rows(n)
			return func() { tab.ArgMax(at[:r], a[:r*cols], cols) }
		})
		line(shape("logsumexp"), func(tab *Table[T], n int) func() {
			r := rows(n)
			return func() { tab.LogSumExp(dst[:r], a[:r*cols], cols) }
		})
		line(shape("softmax"), func(tab *Table[T], n int) func() {
			r := rows(n)
			return func() { tab.Softmax(dst[:r*cols], a[:r*cols], cols) }
		})
		line(shape("logsoftmax"), func(tab *Table[T], n int) func() {
			r := rows(n)
			return func() { tab.LogSoftmax(dst[:r*cols], a[:r*cols], cols) }
		})
	}
	line("transpose", func(tab *Table[T], n int) func() {
		return func() { tab.Transpose(dst[:n], a[:n], 32, n/32) }
	})
	line("transpose square", func(tab *Table[T], n int) func() {
		side := map[int]int{small: 32, large: 1024}[n]
		return func() { tab.Transpose(dst[:n], a[:n], side, side) }
	})
	if k.name == "float32" {
		words := make([]uint32, large)
		for _, l := range levels() {
			d := fastest(func() { randomPhilox(l, words[:small], State{1, 2, 3}) })
			fmt.Fprintf(w, "philox %s\t%.3f\n", l, float64(d)/small)
		}
	}
}

// TestCallCost prints what a call costs beside the work: the least time for one element.
func TestCallCost(t *testing.T) {
	if os.Getenv("VEC_SPEED") == "" {
		t.Skip("VEC_SPEED is not set")
	}
	a := make([]float32, 16)
	for _, l := range levels() {
		tab := newF32(l)
		add, exp := tab.Binary[Add], tab.Unary[Exp]
		t.Logf("%s: add of 16 elements %v, exp of 16 elements %v", l, fastest(func() { add(a, a, a) }), fastest(func() { exp(a, a) }))
	}
}
