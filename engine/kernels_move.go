package engine

// picker moves elements of one size between rows.
type picker struct {
	// index sets rows of elements: element j of row r is from[r*step+inner[j]], of a pattern.
	index func(to, from ptr, rows, step int, p *pattern)
	// spread repeats from[r*step] width times.
	spread func(to, from ptr, rows, width, step int)
	// slice copies width elements from r*step on.
	slice func(to, from ptr, rows, width, step int)
	// place copies rows of width elements to rows that are step apart.
	place func(to, from ptr, rows, width, step int)
	// scatter sets to[r*step+inner[j]] to element j of row r, of width elements.
	scatter func(to, from ptr, rows, width, step int, inner []int32)
	// lines copies n elements that are step apart.
	line func(to, from ptr, n, step int)
}

var pickers = map[int]*picker{
	1: newPicker[uint8](1), 2: newPicker[uint16](2), 4: newPicker[uint32](4), 8: newPicker[uint64](8),
}

func newPicker[T any](size int) *picker {
	return &picker{
		index: func(to, from ptr, rows, step int, p *pattern) {
			y, n := elems[T](to, rows*p.width), p.piece
			for r := range rows {
				x, y := add(from, r*step, size), y[r*p.width:][:p.width]
				if n < 4 { // too little for a copy
					for j, i := range p.inner {
						y[j] = *(*T)(add(x, int(i), size))
					}
					continue
				}
				for j := 0; j < len(y); j += n {
					copy(y[j:j+n], elems[T](add(x, int(p.inner[j]), size), n))
				}
			}
		},
		spread: func(to, from ptr, rows, width, step int) {
			spreadRows[T](to, from, rows, width, step, size)
		},
		slice: func(to, from ptr, rows, width, step int) {
			copyRows[T](to, from, rows, width, width, step, size)
		},
		place: func(to, from ptr, rows, width, step int) {
			copyRows[T](to, from, rows, width, step, width, size)
		},
		scatter: func(to, from ptr, rows, width, step int, inner []int32) {
			x := elems[T](from, rows*width)
			for r := range rows {
				row := elems[T](add(to, r*step, size), step)
				for j, i := range inner {
					row[i] = x[r*width+j]
				}
			}
		},
		line: func(to, from ptr, n, step int) {
			for i := range elems[T](to, n) {
				elems[T](to, n)[i] = *(*T)(add(from, i*step, size))
			}
		},
	}
}

// fill sets all elements; long runs by copies of what is set already.
func fill[T any](y []T, v T) {
	n := min(len(y), 32)
	for j := range y[:n] {
		y[j] = v
	}
	for ; n < len(y); n *= 2 {
		copy(y[n:], y[:min(n, len(y)-n)])
	}
}

// gather loads rows that start anywhere.
func gather(to, base operand, p *pattern, size int) instr {
	k := pickers[size]
	inner, width, start := p.inner, p.width, p.start
	dims, strides := p.dims, p.strides
	return func(c *rowCtx) {
		y, x := c.at(to), c.mem[base.slot]
		for r := range c.rows {
			off, i := start, c.row+r
			for d := len(dims) - 1; d >= 0; d-- {
				off += i % dims[d] * strides[d]
				i /= dims[d]
			}
			from, row := add(x, off, size), add(y, r*width, size)
			switch {
			case inner != nil:
				k.index(row, from, 1, 0, p)
			case p.repeat:
				k.spread(row, from, 1, width, 0)
			default:
				k.slice(row, from, 1, width, 0)
			}
		}
	}
}
