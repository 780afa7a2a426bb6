package engine

import "testing"

// A pool that holds as much as it may still keeps one block of a size that it has none of.
func TestFullPool(t *testing.T) {
	const size = 1 << 10
	p := &pool{held: maxHeld}
	for range 2 {
		p.put(alloc(size), size)
	}
	if n := len(p.free[class(size)]); n != 1 {
		t.Errorf("a full pool keeps %d blocks of a size, want 1", n)
	}
}
