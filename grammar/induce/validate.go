package induce

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar"
)

// Validate implements the last word of config.Resolve. It fills in what a configuration leaves open.
func (c *Config) Validate() error {
	err := cmp.Or(c.checkTogether(), config.MakeAbsolute("data", &c.Data, builtIn...),
		config.MakeAbsolute("fixed", &c.Fixed, append(builtIn[:3:3], "")...))
	if err != nil {
		return err
	}
	if c.MaxLength == 0 && !c.ofFiles() && !c.missing() {
		c.MaxLength = usualLength
	}
	if c.Updates == 0 {
		c.Updates = 10_000
		if c.Method == GFN {
			c.Updates = 2500
		}
	}
	if c.Optim.Theta.Rate == -1 {
		c.Optim.Theta.Rate = 3e-3
		if c.Method == GFN {
			c.Optim.Theta.Rate = 6e-3
		}
	}
	if c.Restarts > 1 && c.RestartUpdates == 0 {
		c.RestartUpdates = max(1, c.Updates/10)
	}
	if c.Restarts > 1 && c.RestartUpdates > c.Updates {
		return fmt.Errorf("restart_updates = %d is more than updates = %d", c.RestartUpdates, c.Updates)
	}
	if c.Horizon == 0 {
		c.Horizon = c.Updates
	}
	if c.Gate.Threshold == -1 {
		switch {
		case c.Prior.On:
			c.Gate.Threshold = 4
		case c.Model.Grammar == string(grammar.NCFG):
			c.Gate.Threshold = 7
		default:
			c.Gate.Threshold = 6
		}
	}
	if c.Gate.ThresholdEnd == -1 {
		c.Gate.ThresholdEnd = c.Gate.Threshold / 2
	}
	return nil
}

// checkTogether refuses settings that do not go with each other.
func (c *Config) checkTogether() error {
	if c.Prior.On && c.Method != MCEM && c.Method != GFN {
		return fmt.Errorf("prior.on = true needs method = %q or %q: a prior on whole trees has no exact inference", MCEM, GFN)
	}
	if c.Method == GFN && c.Wake.Objective == "none" && c.Sleep.Weight == 0 && c.Moves.Balance == 0 {
		return fmt.Errorf("wake.objective = %q with sleep.weight = 0 and moves.balance = 0 trains nothing: turn one of them on", c.Wake.Objective)
	}
	if c.Method == GFN && slices.Contains([]string{"hvi", "rws", "vimco"}, c.Wake.Objective) && (c.Wake.Beta != 1 || c.Wake.Epsilon != 0) {
		return fmt.Errorf("wake.objective = %q is right for trees of the policy itself: set wake.beta = 1 and wake.epsilon = 0", c.Wake.Objective)
	}
	if c.Policy.Heads > 0 && c.Policy.Width%c.Policy.Heads != 0 {
		return fmt.Errorf("policy.width = %d cannot be divided among policy.heads = %d", c.Policy.Width, c.Policy.Heads)
	}
	if c.MStep.Collapse == Nothing && c.Method != Exact {
		return fmt.Errorf("mstep.collapse = %q needs method = %q: other trees have no preterminals that could be seen", Nothing, Exact)
	}
	if c.Method == GFN && c.Policy.Trees == Shapes && c.collapse() != Labels {
		return fmt.Errorf("policy.trees = %q hands on no labels: set mstep.collapse = %q", Shapes, Labels)
	}
	if c.MStep.Samples > 1 && c.Method != Exact {
		return fmt.Errorf("mstep.samples = %d needs method = %q; with %q M-steps learn from all wake.samples", c.MStep.Samples, Exact, GFN)
	}
	if err := c.checkSamples(); err != nil {
		return err
	}
	if c.Restarts > 1 && (c.Fixed != "" || c.MaxIterations > 0) {
		return fmt.Errorf("restarts = %d compares grammars after updates of theirs: leave out fixed and max_iterations", c.Restarts)
	}
	if c.Eval.Patience > 0 && (c.Eval.Select != Best || c.Eval.Every == 0) {
		return fmt.Errorf("eval.patience = %d waits for a better evaluation: set eval.select = %q and eval.every", c.Eval.Patience, Best)
	}
	if c.Fixed != "" && c.Method != GFN {
		return fmt.Errorf("fixed = %q needs method = %q: no other one learns anything from a grammar that stays as it is", c.Fixed, GFN)
	}
	return nil
}

// checkSamples refuses settings of several walks of a sentence that do not go with each other.
func (c *Config) checkSamples() error {
	if c.Method != GFN {
		return nil
	}
	switch several := c.Wake.Samples > 1; {
	case slices.Contains([]string{"vargrad", "rws", "vimco"}, c.Wake.Objective) && !several:
		return fmt.Errorf("wake.objective = %q compares the walks of a sentence: set wake.samples to 2 or more", c.Wake.Objective)
	case c.MStep.Weights && !several:
		return fmt.Errorf("mstep.weights = true weighs the walks of a sentence: set wake.samples to 2 or more")
	case c.MStep.Weights && c.Moves.Count > 0:
		return fmt.Errorf("mstep.weights = true learns from walks before moves: set moves.count = 0, which leaves the move that is trained")
	case c.Moves.Persist && c.Moves.Count == 0:
		return fmt.Errorf("moves.persist = true needs moves: set moves.count to 1 or more")
	case c.Wake.Replay > c.Wake.Samples:
		return fmt.Errorf("wake.replay = %d keeps more trees than wake.samples = %d walks make: lower it",
			c.Wake.Replay, c.Wake.Samples)
	case c.Wake.Replay > 0 && c.Moves.Count == 0 && c.Moves.Balance > 0:
		return fmt.Errorf("wake.replay = %d with moves.count = 0 keeps trees of walks, and moves.balance = %g makes one move all the same: "+
			"set moves.balance = 0", c.Wake.Replay, c.Moves.Balance)
	case c.Wake.Replay > 0 && slices.Contains([]string{"hvi", "rws", "vimco", "none"}, c.Wake.Objective):
		return fmt.Errorf("wake.replay = %d learns from trees that others have drawn: set wake.objective to subtb, tb or vargrad",
			c.Wake.Replay)
	}
	return nil
}

// walks is how many there are of each sentence.
func (c *Config) walks() int {
	if c.Method != GFN {
		return 1
	}
	return c.Wake.Samples
}

// collapse says what M-steps sum out.
func (c *Config) collapse() string {
	switch {
	case c.MStep.Collapse != Published:
		return c.MStep.Collapse
	case c.Method == Exact:
		return Nothing
	case c.Method == GFN && c.Policy.Trees == Shapes:
		return Labels
	}
	return Tags
}
