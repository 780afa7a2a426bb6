//go:build amd64 || arm64

package vec

// groupKernel reduces rows that stand in groups of lanes (see shortRows in engine/internal/gen).
type groupKernel[T any] func(dst, a *T, groups, size, out int, load, spread, pick, store uint64)

// rowKernel turns kernels on rows into one on slices: rows of at most a vector go several at once where kernels for
// groups of 2, 4, ... lanes are given.
func rowKernel[T any](lanes int, f func(dst, a *T, rows, n int), short ...groupKernel[T]) func(dst, a []T, n int) {
	return func(dst, a []T, n int) {
		checkRows(len(dst), len(a), n)
		switch {
		case len(dst) == 0:
		case n <= lanes && len(short) > 0:
			shortRows(lanes, short, &dst[0], &a[0], dst, a, n, 1)
		default:
			f(&dst[0], &a[0], len(dst), n)
		}
	}
}

// rowMapKernel is rowKernel for kernels whose result has the shape of their operand.
func rowMapKernel[T any](lanes int, f func(dst, a *T, rows, n int), short ...groupKernel[T]) func(dst, a []T, n int) {
	return func(dst, a []T, n int) {
		check(len(dst), len(a))
		checkRows(len(a)/max(n, 1), len(a), n)
		switch {
		case len(dst) == 0:
		case n <= lanes && len(short) > 0:
			shortRows(lanes, short, &dst[0], &a[0], dst, a, n, n)
		default:
			f(&dst[0], &a[0], len(a)/n, n)
		}
	}
}

// shortRows runs the kernel of the smallest group that holds a row, out results for each row.
func shortRows[T any](lanes int, short []groupKernel[T], d, p *T, dst, a []T, n, out int) {
	group, k := 2, 0
	for group < n {
		group *= 2
		k++
	}
	per := lanes / group // rows in a vector
	var spread, pick uint64
	for g := range per {
		spread |= (1<<n - 1) << (g * group)
		pick |= 1 << (g * group)
	}
	rows := len(a) / n
	if whole := rows / per; whole > 0 {
		short[k](d, p, whole, per*n, per*out, 1<<(per*n)-1, spread, pick, 1<<(per*out)-1)
	}
	if rest := rows % per; rest > 0 {
		at := rows - rest
		short[k](&dst[at*out], &a[at*n], 1, 0, 0, 1<<(rest*n)-1, spread, pick, 1<<(rest*out)-1)
	}
}

// colKernel turns a kernel on columns into one on slices. Few columns are taken several rows at a time, as if rows
// were longer, and the parts are combined after.
func colKernel[T Number](combine func(dst, a, b []T), f func(dst, a *T, rows, n int), neutral T) func(dst, a []T) {
	const narrow = 48
	return func(dst, a []T) {
		n := len(dst)
		if n == 0 || len(a)%n != 0 {
			badRows(n, len(a), n)
		}
		rows := len(a) / n
		switch {
		case rows == 0:
			for i := range dst {
				dst[i] = neutral
			}
			return
		case n >= narrow || rows < 8:
			f(&dst[0], &a[0], rows, n)
			return
		}
		k := min((127+n)/n, rows)
		wide := make([]T, k*n)
		whole := rows / k
		f(&wide[0], &a[0], whole, k*n)
		rest := a[whole*k*n:]
		combine(wide[:len(rest)], wide[:len(rest)], rest)
		f(&dst[0], &wide[0], k, n)
	}
}
