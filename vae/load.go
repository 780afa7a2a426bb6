package vae

import (
	"path/filepath"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/mnist"
	"github.com/gfnem/gfnem/run"
)

// Load returns the model of a run's newest checkpoint, with a line for each newer checkpoint that is damaged. The run's data
// are not needed. Close it at the end.
func Load(b compute.Backend, r *run.Run) (*Codec, []string, error) {
	if task := r.Info().Task; task != (Task{}).Name() {
		return nil, nil, badinput.Errorf("%s is a run of the task %q, which has no codes", r.Dir(), task)
	}
	c := Task{}.Before().(*Config)
	if err := config.Resolve(c, config.File(filepath.Join(r.Dir(), "run.toml"))); err != nil {
		return nil, nil, err
	}
	state, warnings, err := r.Load()
	if err != nil {
		return nil, warnings, err
	}
	codec, err := c.codec(b, state)
	if err != nil {
		return nil, warnings, badinput.Errorf(
			"%s does not hold a model that can be used at step %d: %w", r.Dir(), state.Step, err)
	}
	return codec, warnings, nil
}

// codec makes the model of a state, which holds as much of it as training does.
func (c *Config) codec(b compute.Backend, state run.State) (*Codec, error) {
	var from saved
	if err := state.Rest(&from); err != nil {
		return nil, err
	}
	images := mnist.Size{Height: from.Height, Width: from.Width}
	size := c.size(images)
	if err := size.Validate(); err != nil {
		return nil, err
	}
	codec := newCodec(b, c.newStore(), *c, size)
	err := codec.declare()
	if err == nil {
		err = run.SetStore(codec.programs.Store, run.Below(state.Arrays, em.Theta, em.Phi))
	}
	if err != nil {
		codec.Close()
		return nil, err
	}
	return codec, nil
}
