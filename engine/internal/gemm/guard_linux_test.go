package gemm

import (
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fenced returns n elements between two pages that may not be touched, next to the first or the second one.
func fenced[T Float](t *testing.T, n int, atEnd bool) []T {
	page := os.Getpagesize()
	size := n * int(unsafe.Sizeof(T(0)))
	inside := up(max(size, 1), page)
	all, err := unix.Mmap(-1, 0, inside+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { unix.Munmap(all) })
	for _, fence := range [][]byte{all[:page], all[page+inside:]} {
		if err := unix.Mprotect(fence, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	from := page
	if atEnd {
		from = page + inside - size
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&all[from])), n)
}

// TestFences reads and writes nothing outside the matrices: the process would die.
func TestFences(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector does not know this memory")
	}
	fences[float32](t)
	fences[float64](t)
}

func fences[T Float](t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	sizes := []int{1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 20, 31, 32, 33, 40, 63, 64, 65, 100, 130, 200}
	pick := func() int { return sizes[r.IntN(len(sizes))] }
	room := func(atEnd bool) func(n int) []T {
		const most = 300 * 300
		d := fenced[T](t, most, atEnd)
		for i := range d {
			d[i] = 1
		}
		return func(n int) []T {
			if atEnd {
				return d[most-n:]
			}
			return d[:n]
		}
	}
	for _, atEnd := range []bool{false, true} {
		a, b, c, bias, rowBias := room(atEnd), room(atEnd), room(atEnd), room(atEnd), room(atEnd)
		for range 1500 {
			m, n, k := pick(), pick(), pick()
			form := func(room func(int) []T, rows, cols int) Matrix[T] {
				if r.IntN(2) == 0 {
					return Dense(room(rows*cols), cols, rows).T()
				}
				return Dense(room(rows*cols), rows, cols)
			}
			ma, mb, mc := form(a, m, k), form(b, k, n), Dense(c(m*n), m, n)
			o := Options[T]{Add: r.IntN(2) == 0}
			if r.IntN(2) == 0 {
				o.Bias, o.RowBias, o.Act = bias(n), rowBias(m), Leaky
			}
			for _, level := range levels() {
				clear(mc.Data)
				gemmAt(level, mc, ma, mb, o)
				want := T(k)
				if o.Bias != nil {
					want += 2
				}
				for i, x := range mc.Data {
					if x != want {
						t.Fatalf("%v [%d,%d]x[%d,%d]: element %d is %v, want %v", level, m, k, k, n, i, x, want)
					}
				}
				batchAt(level, []Dim{{N: 1}}, mc, ma, mb, o)
			}
		}
	}
}
