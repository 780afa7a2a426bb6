package task_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gfnem/gfnem/cli"
	"github.com/gfnem/gfnem/run"
)

// A program with a task of one's own, and what a user does with it.
func ExampleOf() {
	program := cli.Program{Name: "coins", Tasks: []run.Task{toy}}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "run")
	for _, args := range [][]string{
		{"train", "--seed", "3", "--observations", "30", "--out", folder, "--json"}, // in main: cli.Main(toy)
		{"report", folder},
	} {
		if code := program.Execute(args, os.Stderr, os.Stderr); code != cli.ExitOK {
			log.Fatal(code)
		}
	}
	model, err := toy.Open(nil, folder) // another program
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	fmt.Println("opened after", model.Counters().M, "M-steps on", model.Config.Rows, "observations")
	// Output: opened after 6 M-steps on 30 observations
}
