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

// Figures returns a cell of a number with five digits, or of a whole one.
func Figures(v float64) Cell {
	if v == math.Trunc(v) && math.Abs(v) < 1e9 {
		return Number(v, 0)
	}
	return Number(v, decimalsOf(v, 5))
}

// MeanSpread returns a cell of a mean and a standard deviation, of which two digits count.
func MeanSpread(mean, std float64) Cell {
	switch {
	case math.IsNaN(std):
		return Figures(mean)
	case std == 0 && mean == math.Trunc(mean):
		return MeanStd(mean, std, 0)
	case std == 0:
		return MeanStd(mean, std, decimalsOf(mean, 5))
	}
	return MeanStd(mean, std, decimalsOf(std, 2))
}

// decimalsOf is how many decimals a number with so many digits has.
func decimalsOf(v float64, digits int) int {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return min(max(digits-1-int(math.Floor(math.Log10(math.Abs(v)))), 0), 12)
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
