package vae

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/mnist"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/run"
)

// Load returns the model of a run's newest checkpoint, with a line for each newer checkpoint that is damaged. The run's data
// are not needed. Close it at the end.
func Load(b compute.Backend, r *run.Run) (*Codec, []string, error) {
	if task := r.Info().Task; task != (Task{}).Name() {
		return nil, nil, badinput.Errorf("%s is a run of the task %q, which has no codes", r.Dir(), task)
	}
	c := QuickConfig() // run.toml has every key
	if err := config.Resolve(&c, config.File(filepath.Join(r.Dir(), "run.toml"))); err != nil {
		return nil, nil, err
	}
	state, warnings, err := r.Load()
	if err != nil {
		return nil, warnings, err
	}
	codec, err := c.codec(b, state)
	if err != nil {
		return nil, warnings, badinput.Errorf("%s does not hold a model that can be used: %w", r.Dir(), err)
	}
	return codec, warnings, nil
}

// codec makes the model of a state. Programs that need variables which are missing would invent them, so it is tried on one
// image.
func (c *Config) codec(b compute.Backend, state run.State) (*Codec, error) {
	var from saved
	if err := json.Unmarshal(state.Extra, &from); err != nil {
		return nil, fmt.Errorf("counters: %w", err)
	}
	images := mnist.Size{Height: from.Height, Width: from.Width}
	size := c.size(images)
	if err := size.Validate(); err != nil {
		return nil, err
	}
	maps.DeleteFunc(state.Arrays, notModel)
	store := nn.NewStore(c.Seed)
	if err := run.SetStore(store, state.Arrays); err != nil {
		return nil, err
	}
	before := store.NumVariables()
	codec := newCodec(b, store, *c, size)
	_, err := codec.bounds(mnist.NewImages(images, make([]byte, images.Pixels())), 0)
	if made := store.NumVariables() - before; err == nil && made != 0 {
		err = fmt.Errorf("%d variables are missing in its checkpoint", made)
	}
	if err != nil {
		codec.Close()
		return nil, err
	}
	return codec, nil
}
