package config

import "fmt"

// Range is what a number of a configuration may be, for those that have no tags. It has no type name of its own, so
// that tables of ranges need no field names.
type Range = struct {
	Key              string
	Value, Low, High float64
}

// CheckRanges returns an error that names the first number outside its range; NaN is outside any.
func CheckRanges(all []Range) error {
	for _, r := range all {
		if !(r.Low <= r.Value && r.Value <= r.High) {
			return fmt.Errorf("%s = %.12g is not between %.12g and %.12g", r.Key, r.Value, r.Low, r.High)
		}
	}
	return nil
}
