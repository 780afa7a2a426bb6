package run_test

import (
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/gfnem/gfnem/run"
)

// A run is created, saved, killed and resumed.
func Example() {
	parent, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "counting")

	r, err := run.Create(dir, run.Options{Task: "counting", Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	for step := uint64(1); step <= 5; step++ {
		if err := r.Log(step, map[string]float64{"square": float64(step * step)}); err != nil {
			log.Fatal(err)
		}
		if step == 3 {
			count := run.Array{DType: "U64", Data: binary.LittleEndian.AppendUint64(nil, step)}
			if err := r.Save(run.State{Step: step, Arrays: map[string]run.Array{"count": count}}); err != nil {
				log.Fatal(err)
			}
		}
	}
	r.Close() // steps 4 and 5 were not saved

	r, err = run.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	state, _, err := r.Load()
	if err != nil {
		log.Fatal(err)
	}
	points, err := run.ReadMetrics(dir)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("resumed at step", state.Step, "with count", binary.LittleEndian.Uint64(state.Arrays["count"].Data))
	fmt.Println("last line logged:", points[len(points)-1])
	// Output:
	// resumed at step 3 with count 3
	// last line logged: {3 map[square:9]}
}

// Everything in a run's folder is checked, here after a digit was changed.
func ExampleVerify() {
	parent, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	r, err := run.Create(filepath.Join(parent, "counting"), run.Options{Task: "counting", Command: []string{"count"}})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	if err := r.Log(1, map[string]float64{"loss": 0.25}); err != nil {
		log.Fatal(err)
	}
	if err := r.Save(run.State{Step: 1}); err != nil {
		log.Fatal(err)
	}
	metrics := filepath.Join(r.Dir(), "metrics.jsonl")
	if err := os.WriteFile(metrics, []byte("{\"step\":1,\"loss\":0.15}\n"), 0o666); err != nil {
		log.Fatal(err)
	}
	err = run.Verify(r.Dir(), func(f run.Finding) {
		path, _ := filepath.Rel(r.Dir(), f.Path)
		text, _, _ := strings.Cut(f.Text, ":")
		fmt.Println(f.Status, path+":", text)
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// ok state/000000000001: 0 arrays, all finite
	// ok run.json: made by count
	// ok run.toml: 0 bytes
	// damaged metrics.jsonl: was changed in its first 23 bytes since checkpoint 1 was saved
	// ok events.out.tfevents.gfnem: 82 bytes agree with the checkpoints
}
