package grammarcmd

import (
	"fmt"
	"path/filepath"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/synthetic"
	"github.com/gfnem/gfnem/treebank"
)

type dataCmd struct {
	Treebank dataTreebankCmd `cmd:"" help:"Make a data set of trees or sentences."`
	Show     dataShowCmd     `cmd:"" help:"Print the counts of a data set or of a file of trees."`
}

type dataTreebankCmd struct {
	In        []string `arg:"" optional:"" help:"Files or folders to divide into train, valid and test."`
	Out       string   `help:"Folder of the data set." required:"" placeholder:"DIR"`
	Train     []string `help:"File or folder for training; may be repeated." sep:"none" placeholder:"FILE"`
	Valid     []string `help:"File or folder for validation; may be repeated." sep:"none" placeholder:"FILE"`
	Test      []string `help:"File or folder for testing; may be repeated." sep:"none" placeholder:"FILE"`
	WSJ       string   `name:"wsj" help:"Folder parsed/mrg/wsj of the Penn Treebank: sections 02-21, 22 and 23." placeholder:"DIR"`
	Synthetic string   `help:"Make the built-in treebank: cfg, or ncfg, whose rules depend on the parent." placeholder:"VARIANT"`

	ValidFraction float64 `help:"Part of IN for validation." default:"0.1"`
	TestFraction  float64 `help:"Part of IN for testing, its end." default:"0.1"`
	Shuffle       bool    `help:"Divide IN at random."`
	Seed          uint64  `help:"Seed of --shuffle and --synthetic."`

	Format      string   `help:"What the files hold: auto, trees, conll, text, or sentences (one a line, spaces between tokens)." default:"auto"`
	Tokens      string   `help:"How text is cut: auto, english or spaces." default:"auto"`
	Sentences   string   `help:"How sentences of text are found: auto, lines (one a line) or split (at . ? and !)." default:"auto"`
	Punctuation bool     `help:"Keep punctuation of text and CoNLL; of trees --keep-tags says so." default:"true" negatable:""`
	KeepTags    []string `help:"Tags of words to keep; kim is the 36 usual ones, all every one but -NONE-." default:"kim"`
	KeepCase    bool     `help:"Do not change words to lower case."`
	KeepNumbers bool     `help:"Do not write numbers as N."`
	Vocab       int      `help:"Size of the vocabulary: the most frequent training words." default:"10000"`
	VocabFrom   string   `help:"Use the vocabulary of another data set." placeholder:"DIR"`
	Rare        int      `help:"Words that kept training sentences have at most so often become <unk>." default:"0"`
	Suffixes    bool     `help:"With --rare, classes of unknown words by their endings, such as <unk-ing>."`
	UsedWords   bool     `help:"Keep only words in the vocabulary that occur in the sentences kept."`
	MinLength   int      `help:"Words of the shortest sentence." default:"2"`
	MaxLength   int      `help:"Words of the longest sentence; 0 means no limit."`
	Strict      bool     `help:"Fail at a sentence of another length instead of leaving it out."`

	Force bool `help:"Replace the data set in the folder."`
	JSON  bool `help:"Print the counts as one JSON object on standard output."`
}

// Help implements kong's detailed help.
func (dataTreebankCmd) Help() string {
	return `Examples:
  gfnem data treebank --wsj parsed/mrg/wsj --max-length 20 --out data/wsj
  gfnem data treebank --train train.trees.gz --valid dev.trees.gz --test test.trees.gz --out data/mine
  gfnem data treebank my.trees --keep-tags kim,AFX --out data/mine      80 % train, 10 % valid, 10 % test
  gfnem data treebank stories.txt --no-punctuation --rare 1 --out data/stories     text, as "gfnem train grammar" makes it
  gfnem data treebank en-ud-train.conllu --out data/ud                  words of CoNLL, without dependencies
  gfnem data treebank --synthetic ncfg --out data/ncfg                  no files needed

Trees are in brackets, as in the Penn Treebank; text and CoNLL have none. Files may be compressed with gzip. Words are prepared as Kim, Dyer and
Rush (2019) do, unless flags say otherwise. The folder gets a file of sentences and one of gold spans for each split
(first-last word, counted from 0), vocabulary.txt, and manifest.json with counts and hashes.

Of the flags on words and lengths, --synthetic heeds --max-length and --used-words.`
}

// Run makes a data set.
func (c dataTreebankCmd) Run(io command.Console) error {
	if err := command.CheckSeed(c.Seed); err != nil {
		return err
	}
	data, err := c.build()
	if err != nil {
		return err
	}
	if c.UsedWords {
		data = data.Compact()
	}
	if err := data.Save(c.Out, c.Force); err != nil {
		return err
	}
	if c.JSON {
		return command.PrintJSON(io.Out, data.Table())
	}
	for _, note := range data.Notes {
		fmt.Fprintln(io.Err, note)
	}
	_, err = fmt.Fprintf(io.Out, "%s\nWritten to %s\n", data.Table(), c.Out)
	return err
}

func (c dataTreebankCmd) build() (*treebank.Dataset, error) {
	in := treebank.Inputs{
		Train: c.Train, Valid: c.Valid, Test: c.Test,
		All: c.In, ValidFraction: c.ValidFraction, TestFraction: c.TestFraction, Shuffle: c.Shuffle, Seed: c.Seed,
		Format: c.Format,
	}
	if c.Suffixes && c.Rare == 0 {
		return nil, badinput.Errorf("--suffixes is about rare words: give --rare, too")
	}
	if c.Vocab < 1 || c.MinLength < 1 || c.MaxLength < 0 {
		return nil, badinput.Errorf("--vocab and --min-length are at least 1, --max-length is at least 0")
	}
	given := len(c.Train)+len(c.Valid)+len(c.Test)+len(c.In) > 0
	if c.Synthetic != "" {
		if given || c.WSJ != "" {
			return nil, badinput.Errorf("--synthetic needs no files")
		}
		return c.synthetic()
	}
	if c.WSJ != "" {
		if given {
			return nil, badinput.Errorf("--wsj excludes other files")
		}
		in.Train, in.Valid, in.Test = wsjSections(c.WSJ)
	}
	options := treebank.Options{
		KeepTags: c.KeepTags, KeepCase: c.KeepCase, KeepNumbers: c.KeepNumbers, VocabSize: c.Vocab,
		MinLength: c.MinLength, MaxLength: c.MaxLength, Strict: c.Strict,
		Tokens: c.Tokens, Sentences: c.Sentences, DropPunctuation: !c.Punctuation, Rare: c.Rare, Suffixes: c.Suffixes,
	}
	if c.VocabFrom != "" {
		other, err := treebank.Load(c.VocabFrom)
		if err != nil {
			return nil, err
		}
		options.Vocabulary = other.Vocabulary
	}
	return treebank.Build(in, options)
}

// synthetic makes the built-in treebank, whose words are what they are.
func (c dataTreebankCmd) synthetic() (*treebank.Dataset, error) {
	data, err := synthetic.Treebank(grammar.Kind(c.Synthetic), c.Seed)
	if err != nil {
		return nil, err
	}
	if c.MaxLength > 0 {
		data = data.Between(0, c.MaxLength)
	}
	for _, split := range data.Splits {
		if len(split.Sentences) == 0 {
			return nil, badinput.Errorf("--max-length %d: %s has no sentence that short", c.MaxLength, split.Name)
		}
	}
	return data, nil
}

// wsjSections are the splits of the Penn Treebank that everybody uses.
func wsjSections(dir string) (train, valid, test []string) {
	section := func(i int) string { return filepath.Join(dir, fmt.Sprintf("%02d", i)) }
	for i := 2; i <= 21; i++ {
		train = append(train, section(i))
	}
	return train, []string{section(22)}, []string{section(23)}
}
