// Program infer opens the folder of a run and samples the posterior of new observations: eight heads, and eight tails.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/gomlx/gomlx/core/tensors"

	"example.com/outside/model"
)

func main() {
	run, err := model.Task.Open(nil, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	defer run.Close()
	q, err := run.Posterior()
	if err != nil {
		log.Fatal(err)
	}
	defer q.Close()
	x := make([]float32, 16)
	for i := range 8 {
		x[i] = 1
	}
	tosses := tensors.FromFlatDataAndDimensions(x, 2, 8)
	drawn, err := q.Sample(100, tosses)
	if err != nil {
		log.Fatal(err)
	}
	z := tensors.MustCopyFlatData[int32](drawn.Z[0])
	estimates, err := q.LogLikelihood(100, tosses)
	if err != nil {
		log.Fatal(err)
	}
	for b, name := range []string{"heads", "tails"} {
		var second int32
		for _, coin := range z[100*b : 100*b+100] {
			second += coin
		}
		fmt.Printf("%s %d %.4f\n", name, second, estimates[b].LogZ)
	}
}
