// Command rna learns secondary structures of RNA from sequences alone, by GFlowNet-EM, and compares what it learns with exact
// EM (a dynamic program over nested structures) and with a model that is told the structures. See README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/nn"
)

func main() {
	o := options{}
	flag.StringVar(&o.data, "data", "", "a Stockholm or FASTA `file`, also .gz; without one, sequences are drawn from a model")
	flag.StringVar(&o.methods, "methods", "exact,gfn,told", "what learns, of exact, gfn and told, with commas")
	flag.StringVar(&o.figure, "figure", "", "write arc diagrams of a test sequence to `NAME`.svg and NAME.png")
	flag.BoolVar(&o.knots, "knots", false, "allow pseudoknots, where exact learns nested structures still")
	flag.BoolVar(&o.short, "short", false, "instead, learn from sequences of 12 to 14 bases and list all their structures")
	flag.Uint64Var(&o.seed, "seed", 1, "of everything random")
	flag.Uint64Var(&o.updates, "updates", 3000, "of each model")
	flag.IntVar(&o.train, "train", 600, "sequences to learn from; 100 others are for validation, and 200 for tests")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "rna:", err)
		var input *badinput.Error
		if errors.As(err, &input) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

type options struct {
	data, methods, figure string
	knots, short          bool
	seed, updates         uint64
	train                 int
}

func (o options) run() error {
	b, err := backend.Open("")
	if err != nil {
		return err
	}
	if o.short {
		return o.learnShort(b)
	}
	methods := strings.Split(o.methods, ",")
	for _, name := range methods {
		if !slices.Contains([]string{"exact", "gfn", "told"}, name) {
			return badinput.Errorf("-methods %s: %q is none of exact, gfn and told", o.methods, name)
		}
	}
	d, err := o.sequences(b)
	if err != nil {
		return err
	}
	var shown []panel
	for _, name := range methods {
		more, err := o.learn(b, d, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		shown = append(shown, more...)
	}
	if o.figure == "" {
		return nil
	}
	return d.save(o.figure, shown)
}

// learn trains a model and measures it.
func (o options) learn(b compute.Backend, d dataset, name string) ([]panel, error) {
	store := nn.NewStore(o.seed + 1)
	m := d.model
	m.Knots = o.knots && name != "exact"
	s := defaults(o.seed, o.updates)
	data, err := em.Shuffled(o.seed, s.Batch, d.train.X...)
	if err != nil {
		return nil, badinput.Errorf("%w", err)
	}
	switch name {
	case "exact":
		err = s.classical(b, store, summed{m}, data)
	case "told":
		err = s.classical(b, store, told{m}, data)
	default:
		err = s.learn(b, store, m, data)
	}
	if err != nil {
		return nil, err
	}
	return d.report(b, store, m, name)
}
