package induce

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/synthetic"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// small names the small grammar of package synthetic, and sentences drawn from it.
const small = "small"

// given is the scope of the variables that hold a grammar which stays as it is.
const given = "/grammar"

// logNever stands for the logarithm of probability 0 in them, so that every tree has a finite reward. A tree with one
// rule that the grammar does not have is 10^13 times less probable than it would be without.
const logNever = -30

// readFixed returns the grammar that a configuration says stays as it is.
func (c *Config) readFixed(b compute.Backend) (*grammar.Grammar, error) {
	switch c.Fixed {
	case small:
		return synthetic.Small(), nil
	case "synthetic":
		return synthetic.English(grammar.CFG)
	case "synthetic-ncfg":
		return synthetic.English(grammar.NCFG)
	}
	info, err := os.Stat(c.Fixed)
	if err != nil {
		return nil, badinput.Errorf("fixed = %q is neither a run nor a grammar file: %w", c.Fixed, err)
	}
	if !info.IsDir() {
		return grammar.Load(c.Fixed)
	}
	r, err := run.Read(c.Fixed)
	if err != nil {
		return nil, err
	}
	g, warnings, err := ReadGrammar(b, r)
	if err == nil && len(warnings) > 0 {
		err = badinput.Errorf("fixed = %q: %s; give a grammar from %s instead", c.Fixed, warnings[0],
			self.Command("grammar export"))
	}
	return g, err
}

// fix reads the grammar that stays as it is, and makes the configuration and the data fit it; without one it returns
// nil and the data.
func (c *Config) fix(b compute.Backend, data *treebank.Dataset) (*grammar.Grammar, *treebank.Dataset, error) {
	if c.Fixed == "" {
		return nil, data, nil
	}
	g, err := c.readFixed(b)
	if err != nil {
		return nil, nil, err
	}
	c.adopt(g)
	data, err = translate(data, g.Words)
	return g, data, err
}

// adopt makes a configuration one of a grammar's symbols.
func (c *Config) adopt(g *grammar.Grammar) {
	c.Model.Grammar, c.Model.Nonterminals, c.Model.Preterminals = string(g.Kind), len(g.Nonterminals), len(g.Preterminals)
}

// hashOf identifies a grammar.
func hashOf(g *grammar.Grammar) string {
	h, bare := sha256.New(), *g
	bare.Prepared = nil // how new text is read changes no probability
	if err := bare.Write(h); err != nil {
		panic(err) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}

// translate returns the data with the numbers that a vocabulary gives its words; those that are not there become <unk>,
// or an error if there is no such word either.
func translate(d *treebank.Dataset, words []string) (*treebank.Dataset, error) {
	v, err := treebank.NewVocabulary(words)
	if err != nil {
		return nil, err
	}
	number := make([]int32, d.Vocabulary.Size())
	for id, word := range d.Vocabulary.Words() {
		if number[id] = v.ID(word); number[id] < 0 {
			return nil, badinput.Errorf("the grammar does not know the word %.60q of the data, and has no %s", word,
				treebank.Unknown)
		}
	}
	out := *d
	out.Vocabulary, out.Splits = v, make([]treebank.Split, len(d.Splits))
	for i, split := range d.Splits {
		split.Sentences = make([]treebank.Sentence, len(split.Sentences))
		for j, s := range d.Splits[i].Sentences {
			split.Sentences[j] = treebank.Sentence{Words: make([]int32, len(s.Words)), Gold: s.Gold}
			for k, id := range s.Words {
				split.Sentences[j].Words[k] = number[id]
			}
		}
		out.Splits[i] = split
	}
	return &out, nil
}

// setFixed puts a grammar into a store, and returns how graphs read it.
func setFixed(store *model.Store, g *grammar.Grammar) func(*Graph) grammar.LogProbs {
	tables := g.LogProbs(dtypes.Float32)
	for _, t := range []*tensors.Tensor{tables.Root, tables.Rules, tables.Emit} {
		tensors.MustMutableFlatData(t, func(log []float32) {
			for i := range log {
				log[i] = max(log[i], logNever)
			}
		})
	}
	return tables.Keep(store.Scope(given))
}

// symbols are the names of a fixed grammar, for a state.
type symbols struct {
	Kind         grammar.Kind `json:"kind"`
	Nonterminals []string     `json:"nonterminals"`
	Preterminals []string     `json:"preterminals"`
}

// fixedTable reads the grammar of a state whose grammar stayed as it is.
func fixedTable(state run.State, saved counters) (*grammar.Grammar, error) {
	named := saved.Symbols
	if named == nil || named.Kind != grammar.CFG && named.Kind != grammar.NCFG ||
		min(len(named.Nonterminals), len(named.Preterminals), len(saved.Words)) == 0 {
		return nil, errors.New("its checkpoint does not name the symbols")
	}
	g := grammar.New(named.Kind, named.Nonterminals, named.Preterminals, saved.Words)
	store := model.NewStore()
	setFixed(store, g)
	if err := run.SetStore(store, run.Below(state.Arrays, given)); err != nil {
		return nil, err
	}
	var tables grammar.LogProbTensors
	for name, to := range map[string]**tensors.Tensor{"root": &tables.Root, "rules": &tables.Rules, "emit": &tables.Emit} {
		*to = store.GetVariable(given + "/" + name).MustValue()
		tensors.MustMutableFlatData(*to, func(log []float32) {
			for i, v := range log {
				if v <= logNever {
					log[i] = float32(math.Inf(-1))
				}
			}
		})
	}
	return g, g.SetLogProbs(tables)
}
