package parse

import "testing"

// TestLengthClasses counts the programs that sentences of all lengths need.
func TestLengthClasses(t *testing.T) {
	classes := map[int]bool{}
	for n := 2; n <= 200; n++ {
		c := lengthClass(n, 200)
		if c < n || n > 5 && n < 150 && float64(c) >= 1.9*float64(n) {
			t.Errorf("%d words are padded to %d", n, c)
		}
		classes[c] = true
	}
	if len(classes) != 11 {
		t.Errorf("%d classes: %v", len(classes), classes)
	}
}
