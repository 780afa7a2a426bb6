package config_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
)

type wake struct {
	Samples int     `toml:"samples" range:"1,1000" help:"latents per observation"`
	Epsilon float64 `toml:"epsilon" range:"0,1" help:"probability of a random action" was:"rand_prob: per step"`
}

type settings struct {
	Seed   uint64  `toml:"seed" help:"of all random numbers"`
	Method string  `toml:"method" oneof:"exact gfn" help:"how the posterior is found"`
	Greedy float64 `toml:"greedy" range:"0,1" or:"-1" help:"probability of greedy M-steps; -1 means as the method says"`
	Wake   wake    `toml:"wake" help:"E-steps on data"`
}

func preset() *settings {
	return &settings{Method: "gfn", Greedy: -1, Wake: wake{Samples: 1}}
}

func ExampleResolve() {
	c := preset()
	if err := config.Resolve(c, config.Set{"wake.epsilon=0.1"}); err != nil {
		log.Fatal(err)
	}
	text, err := config.Encode(c)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(text)

	for _, setting := range []string{"wake.epsilom=0.1", "wake.epsilon=1.5", "rand_prob=0.1", "method=em", "greedy=-2"} {
		err = config.Resolve(preset(), config.Set{setting})
		fmt.Println(err)
	}
	fmt.Println("the user can mend it:", errors.As(err, new(*badinput.Error)))
	// Output:
	// seed = 0
	// method = "gfn"
	// greedy = -1.0
	//
	// [wake]
	// samples = 1
	// epsilon = 0.1
	// --set wake.epsilom=0.1: unknown key "wake.epsilom"; did you mean "wake.epsilon"?
	// --set wake.epsilon=1.5: wake.epsilon = 1.5 is not between 0 and 1
	// --set rand_prob=0.1: key "rand_prob" is now "wake.epsilon" (per step)
	// --set method=em: method = "em" is not one of exact gfn
	// --set greedy=-2: greedy = -2 is neither -1 nor between 0 and 1
	// the user can mend it: true
}

func ExampleFields() {
	fields, err := config.Fields(preset())
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range fields {
		if f.Type == "a table" {
			fmt.Printf("[%s] # %s\n", f.Name, f.Help)
			continue
		}
		fmt.Printf("%s = %s # %s; %s", f.Name, f.Value, f.Help, f.Type)
		if f.Range != nil {
			fmt.Printf(" from %g to %g", f.Range.Low, f.Range.High)
		}
		if len(f.Choices) > 0 {
			fmt.Printf(" of %q", f.Choices)
		}
		for _, old := range f.Was {
			fmt.Printf(", once %s", old.Name)
		}
		fmt.Println()
	}
	// Output:
	// seed = 0 # of all random numbers; an integer from 0
	// method = "gfn" # how the posterior is found; a string of ["exact" "gfn"]
	// greedy = -1.0 # probability of greedy M-steps; -1 means as the method says; a number from 0 to 1
	// [wake] # E-steps on data
	// wake.samples = 1 # latents per observation; an integer from 1 to 1000
	// wake.epsilon = 0.0 # probability of a random action; a number from 0 to 1, once rand_prob
}
