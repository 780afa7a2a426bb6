package config

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/testkit"
)

type group struct {
	LR    float64 `toml:"lr" range:"0,1e3" help:"learning rate"`
	Decay float64 `toml:"decay" range:"-inf,-1e-9" or:"0" help:"of the rate"`
}

type tagged struct {
	Seed  uint64 `toml:"seed" range:"0,100" help:"of all random numbers"`
	Moves struct {
		Steps int `toml:"steps" range:"0,1000" help:"per latent" was:"moves; chain: of each chain"`
	} `toml:"moves" help:"refinement"`
	Wake struct {
		Epsilon float64 `toml:"epsilon" range:"0,1" help:"of a random action" was:"rand_prob;  eps : per step "`
	} `toml:"wake" help:"E-steps" was:"e_step"`
	Optim struct {
		Theta group `toml:"theta" help:"of the model"`
		Phi   group `toml:"phi" help:"of the GFlowNet"`
	} `toml:"optim" help:"updates"`
	Loss  string `toml:"loss" oneof:"tb subtb" help:"objective"`
	Sizes int    `toml:"sizes" help:"of layers" was:"size"`
}

func (c *tagged) Validate() error {
	if c.Seed == 13 || c.Seed > 100 {
		return errors.New("validated")
	}
	return nil
}

func newTagged() *tagged {
	c := &tagged{Loss: "tb"}
	c.Optim.Theta, c.Optim.Phi = group{LR: 0.1}, group{Decay: math.Inf(-1)}
	return c
}

func TestFields(t *testing.T) {
	got, err := Fields(newTagged())
	if err != nil {
		t.Fatal(err)
	}
	zero := 0.0
	const number, whole, table = "a number", "an integer", "a table"
	seed, steps, rate := &Interval{Low: 0, High: 100}, &Interval{Low: 0, High: 1000}, &Interval{Low: 0, High: 1000}
	decay := &Interval{Low: math.Inf(-1), High: -1e-9, Else: &zero}
	want := []Field{
		{Name: "seed", Type: "an integer from 0", Value: "0", Range: seed, Help: "of all random numbers"},
		{Name: "moves", Type: table, Help: "refinement"},
		{
			Name: "moves.steps", Type: whole, Value: "0", Range: steps, Help: "per latent",
			Was: []Old{{Name: "moves"}, {"chain", "of each chain"}},
		},
		{Name: "wake", Type: table, Help: "E-steps", Was: []Old{{Name: "e_step"}}},
		{
			Name: "wake.epsilon", Type: number, Value: "0.0", Range: &Interval{Low: 0, High: 1}, Help: "of a random action",
			Was: []Old{{Name: "rand_prob"}, {"eps", "per step"}},
		},
		{Name: "optim", Type: table, Help: "updates"},
		{Name: "optim.theta", Type: table, Help: "of the model"},
		{Name: "optim.theta.lr", Type: number, Value: "0.1", Range: rate, Help: "learning rate"},
		{Name: "optim.theta.decay", Type: number, Value: "0.0", Range: decay, Help: "of the rate"},
		{Name: "optim.phi", Type: table, Help: "of the GFlowNet"},
		{Name: "optim.phi.lr", Type: number, Value: "0.0", Range: rate, Help: "learning rate"},
		{Name: "optim.phi.decay", Type: number, Value: "-inf", Range: decay, Help: "of the rate"},
		{Name: "loss", Type: "a string", Value: `"tb"`, Choices: []string{"tb", "subtb"}, Help: "objective"},
		{Name: "sizes", Type: whole, Value: "0", Help: "of layers", Was: []Old{{Name: "size"}}},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Field{})); d != "" {
		t.Error(d)
	}
	var keys []string
	for _, f := range want {
		keys = append(keys, f.Name)
	}
	if got := Keys(newTagged()); !slices.Equal(got, keys) {
		t.Errorf("keys %v", got)
	}
	if err := Check(newTagged()); err != nil {
		t.Error(err)
	}
}

// Sections are set by tables and by dots; an error names the line of a key.
func TestSections(t *testing.T) {
	file := writeConfig(t, "[wake]\nepsilon = 0.5\n[optim.phi]\nlr = 2\n[optim]\ntheta = {lr = 3}\n")
	got := newTagged()
	set := Set{"wake.epsilon=0.25", "optim.phi.decay=-inf", "optim={theta={decay=-1}}"}
	if err := Resolve(got, file, set); err != nil {
		t.Fatal(err)
	}
	want := newTagged()
	want.Wake.Epsilon, want.Optim.Phi.LR, want.Optim.Theta = 0.25, 2, group{LR: 3, Decay: -1}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A value is checked by the tags of its key, after all layers and before Validate.
func TestTagsAreChecked(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"wake.epsilon=1.5", "wake.epsilon = 1.5 is not between 0 and 1"},
		{"wake.epsilon=-1e-300", "wake.epsilon = -1e-300 is not between 0 and 1"},
		{"wake.epsilon=nan", "wake.epsilon = NaN is not between 0 and 1"},
		{"wake.epsilon=inf", "wake.epsilon = +Inf is not between 0 and 1"},
		{"seed=101", "seed = 101 is not between 0 and 100"},
		{"moves.steps=-1", "moves.steps = -1 is not between 0 and 1000"},
		{"optim.phi.decay=1", "optim.phi.decay = 1 is neither 0 nor between -Inf and -1e-09"},
		{"optim.theta.decay=nan", "optim.theta.decay = NaN is neither 0 nor between -Inf and -1e-09"},
		{"loss=db", `loss = "db" is not one of tb subtb`},
		{"loss=", `loss = "" is not one of tb subtb`},
		{"loss=tb subtb", `loss = "tb subtb" is not one of tb subtb`},
	} {
		testkit.BadInput(t, Resolve(newTagged(), Set{c.set}), "--set "+c.set+": "+c.want)
	}
	testkit.BadInput(t, Resolve(newTagged(), Set{"seed=13"}), "configuration: validated")
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte("seed = 1\n[wake]\nepsilon = 2\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	testkit.BadInput(t, Resolve(newTagged(), File(path)), path+":3: wake.epsilon = 2 is not between 0 and 1")
	outside := Set{"wake.epsilon=2", "seed=200", "optim.phi.decay=5"}
	inside := Set{"wake.epsilon=1", "seed=0", "optim.phi.decay=-1"}
	for _, set := range []string{"wake.epsilon=0", "optim.phi.decay=-1e-9", "optim.phi.decay=0", "seed=100"} {
		if err := Resolve(newTagged(), outside, inside, Set{set}); err != nil {
			t.Errorf("%s: %v", set, err)
		}
	}
}

func TestOldKeys(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"rand_prob = 0.1", `c.toml:1: key "rand_prob" is now "wake.epsilon"`},
		{"seed = 1\neps = 0.1", `c.toml:2: key "eps" is now "wake.epsilon" (per step)`},
		{"\n\nchain = 1", `c.toml:3: key "chain" is now "moves.steps" (of each chain)`},
		{"moves = 3", `c.toml:1: key "moves" is now "moves.steps"`}, // a key became a section
		{"[e_step]\nepsilon = 0.1", `c.toml:1: key "e_step" is now "wake"`},
		{"[wake]\nrand_prob = 1", `c.toml:2: unknown key "wake.rand_prob"`},
	} {
		file := writeConfig(t, c.text+"\n")
		testkit.BadInput(t, Resolve(newTagged(), file), strings.Replace(c.want, "c.toml", string(file), 1))
	}
	for _, c := range []struct{ set, want string }{
		{"rand_prob=fast", `--set rand_prob=fast: key "rand_prob" is now "wake.epsilon"`},
		{"moves=3", `--set moves=3: key "moves" is now "moves.steps"`},
		{"chain=3", `--set chain=3: key "chain" is now "moves.steps" (of each chain)`},
		{"e_step.epsilon=3", `--set e_step.epsilon=3: key "e_step" is now "wake"`},
		{"optim.phi.lrr=3", `--set optim.phi.lrr=3: unknown key "optim.phi.lrr"; did you mean "optim.phi.lr"?`},
		{"size=1", `--set size=1: key "size" is now "sizes"`}, // better than "did you mean"
	} {
		testkit.BadInput(t, Resolve(newTagged(), Set{c.set}), c.want)
	}
}

// A tag that makes no sense is the programmer's error, and names the field.
func TestWrongTags(t *testing.T) {
	for want, v := range map[string]any{
		`"a.b": range:"1,0" is not`: &struct {
			A struct {
				B int `toml:"b" range:"1,0"`
			} `toml:"a"`
		}{},
		`"x": range:"0" is not`: &struct {
			X int `toml:"x" range:"0"`
		}{},
		`"x": range:"0,nan" is not`: &struct {
			X int `toml:"x" range:"0,nan"`
		}{},
		`"x": range:"0,1,2" is not`: &struct {
			X int `toml:"x" range:"0,1,2"`
		}{},
		`"x": range:"" is not`: &struct {
			X int `toml:"x" or:"1"`
		}{},
		`"x": or:"1" is not a number`: &struct {
			X int `toml:"x" range:"0,1" or:"1"`
		}{},
		`"x": or:"one" is not a number`: &struct {
			X int `toml:"x" range:"0,1" or:"one"`
		}{},
		`"x": a range for a string`: &struct {
			X string `toml:"x" range:"0,1"`
		}{},
		`"x": oneof:"1 2" for an integer`: &struct {
			X int `toml:"x" oneof:"1 2"`
		}{},
		`"x": oneof:"" for a string`: &struct {
			X string `toml:"x" oneof:""`
		}{},
		`"x": a field cannot have type map`: &struct {
			X map[string]int `toml:"x"`
		}{},
		`"x": a field cannot have type *int`: &struct {
			X *int `toml:"x"`
		}{},
		`"x": a field cannot have type int8`: &struct {
			X int8 `toml:"x"`
		}{},
		`"x": a field cannot have type []struct`: &struct {
			X []struct{} `toml:"x"`
		}{},
		`"x": was:"" has no old`: &struct {
			X int `toml:"x" was:": remark"`
		}{},
		`"x": was:"" has no`: &struct {
			X int `toml:"x" was:"a;"`
		}{},
		`"x": was:"x" has no`: &struct {
			X int `toml:"x" was:"x"`
		}{},
		`"y": was:"a" has no`: &struct {
			X int `toml:"x" was:"a"`
			Y int `toml:"y" was:"a"`
		}{},
	} {
		_, err := Fields(v)
		for _, err := range []error{err, Resolve(v), Check(v)} {
			if err == nil || errors.As(err, new(*badinput.Error)) || !strings.Contains(err.Error(), "configuration key "+want) {
				t.Errorf("got %v, want ... %s ...", err, want)
			}
		}
	}
}

// Check wants help and a default that is allowed.
func TestCheck(t *testing.T) {
	err := Check(&struct {
		A int    `toml:"a"`
		B int    `toml:"b" help:"two\nlines"`
		C int    `toml:"c" help:"good" range:"1,2"`
		D string `toml:"d" help:"good" oneof:"x y"`
	}{})
	want := "key \"a\": its help is not one line\nkey \"b\": its help is not one line\n" +
		"c = 0 is not between 1 and 2\nd = \"\" is not one of x y"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}
