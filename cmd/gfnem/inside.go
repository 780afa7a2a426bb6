package main

import "strconv"

type insideCmd struct {
	grammarArg
	sentenceFlags
}

// Help implements kong's detailed help.
func (insideCmd) Help() string {
	return `Examples:
  gfnem inside runs/wsj < sentences.txt
  echo "the dog barks" | gfnem inside english.json

Prints log p(x) of each sentence, in nats with twelve decimals, all trees added up; -Inf if the grammar has no tree for it.
It is computed in double precision.

` + sentenceHelp
}

// Run prints the likelihood of sentences.
func (c insideCmd) Run(con console) error {
	s, err := openStream(con, c.grammarArg, c.sentenceFlags)
	if err != nil {
		return err
	}
	defer s.close()
	s.compute = func(group []*sentence) error {
		logs, err := s.parser.LogLikelihoods(idsOf(group))
		for i, v := range logs {
			group[i].answer = formatLog(v)
		}
		return err
	}
	return s.run()
}

// formatLog writes a logarithm with twelve decimals: "-5.371643054000", "-Inf".
func formatLog(v float64) string {
	if v > -5e-13 {
		v = 0 // not -0
	}
	return strconv.FormatFloat(v, 'f', 12, 64)
}
