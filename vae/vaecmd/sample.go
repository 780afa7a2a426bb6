package vaecmd

import (
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
)

type sampleCmd struct {
	codecArg
	Count int    `help:"How many." default:"16"`
	Seed  uint64 `help:"Seed of the samples."`
	imageFlags
}

// Help implements kong's detailed help.
func (sampleCmd) Help() string {
	return `Examples:
  gfnem sample runs/digits --out samples.png
  gfnem sample runs/digits --count 1000 --seed 2 > codes.txt

Draws latents from the prior and prints their codes, one a line; with --out their images are written instead. Only a
learned prior (--method gfn-gd-prior) gives images like those of the data: a uniform one also draws latents that no image has.

` + command.FallbackHelp
}

// Run samples the prior.
func (c sampleCmd) Run(con command.Console) error {
	if c.Count < 1 || c.Count > 1_000_000 {
		return badinput.Errorf("--count %d is not between 1 and 1000000", c.Count)
	}
	if err := command.CheckSeed(c.Seed); err != nil {
		return err
	}
	if c.Out != "" {
		if err := c.check(); err != nil {
			return err
		}
	} else if c.Binary {
		return badinput.Errorf("--binary is about images: give --out, too")
	}
	command.TakesMemory("--count")
	codec, err := c.open(con)
	if err != nil {
		return err
	}
	defer codec.Close()
	codes, err := codec.Sample(c.Count, c.Seed)
	if err != nil {
		return err
	}
	if c.Out == "" {
		return printCodes(con.Out, codes)
	}
	return c.write(codec, codes)
}
