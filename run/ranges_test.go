package run

import (
	"math"
	"testing"
)

func TestCheckRanges(t *testing.T) {
	if err := CheckRanges([]Range{{"a", 1, 1, 2}, {"b", 2, 1, 2}, {"c", math.Inf(1), 0, math.Inf(1)}}); err != nil {
		t.Error(err)
	}
	for want, v := range map[string]float64{
		"b = 0.5 is not between 1 and 2": 0.5, "b = 3 is not between 1 and 2": 3, "b = NaN is not between 1 and 2": math.NaN(),
	} {
		err := CheckRanges([]Range{{"a", 1, 1, 2}, {"b", v, 1, 2}, {"c", 5, 1, 2}})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
