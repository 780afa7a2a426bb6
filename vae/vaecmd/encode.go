package vaecmd

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/mnist"
)

type encodeCmd struct {
	codecArg
	Images []string `arg:"" help:"Files of images (idx, also compressed; PNG; PGM) and folders of such files."`
	Draw   bool     `help:"Draw codes from the posterior q(z|x) instead of taking the most probable ones."`
	Seed   uint64   `help:"Seed of --draw."`
	JSON   bool     `help:"Print one JSON object a line."`
}

// Help implements kong's detailed help.
func (encodeCmd) Help() string {
	return `Examples:
  gfnem encode runs/digits seven.png
  gfnem encode runs/digits t10k-images-idx3-ubyte.gz > codes.txt
  gfnem encode runs/digits photos/ --draw --seed 3

Prints the codes of each image in one line, in raster order of the grid. Images must have the size that the model was
trained on; a pixel is 1 where it is brighter than half of white. "gfnem decode" turns codes into images.

` + command.FallbackHelp
}

// Run encodes images.
func (c encodeCmd) Run(con command.Console) error {
	if err := command.CheckSeed(c.Seed); err != nil {
		return err
	}
	codec, err := c.open(con)
	if err != nil {
		return err
	}
	defer codec.Close()
	images, names, err := mnist.Read(mnist.Size{Height: codec.Height, Width: codec.Width}, c.Images...)
	if err != nil {
		return err
	}
	if images.Len() == 0 {
		return badinput.Errorf("there are no images to encode")
	}
	codes, err := codec.Encode(images, !c.Draw, c.Seed)
	if err != nil {
		return err
	}
	if !c.JSON {
		return printCodes(con.Out, codes)
	}
	for i, z := range codes {
		line := struct {
			Image string          `json:"image"`
			Codes json.RawMessage `json:"codes"`
		}{names[i], json.RawMessage(strings.ReplaceAll(fmt.Sprint(z), " ", ","))}
		if err := command.PrintJSON(con.Out, line); err != nil {
			return err
		}
	}
	return nil
}
