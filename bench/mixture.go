package bench

import (
	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/mixture"
)

// mixtureStep is one trajectory-balance update of the mixture's policy on all 4000 points.
func mixtureStep(b compute.Backend) (func() error, error) {
	c := mixture.PaperConfig()
	c.Gate.ESteps = 1 << 30 // no M-step
	s, err := mixture.Task{}.Start(b, &c)
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := s.Step()
		return err
	}, nil
}
