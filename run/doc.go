// Package run keeps the promises of a run: everything it is lies in one folder, it can be killed at any moment and
// resumed, and what it wrote can be checked.
//
//	run.toml               the resolved configuration
//	run.json               provenance: program, modules, backend, data hashes, command; written last by Create, sealed
//	                       with its own hash, and locked by the one process that may write
//	changes.json           how the configuration was changed when the run was resumed; run.toml is the newest one
//	metrics.jsonl          one line of scalars per logged step, free of wall time
//	events.out.tfevents.*  the same scalars for TensorBoard
//	data/                  what the run has made of its data and keeps, with hashes in run.json; most runs keep nothing
//	state/000000001000/    a checkpoint: arrays.safetensors, state.json, manifest.json
//	report.html            a page about the run and other files to look at, written by others
//	outputs.json           their hashes, and that of the state they were made from, see Run.Publish
//	summary.json           what lists show: the step of how many, the time it took, a headline figure
//	result.json            what a finished run has led to, and the hash of the state that was measured
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
//
// # Promises
//
// Damage is content that contradicts its hash. Then an older checkpoint is used, with a warning, and resuming makes
// the newer one again. Every other error of reading is an error: nothing is renamed or passed over.
//
// What a training had learned when it was best, if it keeps that (Best), is part of every checkpoint, as variables
// below /best: the last state and the best one are saved, verified, and given up for an older pair, together. A run goes
// on from the last one; it is evaluated and shown, and parses, as the best one. A program that does not know of such
// variables refuses the checkpoint, as it does with any others.
//
// Journals (metrics and events) are cut back to the checkpoint on resume. One that was deleted, cut or changed is
// brought in step with the checkpoint once: the part that checkpoints vouch for stays, the rest goes to a file
// ".damaged" beside it (mend.go).
//
// Formats: run.json and manifests have a version. Older ones are translated (upgrade.go); a newer one is refused, and
// never taken for damage.
//
// The lock is on run.json itself, which is never replaced: a folder whose locked file was deleted is no run. A writer
// whose run.json is gone or another one saves nothing more.
//
// Links, pipes and devices in a folder, which may come from somebody else, are refused, not followed. Commands name
// the paths of run.toml before they read them.
//
// What is shown is recomputed, or read from a file that matches its hash. Outputs.json has the hashes of what was
// published, and of the state that it shows; it is gone while that is replaced. A grid's cell is read only if its run
// verifies and is in the state that result.json, sealed, has the hash of. Verify checks all of this and writes
// nothing.
//
// A session has all its variables once it is prepared: a learner traces every program that it can run, without
// compiling it, and an optimiser declares what it keeps. So RestoreStore can compare a checkpoint with what the
// configuration makes.
package run
