package vec

// comparisons sets the comparisons, each with its own loop.
func (t *Table[T]) comparisons() {
	t.Compare[Eq] = func(dst []bool, a, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i, x := range a {
			dst[i] = x == b[i]
		}
	}
	t.CompareVS[Eq] = func(dst []bool, a []T, s T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = x == s
		}
	}
	t.Compare[Ne] = func(dst []bool, a, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i, x := range a {
			dst[i] = x != b[i]
		}
	}
	t.CompareVS[Ne] = func(dst []bool, a []T, s T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = x != s
		}
	}
	t.Compare[Lt] = func(dst []bool, a, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i, x := range a {
			dst[i] = x < b[i]
		}
	}
	t.CompareVS[Lt] = func(dst []bool, a []T, s T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = x < s
		}
	}
	t.Compare[Le] = func(dst []bool, a, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i, x := range a {
			dst[i] = x <= b[i]
		}
	}
	t.CompareVS[Le] = func(dst []bool, a []T, s T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = x <= s
		}
	}
	t.Compare[Gt] = func(dst []bool, a, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i, x := range a {
			dst[i] = x > b[i]
		}
	}
	t.CompareVS[Gt] = func(dst []bool, a []T, s T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = x > s
		}
	}
	t.Compare[Ge] = func(dst []bool, a, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i, x := range a {
			dst[i] = x >= b[i]
		}
	}
	t.CompareVS[Ge] = func(dst []bool, a []T, s T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = x >= s
		}
	}
}
