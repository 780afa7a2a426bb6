package main

import (
	"fmt"
	"math"
	"strings"
)

// maxPlus is the ring in which a sum is the greatest of its terms and a term is a+b. Like the maxima of package vec, a
// NaN wins and -0 is less than +0. That takes two maxima for each term, since VMAXPS returns the second of two zeros,
// or if one is NaN.
type maxPlus struct{}

// maxVectors are fewer and smaller tiles than those of products: they need more registers and are bound by arithmetic.
func maxVectors(is isa) []vecs {
	if is.width == 32 {
		few := []int{1, 2, 4}
		return []vecs{{is, "Y", few}, {is, "YY", few}}
	}
	few := []int{1, 2, 4, 8}
	return []vecs{{is, "Y", few}, {is, "Z", few}, {is, "ZZ", few}}
}

// Registers besides those of vecs: a term, another maximum, and the sign bit (AVX-512) or where one is NaN (AVX2).

func (v vecs) term(j int) string { return v.temp(v.class(j), 3) }
func (v vecs) bits(j int) string { return v.temp(v.class(j), 5) }

// greater makes a maximum that of itself and the term.
func (v vecs) greater(j int, most string) string {
	return fmt.Sprintf("GREATER_%s(%s, %s, %s, %s)\n", v.isa.name, v.term(j), most, v.temp(v.class(j), 4), v.bits(j))
}

// maxMacros are what is done to maxima.
func (p *Package) maxMacros(is isa) {
	how := fmt.Sprintf(`
		VMAXP most, term, other
		VCMPP $%d, most, term, bits
		VMAXP term, most, most
		VANDPS other, most, most
		VORPS bits, most, most`, unordQ)
	if is.width == 64 {
		how = `
		VMAXP most, term, other
		VMAXP term, most, most
		VPTERNLOGD $0xd4, bits, other, most`
	}
	p.Macro("GREATER makes most the greater of itself and a term.",
		fmt.Sprintf("GREATER_%s(term, most, other, bits)", is.name), how)
	for _, v := range maxVectors(is) {
		args := strings.Split("abcd"[:v.n()], "")
		row := ""
		for j, most := range args {
			row += v.load("P", "R8", j, v.term(j)) + v.greater(j, most)
		}
		p.Macro("GREATER_ROW takes a row of C for terms.",
			fmt.Sprintf("GREATER_ROW_%s(%s)", v.name(), strings.Join(args, ", ")), row)
		for _, rows := range v.heights {
			t := tile{v, rows}
			p.Macro("MAX_EPILOGUE ends a tile of maxima.", fmt.Sprintf("MAX_EPILOGUE_%dx%s", rows, v.name()), `
				MOVQ params_flags(DI), AX
				TESTQ $const_flagAdd, AX
				JZ store
				MOVQ CX, R8
				`+t.each("GREATER_ROW_%[1]s(%[2]s)", "NEXT_ROW_OF_C")+`
			store:`+t.stores())
		}
	}
}

func (maxPlus) begin(f *Fn, v vecs) {
	if v.wide() {
		f.Text("%s %s, %s", f.broadcast(), constantRef(f.el.size, 1<<(8*f.el.size-1)), v.bits(0))
	}
}

func (maxPlus) clear(f *Fn, t tile) {
	least := math.Float64bits(math.Inf(-1))
	if f.el.size == 4 {
		least = uint64(math.Float32bits(float32(math.Inf(-1))))
	}
	for i := range t.rows {
		for _, most := range strings.Split(t.sums(i, ""), ", ") {
			f.Text("%s %s, %s", f.broadcast(), constantRef(f.el.size, least), most)
		}
	}
}

func (maxPlus) step(f *Fn, v vecs, j int, a, b, most string) {
	f.Text("VADDP%s%s %s, %s, %s", f.el.letter, fused(a), a, b, v.term(j))
	f.Text("%s", v.greater(j, most))
}

func (maxPlus) end(f *Fn, t tile) { f.Text("MAX_EPILOGUE_%dx%s", t.rows, t.name()) }
