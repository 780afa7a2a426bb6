package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

func main() {
	seed := flag.Uint64("seed", 1, "of everything random")
	updates := flag.Uint64("updates", 1000, "M-steps")
	flag.Parse()
	b := must(backend.Open(""))
	if err := short(b, *seed, *updates); err != nil {
		log.Fatal(err)
	}
}

// short learns from sequences of 12 to 14 bases, whose structures can all be listed.
func short(b compute.Backend, seed, updates uint64) error {
	m := RNA{Folding: Folding{N: 14, K: 64, Shortest: 1, Longest: 4}, Lengths: make([]float32, 15)}
	for n := range m.Lengths {
		m.Lengths[n] = never
		if n >= 12 {
			m.Lengths[n] = float32(-math.Log(3))
		}
	}
	truth := nn.NewStore(seed)
	draw := func(name string, n int) lvm.Pairs {
		return must(lvm.Draw(b, truth.Scope(em.Theta), m, rng.Key(seed, name), n))
	}
	train, test := draw("train", 400), draw("test", 20)
	s := setting{Seed: seed + 1, Batch: 16, Samples: 8, Dreams: 16, First: 200, E: 1, Updates: updates, RatePhi: 3e-3, RateTheta: 0.02}
	store := nn.NewStore(s.Seed)
	l := must(em.New(b, store, s.spec(m, must(em.Shuffled(seed, s.Batch, train.X...)))))
	defer l.Close()
	began := time.Now()
	err := l.Train(context.Background(), func(st em.State) bool { return st.M == updates }, func(r em.Report) error {
		if i := r.State.Iteration; i%100 == 0 || i == 20 {
			fmt.Printf("%6d  loss %8.4f  sleep %8.4f  ess %5.2f  %5.1f s\n", i, r.Wake.Loss, r.SleepLoss, r.Metrics["m/ess"], time.Since(began).Seconds())
		}
		return nil
	})
	if err != nil {
		return err
	}
	tv, n, err := variation(b, store, m, test.X)
	fmt.Printf("total variation %.4f, %d structures\n", tv, n)
	return err
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
