package optim_test

import (
	"fmt"

	"github.com/gfnem/gfnem/optim"
)

func ExampleRate() {
	r := optim.Rate{Base: 1e-3, Warmup: 4, Drops: []optim.Drop{{Step: 1000, Factor: 0.1}}}
	for _, step := range []uint64{0, 1, 4, 999, 1000} {
		fmt.Println(step, r.At(step))
	}
	// Output:
	// 0 0
	// 1 0.00025
	// 4 0.001
	// 999 0.001
	// 1000 0.0001
}
