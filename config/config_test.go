package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/testkit"
)

type shared struct {
	Seed uint64 `toml:"seed"`
}

type schedule struct {
	ESteps int     `toml:"e_steps"`
	Rate   float64 `toml:"rate"`
}

type config struct {
	shared
	Name     string   `toml:"name"`
	LR       float64  `toml:"lr"`
	On       bool     `toml:"on"`
	Schedule schedule `toml:"schedule"`
	Hidden   int      `toml:"-"`
	Plain    int
}

func (c *config) Validate() error {
	if c.LR < 0 {
		return errors.New("lr must not be negative")
	}
	return nil
}

func defaults() config {
	return config{
		shared: shared{Seed: 1}, Name: "default", LR: 0.5,
		Schedule: schedule{ESteps: 4, Rate: 2},
	}
}

func writeConfig(t *testing.T, text string) File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return File(path)
}

func TestResolve(t *testing.T) {
	file := writeConfig(t, `
seed = 3
lr = 1          # an integer is a number
Plain = 5
[schedule]
e_steps = 6
`)
	got := defaults()
	settings := Set{"schedule.rate=1e-3", "name=bare words = fine", "on=true", "schedule={e_steps=7}"}
	if err := Resolve(&got, file, settings); err != nil {
		t.Fatal(err)
	}
	want := config{
		shared: shared{Seed: 3}, Name: "bare words = fine", LR: 1, On: true,
		Schedule: schedule{ESteps: 7, Rate: 1e-3}, Plain: 5,
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestResolveStrings(t *testing.T) {
	for setting, want := range map[string]string{
		"name=":           "",
		"name=plain":      "plain",
		"name=2024":       "2024",
		"name=true":       "true",
		`name="quo ted"`:  "quo ted",
		`name='it'`:       "it",
		`name="unclosed`:  `"unclosed`,
		"name=1\nlr = 2":  "1\nlr = 2",
		"name=a=b":        "a=b",
		"name=a # b":      "a # b",
		"name=[1, 2":      "[1, 2",
		"name=/data/ptb/": "/data/ptb/",
	} {
		got := defaults()
		if err := Resolve(&got, Set{setting}); err != nil {
			t.Errorf("%q: %v", setting, err)
		} else if got.Name != want || got.LR != 0.5 {
			t.Errorf("%q gave name %q and lr %v", setting, got.Name, got.LR)
		}
	}
}

func TestResolveFileErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"\nsed = 3", `c.toml:2: unknown key "sed"; did you mean "seed"?`},
		{"Seed = 3", `c.toml:1: unknown key "Seed"; did you mean "seed"?`},
		{"e_steps = 3", `c.toml:1: unknown key "e_steps"; did you mean "schedule.e_steps"?`},
		{"\n[schedule]\n\ne_step = 3", `c.toml:4: unknown key "schedule.e_step"; did you mean "schedule.e_steps"?`},
		{"[shedule]\nrate = 1", `c.toml:1: unknown key "shedule"; did you mean "schedule"?`},
		{"schedule = {e_stepz = 1}", `c.toml:1: unknown key "schedule.e_stepz"; did you mean "schedule.e_steps"?`},
		{"temperature = 3", `c.toml:1: unknown key "temperature"`},
		{"Hidden = 3", `c.toml:1: unknown key "Hidden"`},
		{"# first\nlr = 'fast'", `c.toml:2: key "lr": want a number, got string "fast"`},
		{"seed = -1", `c.toml:1: key "seed": want an integer from 0, got integer -1`},
		{"lr = 9007199254740993", `c.toml:1: key "lr": want a number, got integer 9007199254740993`},
		{"Plain = 1.0", `c.toml:1: key "Plain": want an integer, got float 1`},
		{"lr = []", `c.toml:1: key "lr": want a number, got an array of 0`},
		{"'schedule.rate' = 1", `c.toml:1: unknown key "schedule.rate"; did you mean "schedule.rate"?`},
		{"on = 1", `c.toml:1: key "on": want a boolean, got integer 1`},
		{"name = true", `c.toml:1: key "name": want a string, got boolean true`},
		{"schedule = 3", `c.toml:1: key "schedule": want a table, got integer 3`},
		{"[[schedule]]\nrate = 1", `c.toml:1: key "schedule": want a table, got an array of tables`},
		{"[lr]\nx = 1", `c.toml:1: key "lr": want a number, got a table`},
		{"lr = -1", `configuration: lr must not be negative`},
		{"lr = ", `c.toml:1: expected value but found '\n' instead`},
		{"lr = 1\nlr = 2", `c.toml:2: Key 'lr' has already been defined.`},
	} {
		t.Run(c.text, func(t *testing.T) {
			file := writeConfig(t, c.text+"\n")
			got := defaults()
			err := Resolve(&got, file)
			testkit.BadInput(t, err, strings.Replace(c.want, "c.toml", string(file), 1))
		})
	}
	t.Run("missing", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "none.toml")
		got := defaults()
		testkit.BadInput(t, Resolve(&got, File(path)), path+": no such file")
	})
}

func TestResolveSetErrors(t *testing.T) {
	for _, c := range []struct{ setting, want string }{
		{"lr", `--set lr: want key=value`},
		{"=3", `--set =3: want key=value`},
		{"e_step=3", `--set e_step=3: unknown key "e_step"; did you mean "schedule.e_steps"?`},
		{"schedule.e_step=3", `--set schedule.e_step=3: unknown key "schedule.e_step"; did you mean "schedule.e_steps"?`},
		{"lr.x=3", `--set lr.x=3: unknown key "lr.x"; did you mean "lr"?`},
		{"lr=fast", `--set lr=fast: key "lr": want a number, got string "fast"`},
		{"lr=", `--set lr=: key "lr": want a number, got string ""`},
		{"schedule={rat=3}", `--set schedule={rat=3}: unknown key "schedule.rat"; did you mean "schedule.rate"?`},
		{"seed=-1", `--set seed=-1: key "seed": want an integer from 0, got integer -1`},
	} {
		t.Run(c.setting, func(t *testing.T) {
			got := defaults()
			testkit.BadInput(t, Resolve(&got, Set{c.setting}), c.want)
		})
	}
}

// What a programmer got wrong is not the user's error.
func TestResolveProgramErrors(t *testing.T) {
	for _, err := range []error{
		Resolve(config{}), Resolve(nil), Resolve(new(int)), Resolve((*config)(nil)),
	} {
		if err == nil || errors.As(err, new(*badinput.Error)) {
			t.Errorf("got %v", err)
		}
	}
}

func TestEncodeRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		want := config{
			shared:   shared{Seed: rapid.Uint64Range(0, 1<<63-1).Draw(t, "seed")},
			Name:     strings.ToValidUTF8(text.Draw(t, "name"), ""),
			LR:       rapid.Float64Min(0).Draw(t, "lr"),
			On:       rapid.Bool().Draw(t, "on"),
			Schedule: schedule{ESteps: rapid.Int().Draw(t, "e_steps"), Rate: rapid.Float64().Draw(t, "rate")},
			Plain:    rapid.Int().Draw(t, "plain"),
		}
		toml, err := Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "run.toml")
		if err := os.WriteFile(path, []byte(toml), 0o666); err != nil {
			t.Fatal(err)
		}
		got := defaults()
		if err := Resolve(&got, File(path)); err != nil {
			t.Fatalf("%v in\n%s", err, toml)
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("got  %+v\nwant %+v\nfrom\n%s", got, want, toml)
		}
	})
	if _, err := Encode(shared{Seed: 1 << 63}); err == nil {
		t.Error("encoded an integer that TOML cannot hold")
	}
}
