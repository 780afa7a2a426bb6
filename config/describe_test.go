package config_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/gfnem/gfnem/config"
)

func ExampleDescribe() {
	wide := preset()
	wide.Wake.Epsilon = 0.5
	text, err := config.Describe(config.Named{Name: "usual", Config: preset()}, []config.Named{{Name: "wide", Config: wide}}, "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(text)
	// Output:
	// # of all random numbers; an integer from 0
	// seed = 0
	// # how the posterior is found; one of exact, gfn
	// method = "gfn"
	// # probability of greedy M-steps; -1 means as the method says; a number from 0 to 1, or -1
	// greedy = -1.0
	//
	// ## wake: E-steps on data
	// # latents per observation; an integer from 1 to 1000
	// wake.samples = 1
	// # probability of a random action; a number from 0 to 1; wide: 0.5
	// wake.epsilon = 0.0
}

// What Describe writes can be given back.
func TestDescribeIsConfiguration(t *testing.T) {
	own := preset()
	own.Seed, own.Wake.Samples = 7, 3
	text, err := config.Describe(config.Named{Name: "own", Config: own}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	again := preset()
	if err := config.Resolve(again, config.File(path)); err != nil || *again != *own {
		t.Errorf("%+v (%v), want %+v", *again, err, *own)
	}
}
