// Package run keeps the promises of a run: everything it is lies in one folder, it can be killed at any moment and
// resumed, and what it wrote can be checked.
//
//	run.toml               the resolved configuration
//	run.json               provenance: program, modules, backend, data hashes, command; written last by Create, sealed
//	                       with its own hash, and locked by the one process that may write
//	metrics.jsonl          one line of scalars per logged step, free of wall time
//	events.out.tfevents.*  the same scalars for TensorBoard
//	state/000000001000/    a checkpoint: arrays.safetensors, state.json, manifest.json
//	report.html            a page about the run and other files to look at, written by others
//	outputs.json           their hashes, and that of the state they were made from, see Run.Publish
//	result.json            what a finished cell of a Grid has led to, and the hash of the state that was measured
//	lock                   the id of that process
//
// A training program creates or opens the folder, loads, and then logs and saves as it goes:
//
//	r, err := run.Open(dir)                 // or run.Create(dir, options)
//	state, skipped, err := r.Load()         // run.ErrNoCheckpoint: start from step 0
//	err = r.Log(step, map[string]float64{"loss": loss})
//	err = r.Save(run.State{Step: step, Arrays: arrays, Extra: extra})
//	err = r.Close()
//
// Resuming returns the whole folder to the moment of the checkpoint: lines logged after it are cut off, so that the
// metrics of a run killed and resumed are those of a run never killed.
//
// The package also holds what every training program needs around its folder: progress (Progress), signals
// (WithSignals, Await), the loop that ties them together (Drive), grids of runs (Grid) and a check of all this (Verify).
package run
