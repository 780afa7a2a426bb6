package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// constantRef stands for the address of a constant until the file is written.
func constantRef(size int, bits uint64) string { return fmt.Sprintf("constant{%d:%x}", size, bits) }

var constantText = regexp.MustCompile(`constant\{(\d):([0-9a-f]+)\}`)

// pool is the constants of a file, size bytes each: the lane repeated.
type pool struct {
	index  map[string]int
	rows   []uint64
	size   int
	format string // of an address
}

// ref is the address of what a constantRef stands for.
func (p *pool) ref(key string) string {
	i, ok := p.index[key]
	if !ok {
		i = len(p.rows)
		p.index[key] = i
		m := constantText.FindStringSubmatch(key)
		w, err := strconv.ParseUint(m[2], 16, 64)
		if err != nil {
			panic(err)
		}
		switch m[1] {
		case "4":
			w = w&math.MaxUint32 | w<<32
		case "1":
			w = w & 0xff * 0x0101010101010101
		}
		p.rows = append(p.rows, w)
	}
	return fmt.Sprintf(p.format, i*p.size)
}

func (p *pool) emit(w *strings.Builder) {
	if len(p.rows) == 0 {
		return
	}
	for i, r := range p.rows {
		for j := range p.size / 8 {
			fmt.Fprintf(w, "DATA consts<>+%d(SB)/8, $0x%016x\n", i*p.size+j*8, r)
		}
	}
	fmt.Fprintf(w, "GLOBL consts<>(SB), RODATA|NOPTR, $%d\n\n", len(p.rows)*p.size)
}

// words is a table of 64-bit words.
func words(name string, values ...int) string {
	s := ""
	for i, v := range values {
		s += fmt.Sprintf("DATA %s<>+%d(SB)/8, $%d\n", name, i*8, v)
	}
	return s + fmt.Sprintf("GLOBL %s<>(SB), RODATA|NOPTR, $%d\n\n", name, 8*len(values))
}

// tailMasks is ones, then zeros: at an offset, the mask of the first lanes of a vector.
func tailMasks() string { return words("tailmask", -1, -1, -1, -1, 0, 0, 0, 0) }
