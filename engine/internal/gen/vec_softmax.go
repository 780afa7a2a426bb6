package main

import (
	"math"
	"strings"
)

// shiftOf is what to subtract before exponentials: the maximum, or 0 where that is infinite.
func (b *Block) shiftOf(m V) V {
	return b.Blend(b.Cmp(eqOQ, b.Abs(m), b.C(math.Inf(1))), b.C(0), m)
}

// softmaxKernels makes log-sum-exp, softmax and log-softmax of rows: one pass for the maximum, one for the sum of
// exponentials, one for the results.
func (k Kernels) softmaxKernels() {
	for _, name := range []string{"logSumExp", "softmax", "logSoftmax"} {
		f, tail := k.rows(name)
		m, s := f.Pin(), f.Pin()
		parts := []V{m, f.Pin()}
		f.Text("constants")
		f.Text("row:")
		f.Block(func(b *Block) {
			b.Assign(parts[0], b.C(math.Inf(-1)))
			b.Assign(parts[1], b.C(math.Inf(-1)))
		})
		f.rowLoop(tail, 2, func(b *Block, mem string, i int) {
			b.Assign(parts[i], b.RawMax(parts[i], b.LoadFill(mem, b.C(math.Inf(-1)))))
		})
		f.Block(func(b *Block) {
			v := b.butterfly(b.RawMax(parts[0], parts[1]), b.lanes(), (*Block).RawMax)
			if name == "logSumExp" {
				v = b.shiftOf(v)
			}
			b.Assign(m, v)
			b.Assign(s, b.C(0))
		})
		f.rowLoop(tail, 1, func(b *Block, mem string, _ int) {
			v := b.Sub(b.LoadFill(mem, b.C(math.Inf(-1))), m)
			if name == "logSumExp" {
				v = b.Exp(v)
			} else {
				v = b.ExpNonPositive(v)
			}
			if b.tail != none { // lanes beyond the row may hold NaN when the maximum is -Inf
				v = b.Blend(b.tail, v, b.C(0))
			}
			if name == "softmax" {
				b.Store(v, outOf(mem))
			}
			b.Assign(s, b.Add(s, v))
		})
		f.Block(func(b *Block) {
			v := b.butterfly(s, b.lanes(), (*Block).Add)
			switch name {
			case "softmax":
				v = b.Div(b.C(1), v)
			case "logSoftmax":
				v = b.Log(v)
			default:
				v = b.Add(m, b.Log(v))
			}
			b.Assign(s, v)
		})
		switch name {
		case "logSumExp":
			f.storeFirst(s)
		default:
			f.rowLoop(tail, 1, func(b *Block, mem string, _ int) {
				out := outOf(mem)
				if name == "softmax" {
					b.Store(b.Mul(b.Load(out), s), out)
				} else {
					b.Store(b.Sub(b.Sub(b.Load(mem), m), s), out)
				}
			})
			if k.is.neon() {
				f.Text("ADD R3<<%d, R0, R0", log2(k.el.size))
			} else {
				f.Text("LEAQ (DI)(CX*%d), DI", k.el.size)
			}
		}
		f.nextRow()
		short := k.shortRows(name, math.Inf(-1), name != "logSumExp", func(b *Block, group int, v V) V {
			return b.shortSoftmax(name, group, v)
		})
		wrap := "rowMapKernel"
		if name == "logSumExp" {
			wrap = "rowKernel"
		}
		k.fill("t.%s = %s(%d, %s%s)", title(name), wrap, f.lanes(), f.name, short)
	}
}

// shortSoftmax does rows that stand in groups of lanes; lanes beyond a row hold -Inf.
func (b *Block) shortSoftmax(name string, group int, v V) V {
	m := b.butterfly(v, group, (*Block).RawMax)
	if name == "logSumExp" {
		m = b.shiftOf(m)
		return b.Add(m, b.Log(b.butterfly(b.Exp(b.Sub(v, m)), group, (*Block).Add)))
	}
	d := b.Sub(v, m)
	e := b.ExpNonPositive(d)
	e = b.Blend(b.Fn.K(2), e, b.C(0))
	s := b.butterfly(e, group, (*Block).Add)
	if name == "softmax" {
		return b.Div(e, s)
	}
	return b.Sub(d, b.Log(s))
}

// outOf is the place in the result of an operand's memory.
func outOf(mem string) string {
	return strings.NewReplacer("(SI)", "(DI)", "(R6)", "(R7)").Replace(mem)
}
