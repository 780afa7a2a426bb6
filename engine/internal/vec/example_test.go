package vec_test

import (
	"fmt"

	"github.com/gfnem/gfnem/engine/internal/vec"
)

// A fused chain runs strip by strip with one call for each operation: here 1/(1 + e^-x) * 2 in place.
func Example() {
	x := []float32{-1, 0, 1}
	vec.F32.Unary[vec.Logistic](x, x)
	vec.F32.BinaryVS[vec.Mul](x, x, 2)
	fmt.Printf("%.4f\n", x)
	// Output: [0.5379 1.0000 1.4621]
}

// Rows of a matrix are reduced together, however short they are.
func ExampleTable_rows() {
	a := []float64{1, 2, 3, 4, 5, 6} // [2, 3]
	rows, cols, at := make([]float64, 2), make([]float64, 3), make([]int32, 2)
	vec.F64.RowSum(rows, a, 3)
	vec.F64.ColSum(cols, a)
	vec.F64.ArgMax(at, a, 3)
	vec.F64.LogSoftmax(a, a, 3)
	fmt.Println(rows, cols, at)
	fmt.Printf("%.4f\n", a)
	// Output:
	// [6 15] [5 7 9] [2 2]
	// [-2.4076 -1.4076 -0.4076 -2.4076 -1.4076 -0.4076]
}

// Comparisons make masks of bools, which Select takes.
func ExampleTable_select() {
	a := []int32{3, -1, 4, -1, 5}
	m := make([]bool, len(a))
	vec.I32.CompareVS[vec.Lt](m, a, 0)
	vec.I32.SelectSV(a, m, 0, a)
	fmt.Println(a)
	// Output: [3 0 4 0 5]
}
