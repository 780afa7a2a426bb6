package report

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// missing stands for a value that is not there.
const missing = "–"

// Cell is one entry of a table: what is shown, and the value behind it. The zero Cell is missing, shown as a dash.
type Cell struct {
	head, tail string // tail is what follows the number proper, so that columns can align on its end
	raw        any    // what JSON holds; nil if missing
	numeric    bool
}

// Text returns a cell of text.
func Text(s string) Cell { return Cell{head: s, raw: s} }

// Int returns a cell of a whole number.
func Int(n int) Cell { return Cell{head: typeset(strconv.Itoa(n)), raw: n, numeric: true} }

// Number returns a cell of a number shown with a fixed number of decimals. A NaN is missing.
func Number(v float64, decimals int) Cell {
	if math.IsNaN(v) {
		return Cell{}
	}
	return Cell{head: decimal(v, decimals), raw: number(v), numeric: true}
}

// MeanStd returns a cell of a mean and a standard deviation, "−5.77 ± 0.48". Without a deviation, as for a sample of
// one, it is the mean alone; a mean that is NaN is missing.
func MeanStd(mean, std float64, decimals int) Cell {
	c := Number(mean, decimals)
	if c.raw == nil || math.IsNaN(std) {
		return c
	}
	c.tail = " ± " + decimal(std, decimals)
	c.raw = struct {
		Mean number `json:"mean"`
		Std  number `json:"std"`
	}{number(mean), number(std)}
	return c
}

// String returns the cell as text.
func (c Cell) String() string {
	if c.raw == nil {
		return missing
	}
	return c.head + c.tail
}

// MarshalJSON returns the value that the cell was made of, at full precision; a missing one is null.
func (c Cell) MarshalJSON() ([]byte, error) { return json.Marshal(c.raw) }

// number is a float64 that JSON can hold: infinities are strings, as strconv writes them.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(n), 0) {
		return json.Marshal(strconv.FormatFloat(float64(n), 'g', -1, 64))
	}
	return json.Marshal(float64(n))
}

// decimal writes v with a real minus sign, and without one where it rounds to zero.
func decimal(v float64, decimals int) string {
	switch {
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "−∞"
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return typeset(s)
}
