package run

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/self"
)

// verified is what is known of an intact checkpoint.
type verified struct {
	manifest
	state string // its hash
}

// run verifies a run. What is made from checkpoints is read first: what comes later, while the run is going on, are newer
// checkpoints.
func (v verifier) run(r *Run) {
	info, infoErr := readInfo(r.disk, r.dir)
	r.info, r.seal = info.Info, info.SHA256
	cell, cellErr := r.readResult()
	shown, shownErr := readOutputs(r.disk, r.dir)
	summary, summaryErr := r.Summary()
	saved, unread := v.checkpoints(r)
	v.provenance(r, info, infoErr, len(saved) > 0)
	v.kept(r, info.Files)
	v.journals(r, saved, unread)
	again := self.Advice("report %s", r.dir) + " makes it again"
	result := again
	if summary != nil && !summary.Finished { // then a report writes no result
		result = "remove it"
	}
	if path := r.path(resultName); cellErr != nil && Failure(path, cellErr).Status == Damaged {
		v.failed(path, fmt.Errorf("%w: %s", cellErr, result))
	} else if cellErr != nil {
		v.failed(path, cellErr)
	} else if cell != nil {
		v.made(path, cell.Step, cell.State, saved, unread, result)
	}
	if path := r.path(summaryName); summaryErr != nil {
		v.failed(path, fmt.Errorf("%w: %s writes it again", summaryErr, r.again()))
	} else if summary != nil {
		v.ok(path, "of step %d", summary.Step)
	}
	if shown != nil && shown.State == "" {
		v.damaged(r.path(outputsName), "is of a grid: %s", again)
		shown = nil
	} else if shown != nil {
		v.made(r.path(outputsName), shown.Step, shown.State, saved, unread, again)
	}
	v.outputs(r.dir, shown, shownErr, again)
	v.leftovers(r)
}

// provenance verifies run.json and run.toml.
func (v verifier) provenance(r *Run, info infoFile, err error, saved bool) {
	path := r.path(infoName)
	switch {
	case errors.Is(err, ErrNotRun) && !saved:
		v.note(r.dir, "a training that was killed as it began: the same command begins it again")
		return
	case errors.Is(err, ErrNotRun):
		v.damaged(path, "is missing: put it back from a copy, or start again in another folder")
		return
	case err != nil:
		v.failed(path, err)
		return
	case info.Format < formatVersion:
		v.note(path, "has no hash: an earlier version of the program wrote it")
	default:
		v.ok(path, "made by %s", strings.Join(info.Command, " "))
	}
	path = r.path(configName)
	text, err := r.disk.ReadFile(path)
	if err != nil {
		v.failed(path, err)
		return
	}
	current, err := r.settle(string(text), info.Config)
	switch {
	case err != nil && r.config == "": // of the changes
		v.failed(r.path(changesName), err)
	case err != nil:
		v.damaged(path, "does not belong to %s: undo what was changed, or start a run of its own with --config", infoName)
	case !current:
		v.note(path, "is being changed, or that was interrupted: %s", r.again())
	default:
		v.ok(path, "%d bytes", len(text))
		if r.changes != nil {
			v.ok(r.path(changesName), "%d changes of the configuration", len(r.changes))
		}
	}
}

// checkpoints verifies all checkpoints and returns the intact ones, newest first, and whether some could not be read.
func (v verifier) checkpoints(r *Run) (saved []verified, unread bool) {
	const attempts = 100 // each time, a process that writes the run has removed every checkpoint before it was read
	for range attempts {
		steps, err := r.checkpoints()
		if err != nil {
			v.failed(r.path(stateName), err)
			return nil, true
		}
		if len(steps) == 0 {
			v.note(r.path(stateName), "has no checkpoint yet")
			return nil, false
		}
		removed := 0
		for _, step := range steps {
			path := r.checkpointPath(step)
			s, m, err := r.readCheckpoint(step)
			switch {
			case errors.Is(err, fs.ErrNotExist) && !isDamage(err):
				removed++
			case err != nil:
				v.failed(path, err)
				unread = unread || !isDamage(err)
			default:
				saved = append(saved, verified{m, StateHash(s)})
				v.finite(path, s)
			}
		}
		if removed < len(steps) {
			break
		}
	}
	return saved, unread
}

// finite verifies that the arrays of a checkpoint are finite.
func (v verifier) finite(path string, s State) {
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(s.Arrays)) {
		if n := s.Arrays[name].notFinite(); n > 0 {
			bad = append(bad, fmt.Sprintf("%s (%d of its numbers)", name, n))
		}
	}
	if bad != nil {
		v.damaged(path, "is not finite in %s", strings.Join(bad, ", "))
		return
	}
	v.ok(path, "%d arrays, all finite", len(s.Arrays))
}

// journals verifies that every checkpoint agrees with the journals, and that these can be read.
func (v verifier) journals(r *Run, saved []verified, unread bool) {
	for _, name := range journalNames {
		path := r.path(name)
		data, err := readJournal(r.disk, path)
		if err != nil {
			v.failed(path, err)
			continue
		}
		var fault string
		var size int64
		for _, c := range saved {
			size = max(size, c.Journals[name].Size)
			if f := journalFault(data, c.Journals[name]); f != "" && fault == "" {
				fault = fmt.Sprintf("%s since checkpoint %d was saved: %s mends it", f, c.Step, r.again())
			}
		}
		if fault == "" && name == metricsName && len(saved) > 0 {
			fault = metricsFault(data[:size], saved[0].Step)
		} else if fault == "" && name == eventsName {
			fault = recordsFault(data[:size])
		}
		if fault != "" {
			v.damaged(path, "%s", fault)
			continue
		}
		if data != nil {
			v.ok(path, "%d bytes agree with the checkpoints", size)
		}
		if rest := int64(len(data)) - size; rest > 0 && !unread {
			v.note(path, "%d more bytes were logged after the newest checkpoint: a resumed run logs them again", rest)
		}
	}
}

// metricsFault says what is wrong with the lines that a checkpoint of a step vouches for; "" if nothing is.
func metricsFault(data []byte, last uint64) string {
	var step uint64
	line := 0
	for text := range bytes.Lines(data) {
		line++
		p, err := decodePoint(text)
		switch {
		case err != nil:
			return fmt.Sprintf("line %d cannot be read: %v", line, err)
		case p.Step < step || p.Step > last:
			return fmt.Sprintf("line %d is of step %d, after step %d and before checkpoint %d", line, p.Step, step, last)
		}
		step = p.Step
	}
	return ""
}

// made verifies that a file is made from the newest checkpoint.
func (v verifier) made(path string, step uint64, state string, saved []verified, unread bool, again string) {
	i := slices.IndexFunc(saved, func(c verified) bool { return c.Step == step })
	switch {
	case i < 0 && unread:
		v.say(Finding{Unread, path, fmt.Sprintf("was made from checkpoint %d, which could not be read", step)})
	case i < 0 && (len(saved) == 0 || step > saved[0].Step):
		v.damaged(path, "was made from checkpoint %d, which is missing or damaged: resume the run, and %s", step, again)
	case i >= 0 && saved[i].state != state:
		v.damaged(path, "was made from another checkpoint %d: %s", step, again)
	case i != 0:
		v.note(path, "was made at step %d, before the newest checkpoint: %s", step, again)
	default:
		v.ok(path, "made from checkpoint %d", step)
	}
}

// leftovers notes what kills and damage left, and a lock that is none.
func (v verifier) leftovers(r *Run) {
	if err := disk.CheckFile(r.disk, r.path(lockName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		v.failed(r.path(lockName), err)
	}
	for _, dir := range []string{r.dir, r.path(stateName)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // that was said
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case strings.HasSuffix(e.Name(), disk.TmpSuffix) || leftover.MatchString(e.Name()):
				v.note(path, "is being written or removed, or that was interrupted")
			case strings.Contains(e.Name(), damagedSuffix):
				v.note(path, "was damaged and set aside")
			}
		}
	}
}
