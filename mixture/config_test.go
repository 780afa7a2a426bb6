package mixture

import (
	"strings"
	"testing"

	"github.com/gfnem/gfnem/config"
)

func TestPresets(t *testing.T) {
	for name, preset := range presets {
		c := preset()
		if err := config.Check(&c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadConfig(t *testing.T) {
	for setting, want := range map[string]string{
		"model.super=0":       "model.super = 0 is not between 1 and 64",
		"model.sigma=nan":     "model.sigma = NaN is not between",
		"model.sigma=inf":     "model.sigma = +Inf is not between",
		"wake.epsilon_end=-2": "wake.epsilon_end = -2 is neither -1 nor between 0 and 1",
		"wake.reward_clip=0":  "wake.reward_clip = 0 is not between -Inf and -1e-09",
		"e_steps=3":           `key "e_steps" is now "gate.e_steps"`,
		"sigma=1":             `key "sigma" is now "model.sigma"`,
	} {
		c := QuickConfig()
		if err := config.Resolve(&c, config.Set{setting}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", setting, err, want)
		}
	}
}
