package main

import (
	"fmt"
	"strings"
)

// The macros below are what kernels of tiles do before and after their loop. They are in a header, since they are the
// same for both types of lanes (see typeMacros).

// tileMacros are what is the same for all shapes.
func (p *Package) tileMacros() {
	p.Macro("OPERANDS reads where A, B and C are, and the step between rows of A.", "OPERANDS", `
		MOVQ params_a(DI), SI
		MOVQ params_b(DI), DX
		MOVQ params_c(DI), CX
		MOVQ params_aRow(DI), BX
		LEAQ (BX)(BX*2), R10
		LEAQ (BX)(BX*4), R11`)
	p.Macro("FIRST_TILE reads what changes from tile to tile.", "FIRST_TILE", `
		OPERANDS
		MOVQ params_bRow(DI), R13
		MOVQ params_tiles(DI), AX
		MOVQ AX, tiles-8(SP)
		MOVQ params_bias(DI), AX
		MOVQ AX, bias-16(SP)
		MOVQ params_rowBias(DI), AX
		MOVQ AX, rowBias-24(SP)`)
	p.Macro("NEXT_TILE goes on to the next tile, or returns.", "NEXT_TILE", `
		DECQ tiles-8(SP)
		JZ done
		ADDQ params_aTile(DI), SI
		ADDQ params_bTile(DI), DX
		ADDQ params_cTile(DI), CX
		MOVQ params_biasTile(DI), AX
		ADDQ AX, bias-16(SP)
		MOVQ params_rowBiasTile(DI), AX
		ADDQ AX, rowBias-24(SP)
		JMP tile
		DONE`)
	p.Macro("NEXT_ROW_OF_C goes on to the next row.", "NEXT_ROW_OF_C", `
		ADDQ params_cRow(DI), R8`)
	p.Macro("LAST_MASK makes Y15 the mask of the columns in the last vector.", "LAST_MASK", `
		MOVQ $32, AX
		MOVQ params_last(DI), R8
		SHLQ $LOG_SIZE, R8
		SUBQ R8, AX
		LEAQ tailmask<>(SB), R8
		VMOVUPS (R8)(AX*1), Y15`)
}

// rowOfSumsMacros are what is done to one row of sums: registers a, b, ...
func (p *Package) rowOfSumsMacros(v vecs) {
	args := strings.Split("abcd"[:v.n()], "")
	each := func(do func(j int, sum string) string) string {
		s := ""
		for j, a := range args {
			s += do(j, a) + "\n"
		}
		return s
	}
	list := strings.Join(args, ", ")
	row := func(name, comment, params, body string) {
		p.Macro(name+" "+comment, fmt.Sprintf("%s_%s(%s)", name, v.name(), params), body)
	}
	zero := func(j int) string { return v.temp(v.class(j), 0) }

	masks := "LAST_MASK"
	if v.wide() {
		masks = "MOVQ params_mask(DI), AX\n" + each(func(j int, _ string) string {
			s := fmt.Sprintf("KMOVW AX, K%d", j+1)
			if j < v.n()-1 {
				s += fmt.Sprintf("\nSHRQ $(%d/SIZE), AX", v.bytes(j))
			}
			return s
		})
	}
	p.Macro("MASKS says which columns are there.", "MASKS_"+v.name(), masks)
	row("CLEAR", "makes sums 0.", list, each(func(j int, sum string) string {
		if v.wide() {
			return fmt.Sprintf("VPXORD %[1]s, %[1]s, %[1]s", sum)
		}
		return fmt.Sprintf("VXORPS %[1]s, %[1]s, %[1]s", sum)
	}))
	row("ADD", "adds a row of C.", list, each(func(j int, sum string) string {
		if v.wide() {
			return fmt.Sprintf("VADDP %s, %s, K%d, %s", v.mem("R8", j), sum, j+1, sum)
		}
		return v.load("P", "R8", j, v.temp("Y", 0)) + fmt.Sprintf("VADDP %s, %s, %s", v.temp("Y", 0), sum, sum)
	}))
	p.Macro("LOAD_BIAS reads the biases of columns.", "LOAD_BIAS_"+v.name(), each(func(j int, _ string) string {
		return v.load("P", "R8", j, v.b(j))
	}))
	row("BIAS", "adds them.", list, each(func(j int, sum string) string {
		return fmt.Sprintf("VADDP %s, %s, %s", v.b(j), sum, sum)
	}))
	row("ROW_BIAS", "adds the bias of row i.", "i, "+list, fmt.Sprintf("VBROADCASTS (i*SIZE)(R8), %s\n", zero(0))+
		each(func(j int, sum string) string { return fmt.Sprintf("VADDP %s, %s, %s", zero(j), sum, sum) }))
	row("RELU", "is the maximum of sums and 0.", list, each(func(j int, sum string) string {
		return fmt.Sprintf("VMAXP %s, %s, %s", sum, zero(j), sum)
	}))
	row("LEAKY", "multiplies negative sums by the slope.", list, each(func(j int, sum string) string {
		slope := v.temp(v.class(j), 1)
		if v.wide() {
			return fmt.Sprintf("VCMPP $0x11, %s, %s, K6\nVMULP %s, %s, K6, %s", zero(j), sum, slope, sum, sum)
		}
		low := v.temp("Y", 2)
		return fmt.Sprintf("VMINP %[1]s, %[2]s, %[3]s\nVMAXP %[1]s, %[2]s, %[1]s\nVFMADD231P %[3]s, %[4]s, %[1]s",
			sum, zero(j), low, slope)
	}))
	row("STORE", "writes a row of C.", list, each(func(j int, sum string) string {
		return fmt.Sprintf("VMOVUP %s, %s", sum, v.mem("R8", j))
	}))
	row("STORE_PART", "writes the columns that are there.", list, each(func(j int, sum string) string {
		switch {
		case v.wide():
			return fmt.Sprintf("VMOVUP %s, K%d, %s", sum, j+1, v.mem("R8", j))
		case v.masked(j):
			return fmt.Sprintf("VMASKMOVP %s, Y15, %s", sum, v.mem("R8", j))
		}
		return fmt.Sprintf("VMOVUP %s, %s", sum, v.mem("R8", j))
	}))
}

// each writes something for each row: of the shape, the registers and the number of a row.
func (t tile) each(format, between string) string {
	var rows []string
	for i := range t.rows {
		rows = append(rows, fmt.Sprintf(format, t.name(), t.sums(i, ""), i))
	}
	return strings.Join(rows, "\n"+between+"\n") + "\n"
}

// epilogue is the macro of all that is done to the sums of a tile.
func (p *Package) epilogue(t tile) {
	each := t.each
	zero := fmt.Sprintf("VXORPS X%[1]s, X%[1]s, X%[1]s\n", t.temp("", 0))
	p.Macro("EPILOGUE ends a tile with what the flags ask for.", fmt.Sprintf("EPILOGUE_%dx%s", t.rows, t.name()), `
		MOVQ params_flags(DI), AX
		TESTQ AX, AX
		JZ store
		TESTQ $const_flagAdd, AX
		JZ bias
		MOVQ CX, R8
		`+each("ADD_%[1]s(%[2]s)", "NEXT_ROW_OF_C")+`
	bias:
		TESTQ $const_flagBias, AX
		JZ rowBias
		MOVQ bias-16(SP), R8
		LOAD_BIAS_`+t.name()+"\n"+each("BIAS_%[1]s(%[2]s)", "")+`
	rowBias:
		TESTQ $const_flagRowBias, AX
		JZ relu
		MOVQ rowBias-24(SP), R8
		`+each("ROW_BIAS_%[1]s(%[3]d, %[2]s)", "")+`
	relu:
		TESTQ $const_flagReLU, AX
		JZ leaky
		`+zero+each("RELU_%[1]s(%[2]s)", "")+`
	leaky:
		TESTQ $const_flagLeaky, AX
		JZ store
		`+zero+fmt.Sprintf("VBROADCASTS params_slope(DI), %s\n", t.temp(t.class(0), 1))+each("LEAKY_%[1]s(%[2]s)", "")+`
	store:
		`+t.stores())
}

// stores writes the rows of a tile.
func (t tile) stores() string {
	return `
		MOVQ CX, R8
		CMPQ params_last(DI), $(` + fmt.Sprint(t.bytes(t.n()-1)) + `/SIZE)
		JNE partial
		` + t.each("STORE_%[1]s(%[2]s)", "NEXT_ROW_OF_C") + `
		JMP next
	partial:
		` + t.each("STORE_PART_%[1]s(%[2]s)", "NEXT_ROW_OF_C") + `
	next:`
}
