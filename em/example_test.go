package em_test

import (
	"fmt"

	"github.com/gfnem/gfnem/em"
)

func ExampleLinear() {
	explore := em.Linear{From: 0.5, To: 0, Over: 100}
	fmt.Println(explore.At(0), explore.At(50), explore.At(100), explore.At(1000))
	// Output: 0.5 0.25 0 0
}
