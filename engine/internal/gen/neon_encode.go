package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Go's assembler knows few of ARM's vector instructions on floats, so all vector arithmetic is written as words.
// Kernels are built from lines in ARM's own syntax, such as "fadd v0.4s, v1.4s, v2.4s"; the line stands beside its word
// as a comment, and a test has GNU's assembler read the comments.

// sizing says which bits of an instruction depend on the lanes.
type sizing int

const (
	fixed  sizing = iota // none
	floats               // bit 22: 64-bit lanes
	ints                 // bits 22 and 23: 8 to 64-bit lanes
)

// encoding is an instruction on whole vectors: d, n and, if there are three operands, m. Bit 30, for all 128 bits of a
// register, comes from the lanes.
type encoding struct {
	base uint32
	size sizing
}

// ARM Architecture Reference Manual (DDI 0487), "Advanced SIMD".
var encodings = map[string]encoding{
	"fadd": {0x0e20d400, floats}, "fsub": {0x0ea0d400, floats}, "fmul": {0x2e20dc00, floats}, "fdiv": {0x2e20fc00, floats},
	"fmax": {0x0e20f400, floats}, "fmin": {0x0ea0f400, floats}, "fmla": {0x0e20cc00, floats}, "fmls": {0x0ea0cc00, floats},
	"fcmeq": {0x0e20e400, floats}, "fcmge": {0x2e20e400, floats}, "fcmgt": {0x2ea0e400, floats},
	"faddp": {0x2e20d400, floats},
	"fsqrt": {0x2ea1f800, floats}, "fabs": {0x0ea0f800, floats}, "fneg": {0x2ea0f800, floats},
	"frintn": {0x0e218800, floats}, "frintm": {0x0e219800, floats}, "frintp": {0x0ea18800, floats},
	"frintz": {0x0ea19800, floats},
	"scvtf":  {0x0e21d800, floats}, "ucvtf": {0x2e21d800, floats},
	"fcvtzs": {0x0ea1b800, floats}, "fcvtzu": {0x2ea1b800, floats},

	"add": {0x0e208400, ints}, "sub": {0x2e208400, ints}, "mul": {0x0e209c00, ints},
	"smax": {0x0e206400, ints}, "smin": {0x0e206c00, ints}, "umax": {0x2e206400, ints}, "umin": {0x2e206c00, ints},
	"ushl": {0x2e204400, ints}, "sshl": {0x0e204400, ints},
	"cmeq": {0x2e208c00, ints}, "cmgt": {0x0e203400, ints}, "cmge": {0x0e203c00, ints},
	"cmhi": {0x2e203400, ints}, "cmhs": {0x2e203c00, ints}, "cmtst": {0x0e208c00, ints},
	"abs": {0x0e20b800, ints}, "neg": {0x2e20b800, ints}, "rev64": {0x0e200800, ints},
	"zip1": {0x0e003800, ints}, "zip2": {0x0e007800, ints}, "uzp1": {0x0e001800, ints}, "uzp2": {0x0e005800, ints},
	"trn1": {0x0e002800, ints}, "trn2": {0x0e006800, ints},

	"and": {0x0e201c00, fixed}, "bic": {0x0e601c00, fixed}, "orr": {0x0ea01c00, fixed}, "eor": {0x2e201c00, fixed},
	"bsl": {0x2e601c00, fixed}, "bit": {0x2ea01c00, fixed}, "bif": {0x2ee01c00, fixed}, "mvn": {0x2e205800, fixed},
}

// shifts are by a constant: how it is counted, from the size of lanes or down from twice that.
var shifts = map[string]struct {
	base uint32
	down bool
}{"shl": {0x0f005400, false}, "ushr": {0x2f000400, true}, "sshr": {0x0f000400, true}}

// changes are instructions between lanes of two sizes; the size is that of the narrow ones.
var changes = map[string]struct {
	base   uint32
	narrow int // the operand of narrow lanes
	size   sizing
}{
	"xtn":   {0x0e212800, 0, ints},
	"fcvtn": {0x0e216800, 0, floats}, "fcvtl": {0x0e217800, 1, floats},
	"umull": {0x2e20c000, 1, ints}, "umull2": {0x6e20c000, 1, ints},
}

// operandText is a vector register with its lanes, perhaps one of them, or a constant, or an address.
var operandText = regexp.MustCompile(`^(?:v(\d+)\.(\d*)([bhsd])(?:\[(\d+)\])?|#(\d+)|\[x(\d+)\])$`)

// armOperand is an operand of a line.
type armOperand struct {
	reg   uint32 // or constant
	lanes int    // 0 where one lane is meant
	log   uint32 // logarithm of the bytes in a lane
	index uint32
}

func armOperandOf(s string) (o armOperand, err error) {
	m := operandText.FindStringSubmatch(strings.Trim(s, "{}"))
	if m == nil {
		return o, fmt.Errorf("operand %q", s)
	}
	number := func(s string) uint32 {
		n, _ := strconv.Atoi(s)
		return uint32(n)
	}
	o = armOperand{reg: number(m[1] + m[5] + m[6]), lanes: int(number(m[2])), index: number(m[4])}
	if m[3] != "" {
		o.log = uint32(strings.Index("bhsd", m[3]))
	}
	return o, nil
}

// encode is the word of a line.
func encode(line string) (uint32, error) {
	fail := func(why any) (uint32, error) { return 0, fmt.Errorf("%q: %v", line, why) }
	mn, rest, _ := strings.Cut(line, " ")
	var ops []armOperand
	for s := range strings.SplitSeq(rest, ", ") {
		o, err := armOperandOf(s)
		if err != nil {
			return fail(err)
		}
		ops = append(ops, o)
	}
	if len(ops) < 2 {
		return fail("too few operands")
	}
	d, n := ops[0], ops[1]
	w := d.reg | n.reg<<5
	var full uint32 // bit 30
	if d.lanes<<d.log == 16 {
		full = 1 << 30
	}
	if len(ops) == 3 && ops[2].lanes == 0 && (mn == "fmla" || mn == "fmls") { // by one lane
		m := ops[2]
		base := map[string]uint32{"fmla": 0x0f801000, "fmls": 0x0f805000}[mn]
		if d.log == 3 {
			return base | 1<<22 | full | m.reg<<16 | m.index<<11 | w, nil
		}
		return base | full | m.reg<<16 | m.index>>1<<11 | m.index&1<<21 | w, nil
	}
	if e, ok := encodings[mn]; ok {
		if len(ops) == 3 {
			w |= ops[2].reg << 16
		}
		w |= e.base | full
		switch e.size {
		case floats:
			w |= d.log & 1 << 22
		case ints:
			w |= d.log << 22
		}
		return w, nil
	}
	if s, ok := shifts[mn]; ok {
		bits, by := uint32(8)<<d.log, ops[2].reg
		if s.down {
			by = 2*bits - by
		} else {
			by += bits
		}
		return s.base | full | by<<16 | w, nil
	}
	if c, ok := changes[mn]; ok {
		if len(ops) == 3 {
			w |= ops[2].reg << 16
		}
		narrow := ops[c.narrow]
		if c.size == floats {
			return c.base | (narrow.log-1)<<22 | w, nil
		}
		return c.base | narrow.log<<22 | w, nil
	}
	switch lane := (2*d.index + 1) << d.log; mn {
	case "mov":
		if d.lanes > 0 {
			return 0x0ea01c00 | full | n.reg<<16 | w, nil
		}
		return 0x6e000400 | lane<<16 | n.index<<n.log<<11 | w, nil
	case "dup":
		return 0x0e000400 | full | (2*n.index+1)<<n.log<<16 | w, nil
	case "ext":
		return 0x2e000000 | full | ops[2].reg<<16 | ops[3].reg<<11 | w, nil
	case "uxtl":
		return 0x2f00a400 | 8<<n.log<<16 | w, nil
	case "sxtl":
		return 0x0f00a400 | 8<<n.log<<16 | w, nil
	case "ld1r":
		return 0x0d40c000 | full | d.log<<10 | w, nil
	case "movi": // only zero
		return 0x2f00e400 | full | d.reg, nil
	}
	return fail("no such instruction")
}

// armWords puts words in place of the lines of a text that are ARM's.
func armWords(text string) string {
	var w strings.Builder
	for line := range strings.Lines(text) {
		s := strings.TrimSpace(line)
		if s == "" || s[0] < 'a' || s[0] > 'z' || strings.HasSuffix(s, ":") {
			w.WriteString(line)
			continue
		}
		word, err := encode(s)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&w, "\tWORD $0x%08x // %s\n", word, s)
	}
	return w.String()
}
