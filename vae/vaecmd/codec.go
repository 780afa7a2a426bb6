package vaecmd

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/mnist"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/vae"
)

// codecArg names a model of codes.
type codecArg struct {
	Dir string `arg:"" name:"run" help:"Folder of a run of \"train vae\"."`
	command.Backend
	command.Fallback
}

// open reads the model.
func (a codecArg) open(c command.Console) (*vae.Codec, error) {
	r, err := run.Read(a.Dir)
	if err != nil {
		return nil, err
	}
	b, err := a.Open()
	if err != nil {
		return nil, err
	}
	codec, warnings, err := vae.Load(b, r)
	return codec, cmp.Or(a.Allow(c, r, warnings), err)
}

// imageFlags say how images are written.
type imageFlags struct {
	Out    string `help:"File of the images, which appears complete or not at all: .png or .pgm (a grid of all), .idx or .idx.gz." placeholder:"FILE"`
	Binary bool   `help:"Write the more probable value of each pixel instead of its mean."`
}

// check complains about the name before anything is computed.
func (f imageFlags) check() error {
	_, err := mnist.FormatOf(f.Out)
	return err
}

// write decodes latents to a file.
func (f imageFlags) write(codec *vae.Codec, codes []vae.Codes) error {
	format, err := mnist.FormatOf(f.Out)
	if err != nil {
		return err
	}
	means, err := codec.Decode(codes)
	if err != nil {
		return err
	}
	if f.Binary {
		for i, v := range means {
			if means[i] = 0; v > 0.5 {
				means[i] = 1
			}
		}
	}
	images := mnist.NewGray(mnist.Size{Height: codec.Height, Width: codec.Width}, means)
	return command.WriteWhole(f.Out, func(w io.Writer) error { return images.Encode(w, format) })
}

// printCodes writes latents, one a line.
func printCodes(w io.Writer, codes []vae.Codes) error {
	out := bufio.NewWriter(w)
	for _, z := range codes {
		fmt.Fprintln(out, strings.Trim(fmt.Sprint(z), "[]"))
	}
	return out.Flush()
}

// readCodes reads latents, one a line, with spaces or commas between codes. A path of "-" is standard input.
func readCodes(c command.Console, path string, check func(vae.Codes) error) ([]vae.Codes, error) {
	in, name := c.In, "standard input"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, badinput.Errorf("%w", err)
		}
		defer f.Close()
		in, name = f, path
	}
	var all []vae.Codes
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		z, err := parseCodes(lines.Text())
		if err == nil {
			err = check(z)
		}
		if err != nil {
			return nil, badinput.Errorf("%s:%d: %w", name, n, err)
		}
		all = append(all, z)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, badinput.Errorf("%s:%d: a line is too long for the codes of one latent", name, len(all)+1)
	} else if err != nil {
		return nil, badinput.Errorf("%s: %w", name, err)
	}
	if len(all) == 0 {
		return nil, badinput.Errorf("%s has no codes: give one latent a line, such as \"0 3 7 1 ...\"", name)
	}
	return all, nil
}

func parseCodes(line string) (vae.Codes, error) {
	var z vae.Codes
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' || r == '\r' }) {
		k, err := strconv.ParseUint(word, 10, 8)
		if err != nil {
			return nil, fmt.Errorf("%q is no code: codes are numbers from 0 to 255", command.Shorten(word, 30))
		}
		z = append(z, uint8(k))
	}
	return z, nil
}
