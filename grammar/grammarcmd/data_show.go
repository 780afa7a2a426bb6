package grammarcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/treebank"
)

type dataShowCmd struct {
	Path     string   `arg:"" help:"Folder of a data set, or a file of trees, CoNLL or text."`
	Format   string   `help:"What a file holds: auto, trees, conll, text or sentences." default:"auto"`
	KeepTags []string `help:"Tags of words to keep of a file's trees." default:"kim"`
	Examples int      `help:"Print so many sentences of each split." default:"0"`
	JSON     bool     `help:"Print as one JSON object on standard output."`
}

// Help implements kong's detailed help.
func (dataShowCmd) Help() string {
	return `Examples:
  gfnem data show data/wsj
  gfnem data show data/wsj --examples 5
  gfnem data show wsj_0001.mrg

Counts sentences and words, and scores trees that need no learning. A data set is verified first.`
}

// Run prints the counts of a data set.
func (c dataShowCmd) Run(io command.Console) error {
	if c.Examples < 0 {
		return badinput.Errorf("--examples cannot be negative")
	}
	data, err := c.open()
	if err != nil {
		return err
	}
	if data.Aside != "" {
		fmt.Fprintf(io.Err, "warning: a command that replaced %s was killed: read %s, which is the old one; the next "+
			"%s puts it back\n", c.Path, data.Aside, self.Command("data treebank"))
	}
	baselines, err := data.Baselines()
	if err != nil {
		return err
	}
	if c.JSON {
		return command.PrintJSON(io.Out, map[string]any{"counts": data.Table(), "baselines": baselines, "sha256": data.Hash()})
	}
	text := data.Table().String()
	if baselines != nil {
		text += "\n" + baselines.String()
	}
	for _, split := range data.Splits {
		for i := range min(c.Examples, len(split.Sentences)) {
			text += fmt.Sprintf("\n%s %d: %s", split.Name, i+1, data.Text(split.Sentences[i]))
		}
	}
	_, err = fmt.Fprintln(io.Out, text)
	return err
}

func (c dataShowCmd) open() (*treebank.Dataset, error) {
	info, err := os.Stat(c.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil || info.IsDir() {
		return treebank.Load(c.Path)
	}
	data, err := treebank.Build(treebank.Inputs{Train: []string{c.Path}, Format: c.Format}, treebank.Options{
		KeepTags: c.KeepTags, Tokens: treebank.TokensAuto, Sentences: treebank.SentencesAuto,
	})
	if err != nil {
		return nil, err
	}
	data.Source, data.Splits[0].Name = c.Path, filepath.Base(c.Path)
	return data, nil
}
