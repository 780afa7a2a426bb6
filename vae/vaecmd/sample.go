package vaecmd

import (
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
)

// SampleFlags implements command.Sampler.
func (Task) SampleFlags() command.SampleFlags { return &sampleFlags{} }

// sampleFlags say whether images are written.
type sampleFlags struct{ imageFlags }

// Given implements command.SampleFlags.
func (f *sampleFlags) Given() (flags []string) {
	if f.Out != "" {
		flags = append(flags, "--out")
	}
	if f.Binary {
		flags = append(flags, "--binary")
	}
	return flags
}

// Sample implements command.SampleFlags: it draws from the prior.
func (f *sampleFlags) Sample(con command.Console, from command.Draw) error {
	if f.Out != "" {
		if err := f.check(); err != nil {
			return err
		}
	} else if f.Binary {
		return badinput.Errorf("--binary is about images: give --out, too")
	}
	codec, err := codecArg{Dir: from.Run.Dir(), Backend: from.Backend, Fallback: from.Fallback}.open(con)
	if err != nil {
		return err
	}
	defer codec.Close()
	codes, err := codec.Sample(from.Count, from.Seed)
	if err != nil {
		return err
	}
	if f.Out == "" {
		return printCodes(con.Out, codes)
	}
	return f.write(codec, codes)
}
