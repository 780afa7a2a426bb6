// Program infer opens the folder of a run and samples the posterior of new sentences, which it takes as arguments. Of each it
// writes the segmentation that is most often among 100 samples, how often that is, and log p(x), estimated and exact.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"

	"example.com/outside/model"
)

func main() {
	run, err := model.Task.Open(nil, os.Args[1])
	check(err)
	defer run.Close()
	q, err := run.Posterior()
	check(err)
	defer q.Close()
	for _, s := range os.Args[2:] {
		x := model.Observe(s)
		drawn, err := q.Sample(100, x)
		check(err)
		z, gaps := tensors.MustCopyFlatData[int32](drawn.Z[0]), model.Env.Max-1
		count, top := map[string]int{}, ""
		for i := range 100 {
			cut := model.Spaced(s, z[i*gaps:])
			if count[cut]++; count[cut] > count[top] {
				top = cut
			}
		}
		estimates, err := q.LogLikelihood(100, x)
		check(err)
		exact, err := em.Classical{Model: run.Spec.Model, Env: model.Env}.Posteriors(run.Backend, run.Store(), x)
		check(err)
		fmt.Printf("%s,%d,%.4f,%.4f\n", top, count[top], estimates[0].LogZ, exact[0].LogP)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
