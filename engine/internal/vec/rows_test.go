package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

var rowShapes = [][2]int{{0, 3}, {1, 1}, {3, 1}, {5, 2}, {8, 2}, {33, 3}, {7, 4}, {40, 4}, {9, 5}, {10, 7}, {11, 8}, {6, 9},
	{19, 9}, {5, 15}, {4, 16}, {7, 16}, {3, 17}, {5, 31}, {5, 32}, {4, 33}, {3, 63}, {3, 64}, {3, 65}, {2, 100}, {9, 130},
	{300, 3}, {300, 9}, {270, 16}, {600, 5}, {600, 2}, {100, 50}, {2, 1000}, {129, 129}}

// closeTo is a relative tolerance for sums of n terms whose magnitudes add up to scale.
func closeTo[T Float](want, got, scale float64, n int) bool {
	if want != want || got != got || math.IsInf(want, 0) || math.IsInf(got, 0) {
		return want != want && got != got || want == got
	}
	eps := 0x1p-23
	if _, ok := any(T(0)).(float64); ok {
		eps = 0x1p-52
	}
	return math.Abs(want-got) <= eps*scale*(4+float64(n)/16)
}

func TestRows(t *testing.T) {
	each(t, testRows[float32], testRows[float64], nil, nil, nil, nil)
}

func testRows[T Float](t *testing.T, k kind[T], l cpu.Level) {
	tab := k.make(l)
	r := rand.New(rand.NewPCG(3, 4))
	for trial := range 4 {
		for _, sh := range rowShapes {
			rows, n := sh[0], sh[1]
			a := make([]T, rows*n)
			for i := range a {
				switch a[i] = T(2 * r.NormFloat64()); {
				case trial == 1:
					a[i] = k.draw(r)
				case trial == 2 && r.IntN(3) > 0:
					a[i] = T(math.Inf(-1))
				case trial == 3:
					a[i] *= 100
				}
			}
			name := fmt.Sprintf("[%d, %d] trial %d", rows, n, trial)
			testRowReductions(t, tab, k, r, name, a, rows, n)
			testColumns(t, tab, k, r, name, a, n)
			testSoftmax(t, tab, k, r, name, a, rows, n)
		}
	}
	mustPanic(t, "RowSum", func() { tab.RowSum(make([]T, 3), make([]T, 10), 3) })
	mustPanic(t, "Softmax", func() { tab.Softmax(make([]T, 10), make([]T, 10), 3) })
	mustPanic(t, "ColSum", func() { tab.ColSum(make([]T, 3), make([]T, 10)) })
}

func testRowReductions[T Float](t *testing.T, tab *Table[T], k kind[T], r *rand.Rand, name string, a []T, rows, n int) {
	t.Helper()
	dst := pad(r, rows, T(7), k.draw)
	arg := pad(r, rows, int32(-7), func(*rand.Rand) int32 { return 0 })
	for op, f := range map[string]func(dst, a []T, n int){"sum": tab.RowSum, "prod": tab.RowProd, "max": tab.RowMax, "min": tab.RowMin} {
		f(dst.s, a, n)
		dst.intact(t, op, k.equal)
		for i := range rows {
			row := a[i*n : (i+1)*n]
			mild := true // products of mild factors neither overflow nor underflow
			want, scale := map[string]float64{"sum": 0, "prod": 1, "max": math.Inf(-1), "min": math.Inf(1)}[op], 1.0
			for _, x := range row {
				v := float64(x)
				switch op {
				case "sum":
					want += v
					scale += math.Abs(v)
				case "prod":
					want *= v
					mild = mild && math.Abs(v) < 100 && math.Abs(v) > 0.01
				case "max":
					want = max(want, v)
				case "min":
					want = min(want, v)
				}
			}
			switch op {
			case "max", "min":
				if !k.equal(T(want), dst.s[i]) {
					t.Fatalf("%s of row %d of %s is %v, want %v", op, i, name, dst.s[i], want)
				}
			case "sum":
				if !closeTo[T](float64(T(want)), float64(dst.s[i]), scale, n) && scale < 1e38 {
					t.Fatalf("%s of row %d of %s is %v, want %v: %v", op, i, name, dst.s[i], want, row)
				}
			case "prod":
				if s := math.Abs(want); mild && n < 16 && s < 1e30 && s > 1e-30 && !closeTo[T](want, float64(dst.s[i]), s, 8*n) {
					t.Fatalf("%s of row %d of %s is %v, want %v", op, i, name, dst.s[i], want)
				}
			}
		}
	}
	total, scale := 0.0, 1.0
	for _, x := range a {
		total += float64(x)
		scale += math.Abs(float64(x))
	}
	if s := tab.Sum(a); scale < 1e38 && !closeTo[T](float64(T(total)), float64(s), scale, rows*n) {
		t.Fatalf("sum of %s is %v, want %v", name, s, total)
	}
	for op, f := range map[string]func(dst []int32, a []T, n int){"max": tab.ArgMax, "min": tab.ArgMin} {
		f(arg.s, a, n)
		arg.intact(t, op, sameInt[int32])
		for i := range rows {
			row := a[i*n : (i+1)*n]
			best := 0
			for j, x := range row {
				if op == "max" && x > row[best] || op == "min" && x < row[best] || j > 0 && x != x {
					best = j
				}
			}
			if int(arg.s[i]) != best {
				t.Fatalf("arg%s of row %d of %s is %d, want %d: %v", op, i, name, arg.s[i], best, row)
			}
		}
	}
}

func testColumns[T Float](t *testing.T, tab *Table[T], k kind[T], r *rand.Rand, name string, a []T, n int) {
	t.Helper()
	dst := pad(r, n, T(7), k.draw)
	for op, f := range map[string]func(dst, a []T){"sum": tab.ColSum, "max": tab.ColMax, "min": tab.ColMin} {
		f(dst.s, a)
		dst.intact(t, "column "+op, k.equal)
		for j := range n {
			want, scale := map[string]float64{"sum": 0, "max": math.Inf(-1), "min": math.Inf(1)}[op], 1.0
			for i := j; i < len(a); i += n {
				v := float64(a[i])
				switch op {
				case "sum":
					want += v
					scale += math.Abs(v)
				case "max":
					want = max(want, v)
				case "min":
					want = min(want, v)
				}
			}
			ok := k.equal(T(want), dst.s[j])
			if op == "sum" {
				ok = scale > 1e38 || closeTo[T](float64(T(want)), float64(dst.s[j]), scale, len(a)/n)
			}
			if !ok {
				t.Fatalf("%s of column %d of %s is %v, want %v", op, j, name, dst.s[j], want)
			}
		}
	}
}

func testSoftmax[T Float](t *testing.T, tab *Table[T], k kind[T], r *rand.Rand, name string, a []T, rows, n int) {
	t.Helper()
	lse := pad(r, rows, T(7), k.draw)
	soft, logs := pad(r, rows*n, T(7), k.draw), pad(r, rows*n, T(7), k.draw)
	tab.LogSumExp(lse.s, a, n)
	tab.Softmax(soft.s, a, n)
	tab.LogSoftmax(logs.s, a, n)
	lse.intact(t, "logSumExp", k.equal)
	soft.intact(t, "softmax", k.equal)
	logs.intact(t, "logSoftmax", k.equal)
	for i := range rows {
		row := a[i*n : (i+1)*n]
		m := math.Inf(-1)
		for _, x := range row {
			m = max(m, float64(x))
		}
		sum, shifted := 0.0, 0.0
		base := m
		if math.IsInf(m, 0) {
			base = 0
		}
		for _, x := range row {
			sum += math.Exp(float64(x) - m)
			shifted += math.Exp(float64(x) - base)
		}
		want := base + math.Log(shifted)
		if !closeTo[T](want, float64(lse.s[i]), 1+math.Abs(want), n) {
			t.Fatalf("logSumExp of row %d of %s is %v, want %v: %v", i, name, lse.s[i], want, row)
		}
		for j, x := range row {
			d := float64(T(float64(x) - m)) // the kernels round the difference
			if math.IsInf(float64(x)-m, 0) || math.Abs(d) > 1e30 {
				continue
			}
			w := math.Exp(d) / sum
			if g := float64(soft.s[i*n+j]); !closeTo[T](w, g, w+1e-37, n) {
				t.Fatalf("softmax of row %d of %s is %v at %d, want %v: %v", i, name, g, j, w, row)
			}
			w = d - math.Log(sum)
			if g := float64(logs.s[i*n+j]); !closeTo[T](w, g, 1+math.Abs(w), n) {
				t.Fatalf("logSoftmax of row %d of %s is %v at %d, want %v: %v", i, name, g, j, w, row)
			}
		}
	}
	x := slices.Clone(a)
	tab.Softmax(x, x, n)
	k.matches(t, "softmax in place", soft.s, x, a)
	x = slices.Clone(a)
	tab.LogSoftmax(x, x, n)
	k.matches(t, "logSoftmax in place", logs.s, x, a)
}
