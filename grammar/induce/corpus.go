package induce

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

var (
	_ run.Housed = (*Config)(nil)
	_ run.Sharer = (*Config)(nil)
)

// Text is how files become a data set.
type Text struct {
	Format      string  `toml:"format" oneof:"auto text sentences trees conll" help:"what files hold; auto: as their names or first lines say; sentences: text with one a line and spaces between tokens"`
	Tokens      string  `toml:"tokens" oneof:"auto english spaces" help:"how text is cut; auto: at spaces, if punctuation stands alone in it, else as English"`
	Sentences   string  `toml:"sentences" oneof:"auto lines split" help:"how sentences of text are found: one a line, or at . ? and !; auto: lines, if hardly any line has two"`
	Punctuation bool    `toml:"punctuation" help:"keep it, as words"`
	KeepCase    bool    `toml:"keep_case" help:"do not change words to lower case"`
	KeepNumbers bool    `toml:"keep_numbers" help:"do not write numbers as N"`
	Rare        int     `toml:"rare" range:"0,1000000" help:"words that training sentences have at most so often become <unk>"`
	Suffixes    bool    `toml:"suffixes" help:"classes of unknown words by their endings, such as <unk-ing>"`
	Vocabulary  int     `toml:"vocabulary" range:"1,1000000" help:"the most words that are known"`
	Valid       float64 `toml:"valid" range:"0,0.9" help:"part of the sentences for validation, before those for the test, unless files of a folder say"`
	Test        float64 `toml:"test" range:"0,0.9" help:"part of the sentences for the test, the last ones"`
}

var usualText = Text{
	Format: treebank.FormatAuto, Tokens: treebank.TokensAuto, Sentences: treebank.SentencesAuto,
	Rare: 1, Vocabulary: 10_000, Valid: 0.1, Test: 0.1,
}

// usualLength is that of the published experiments.
const usualLength = 20

// fitting leaves max_length of a preset to the data.
func fitting(preset func() Config) func() Config {
	return func() Config {
		c := preset()
		c.MaxLength = 0
		return c
	}
}

// ofFiles says whether Data names files that are no data set yet.
func (c *Config) ofFiles() bool {
	if slices.Contains(builtIn, c.Data) {
		return false
	}
	info, err := os.Stat(c.Data)
	return err == nil && !(info.IsDir() && treebank.Holds(c.Data))
}

// missing says whether Data names nothing that there is.
func (c *Config) missing() bool {
	if slices.Contains(builtIn, c.Data) {
		return false
	}
	_, err := os.Stat(c.Data)
	return errors.Is(err, fs.ErrNotExist)
}

// make makes a data set of files.
func (c *Config) make() error {
	in, err := treebank.InputsAt(c.Data, c.Text.Valid, c.Text.Test)
	if err != nil {
		return err
	}
	in.Format = c.Text.Format
	o := treebank.CorpusOptions()
	o.Tokens, o.Sentences, o.DropPunctuation = c.Text.Tokens, c.Text.Sentences, !c.Text.Punctuation
	o.KeepCase, o.KeepNumbers = c.Text.KeepCase, c.Text.KeepNumbers
	o.Rare, o.Suffixes, o.VocabSize = c.Text.Rare, c.Text.Suffixes, c.Text.Vocabulary
	if c.Text.Punctuation {
		o.KeepTags = []string{treebank.AllTags}
	}
	if c.MaxLength > 0 {
		o.LearnLength = c.MaxLength
	}
	d, err := treebank.Build(in, o)
	if err != nil {
		return err
	}
	c.opened, c.ofText, c.MaxLength = d, true, d.Options.LearnLength
	return nil
}

// Prepare implements run.Preparer: a data set is made of files, and what is left out of it is said.
func (Task) Prepare(config any) (said []string, err error) {
	c := config.(*Config)
	c.asked = c.MaxLength
	if slices.Contains(builtIn, c.Data) {
		return nil, nil
	}
	if err := c.open(); err != nil && (c.ofFiles() || c.MaxLength == 0) {
		return nil, err
	} else if err != nil {
		return nil, nil // Start says so, if it is asked: cells of a grid that are finished do without
	}
	if !c.ofText {
		defer func() { c.opened = nil }() // Start opens it again: many configurations may be prepared before any is started
	}
	d := c.opened.Between(2, c.MaxLength)
	said = slices.Clone(d.Notes)
	if c.Text.Tokens == treebank.TokensAuto && len(said) > 0 && strings.Contains(said[0], "English") {
		said[0] += `; text.tokens = "spaces" takes words as they are`
	}
	for i := range d.Splits {
		s := &d.Splits[i]
		st := d.Stats(s)
		said = append(said, fmt.Sprintf(
			"%s: %s of %d tokens read, %d kept with %d words, %s %% of them <unk>; %d too short, %d of more than %d words",
			s.Name, report.Count(st.Sentences+s.Dropped.Short+s.Dropped.Long, "sentence"), s.Leaves, st.Sentences, st.Words,
			report.Number(100*float64(st.Unknown)/float64(max(st.Words, 1)), 1), s.Dropped.Short, s.Dropped.Long, c.MaxLength))
	}
	if c.ofText {
		said = append(said, fmt.Sprintf("vocabulary: %d words, without those that training sentences have at most %s",
			d.Vocabulary.Size(), times(c.Text.Rare)))
	}
	if text := c.leftOut(d); text != "" {
		said = append(said, "warning: "+text)
	}
	return said, nil
}

// Share implements run.Sharer: what is made of the same files in the same way is one data set.
func (c *Config) Share(prepared any) bool {
	p, ok := prepared.(*Config)
	if !ok || c.Data != p.Data || c.Text != p.Text || c.MaxLength != p.asked {
		return false
	}
	c.opened, c.ofText, c.MaxLength, c.asked = p.opened, p.ofText, p.MaxLength, p.asked
	return true
}

// leftOut says so if more than a tenth of the training sentences are too long.
func (c *Config) leftOut(d *treebank.Dataset) string {
	train, err := d.Split(treebank.Train)
	if err != nil {
		return ""
	}
	long, all := train.Dropped.Long, len(train.Sentences)+train.Dropped.Long
	if 10*long <= all {
		return ""
	}
	return fmt.Sprintf(
		"max_length = %d leaves out %d of %d training sentences: longer ones take time with the third power of their length",
		c.MaxLength, long, all)
}

// Dataset is what is learned from, and a note if much was left out of it.
func (s *Session) Dataset() (d *treebank.Dataset, note string) { return s.data, s.leftOut(s.data) }

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// preparationName is the file in which a run keeps what its words went through.
const preparationName = "preparation.json"

// House implements run.Housed.
func (c *Config) House(dir string, files []string) (key string, err error) {
	if !slices.ContainsFunc(files, func(name string) bool { return name != preparationName }) {
		return "", nil
	}
	if c.opened, err = treebank.Load(dir); err != nil {
		return "", badinput.Errorf("%w, or put back a copy: the run was made with it", err)
	}
	return "data", nil
}

// Keeps implements run.Keeper: a data set that was made of files, and what words of any that is not built in went
// through.
func (s *Session) Keeps() (files map[string][]byte, err error) {
	if slices.Contains(builtIn, s.Config.Data) || s.opened == nil {
		return nil, nil
	}
	files = map[string][]byte{}
	if s.ofText {
		if files, err = s.opened.Files(); err != nil {
			return nil, err
		}
	}
	files[preparationName], err = json.MarshalIndent(s.opened.Preparation(), "", "  ")
	return files, err
}

// preparation is what the training data of a run went through, for new text; nil where that is not known, as of older
// runs.
func (c *Config) preparation(r *run.Run) (*treebank.Preparation, error) {
	if slices.Contains(builtIn, c.Data) { // their words are in lower case, without punctuation
		return &treebank.Preparation{Tokens: treebank.TokensEnglish}, nil
	}
	data, err := r.Kept(preparationName)
	if data == nil || err != nil {
		return nil, err
	}
	p := &treebank.Preparation{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, badinput.Errorf("%s of %s: %w", preparationName, r.Dir(), err)
	}
	return p, nil
}
