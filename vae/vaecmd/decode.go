package vaecmd

import (
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
)

type decodeCmd struct {
	codecArg
	Codes string `arg:"" optional:"" default:"-" help:"File of codes, one latent a line; - is standard input."`
	imageFlags
}

// Help implements kong's detailed help.
func (decodeCmd) Help() string {
	return `Examples:
  gfnem decode runs/digits codes.txt --out decoded.png
  gfnem encode runs/digits seven.png | gfnem decode runs/digits --out seven-again.png

Reads latents as "gfnem encode" prints them and writes the means of their pixels.

` + command.FallbackHelp
}

// Run decodes latents.
func (c decodeCmd) Run(con command.Console) error {
	if c.Out == "" {
		return badinput.Errorf("say where the images go: --out decoded.png")
	}
	if err := c.check(); err != nil {
		return err
	}
	codec, err := c.open(con)
	if err != nil {
		return err
	}
	defer codec.Close()
	codes, err := readCodes(con, c.Codes, codec.Check)
	if err != nil {
		return err
	}
	return c.write(codec, codes)
}
