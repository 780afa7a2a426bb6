package grammarcmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
)

var _ command.Inspector = Task{}

// Limits of a request.
const (
	servedSamples = 200
	servedLength  = 60
)

// Questions implements command.Inspector.
func (Task) Questions() []command.Question {
	return []command.Question{
		command.Ask("parse", "Trees of sentences, as the command parse --json --skip-bad prints them.", (*inspected).parse),
		command.Ask("inside", "log p(x) of sentences, in nats; null where there is no tree.", (*inspected).inside),
		command.AskOne("sample", "Trees of sentences, drawn from the exact posterior or from the GFlowNet.", (*inspected).sample),
		command.AskOne("chart", "How probable it is that words are a constituent, by exact inference.", (*inspected).chart),
		command.AskOne("steps", "What the GFlowNet builds, step by step, with the probabilities of what it could do.", (*inspected).steps),
		command.AskOne("rules", "The most probable rules of a symbol.", (*inspected).rules),
	}
}

// Inspect implements command.Inspector.
func (Task) Inspect(b compute.Backend, r *run.Run) (command.Model, []string, error) {
	g, skipped, err := induce.ReadGrammar(b, r)
	if err != nil {
		return nil, skipped, err
	}
	m := &inspected{grammar: g, exact: parse.NewExact(b, g)}
	m.charts = parse.NewCharts(b, g)
	_, net, _, err := induce.ReadGFlowNet(b, r)
	var none *badinput.Error
	switch {
	case err == nil:
		m.net, m.stepper = net, net.Stepper()
	case !errors.As(err, &none): // a run of another method has none
		m.Close()
		return nil, skipped, err
	}
	return m, skipped, nil
}

// inspected is the model of a run.
type inspected struct {
	grammar *grammar.Grammar
	exact   *parse.Exact
	charts  *parse.Charts
	net     *parse.GFlowNet // nil if there is none
	stepper *parse.Stepper
}

var _ command.Model = (*inspected)(nil)

// Close implements command.Model.
func (m *inspected) Close() {
	m.exact.Close()
	m.charts.Close()
	if m.net != nil {
		m.net.Close()
	}
}

// About implements command.Model.
func (m *inspected) About() any {
	out := aboutGrammar{
		Kind: string(m.grammar.Kind), Nonterminals: m.grammar.Nonterminals, Preterminals: m.grammar.Preterminals,
		Words: len(m.grammar.Words), GFlowNet: m.net != nil, Longest: servedLength,
	}
	if m.net != nil {
		out.LongestGFN = m.net.Longest()
	}
	out.Examples = m.examples()
	return out
}

type aboutGrammar struct {
	Kind         string   `json:"kind"`
	Nonterminals []string `json:"nonterminals"`
	Preterminals []string `json:"preterminals"`
	Words        int      `json:"words"`
	GFlowNet     bool     `json:"gflownet"`
	Longest      int      `json:"longest"`
	LongestGFN   int      `json:"longest_gfn,omitempty"`
	Examples     []string `json:"examples"`
}

// examples are sentences to begin with, which the grammar made.
func (m *inspected) examples() []string {
	longest := 12
	if m.net != nil {
		longest = min(longest, m.net.Longest())
	}
	var out []string
	r := rng.New(0, "grammar/examples")
	for range 500 { // fewer than five where the grammar seldom makes short ones
		d := m.grammar.Draw(r, longest)
		if d == nil || len(out) == 5 {
			continue
		}
		words := make([]string, len(d.Words))
		for i, w := range d.Words {
			words[i] = m.grammar.Words[w]
		}
		out = append(out, strings.Join(words, " "))
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return out
}

// need returns the GFlowNet's absence as an error.
func (m *inspected) need() error {
	if m.net == nil {
		return badinput.Errorf("this run has no GFlowNet: only runs of method gfn have one")
	}
	return nil
}

// sentences are lines of text that are asked about.
type sentences struct {
	Sentences []string `json:"sentences" help:"a line of text each"`
	AsIs      bool     `json:"as_is,omitempty" help:"words as they stand between spaces, whatever the training text went through"`
}

func (s sentences) Check() error {
	for i, text := range s.Sentences {
		if strings.ContainsAny(text, "\n\r") {
			return fmt.Errorf("sentence %d has the end of a line in it", i)
		}
	}
	return nil
}

func (s sentences) Size() int { return len(s.Sentences) }

// stream answers sentences, one text each, as commands do.
func (m *inspected) stream(all []string, asIs bool, a answering) ([]json.RawMessage, error) {
	how, err := sentenceFlags{MaxLength: servedLength, AsIs: asIs, SkipBad: true}.reading(m.grammar)
	if err != nil {
		return nil, err
	}
	s, err := parse.NewStream(strings.NewReader(strings.Join(all, "\n")+"\n"), m.grammar, how, a.parsers...)
	if err != nil {
		return nil, err
	}
	s.Answer, s.Word, s.Instead = a.several, a.word, instead
	var out strings.Builder
	if err := s.Run(&out, io.Discard); err != nil {
		return nil, err
	}
	var lines []json.RawMessage
	for line := range strings.Lines(out.String()) {
		lines = append(lines, json.RawMessage(strings.TrimSuffix(line, "\n")))
	}
	return lines, nil
}

// instead is the answer to a line that cannot be used.
func instead(l *parse.Line) string {
	_, text, _ := strings.Cut(l.Err.Error(), ": ") // where it stands is known from its place
	return encode(struct {
		Error string `json:"error"`
	}{text})
}

// together joins the sentences of several requests, asks, and takes the answers apart.
func together(all []sentences, ask func([]string) ([]json.RawMessage, error)) ([][]json.RawMessage, error) {
	var text []string
	for _, s := range all {
		text = append(text, s.Sentences...)
	}
	lines, err := ask(text)
	if err != nil {
		return nil, err
	}
	out := make([][]json.RawMessage, len(all))
	for i, s := range all {
		out[i], lines = lines[:len(s.Sentences):len(s.Sentences)], lines[len(s.Sentences):]
	}
	return out, nil
}

type (
	parseRequest struct {
		sentences
		Decode string `json:"decode,omitempty" help:"viterbi (also if left out), mbr, sample, gfn or gfn-mbr"`
		Seed   uint64 `json:"seed,omitempty" help:"of sample, gfn and gfn-mbr"`
	}
	trees struct {
		Trees []json.RawMessage `json:"trees" help:"one object for each sentence: words, tree, spans, tags, log_prob, or error"`
	}
)

func (q parseRequest) Check() error {
	if d := q.decode(); !slices.Contains(parse.Decodes(), string(d)) {
		return command.Unknown("decoder", string(d), parse.Decodes())
	}
	return cmp.Or(command.CheckSeed(q.Seed), q.sentences.Check())
}

func (q parseRequest) decode() parse.Decode { return cmp.Or(parse.Decode(q.Decode), parse.Viterbi) }

// Join implements command.Joined: what is not drawn does not depend on what else is asked.
func (q parseRequest) Join() string {
	if d := q.decode(); d == parse.Viterbi || d == parse.MBR {
		return fmt.Sprint(d, q.AsIs)
	}
	return ""
}

func (m *inspected) parse(requests []parseRequest) ([]trees, error) {
	first, all := requests[0], make([]sentences, len(requests))
	for i, q := range requests {
		all[i] = q.sentences
	}
	lines, err := together(all, func(text []string) ([]json.RawMessage, error) {
		return m.find(text, first.AsIs, first.decode(), first.Seed)
	})
	out := make([]trees, len(lines))
	for i := range lines {
		out[i].Trees = lines[i]
	}
	return out, err
}

// find finds trees, as the command parse does.
func (m *inspected) find(text []string, asIs bool, how parse.Decode, seed uint64) ([]json.RawMessage, error) {
	p := &parsing{decode: how, seed: seed, format: formatJSON, names: m.grammar, exact: m.exact, Parser: m.exact}
	parsers := []parse.Parser{m.exact}
	if how.ByGFlowNet() {
		if err := m.need(); err != nil {
			return nil, err
		}
		p.Parser = m.net
		parsers = append(parsers, m.net)
	}
	if how.Unlabelled() {
		p.names = nameless
	}
	return m.stream(text, asIs, answering{parsers: parsers, several: p.parse, word: p.single})
}

type insideRequest struct{ sentences }

// Join implements command.Joined.
func (q insideRequest) Join() string { return fmt.Sprint(q.AsIs) }

type likelihoods struct {
	LogProbs []json.RawMessage `json:"log_probs" help:"one for each sentence: a number, null if there is no tree, or an object with an error"`
}

func (m *inspected) inside(requests []insideRequest) ([]likelihoods, error) {
	all := make([]sentences, len(requests))
	for i, q := range requests {
		all[i] = q.sentences
	}
	lines, err := together(all, func(text []string) ([]json.RawMessage, error) {
		write := func(l *parse.Line, v float64) {
			if l.Answer = formatLog(v); math.IsInf(v, -1) {
				l.Answer = "null"
			}
		}
		return m.stream(text, requests[0].AsIs, answering{
			parsers: []parse.Parser{m.exact},
			several: func(lines []*parse.Line) error {
				logs, err := m.exact.LogLikelihoods(parse.Sentences(lines))
				for i, v := range logs {
					write(lines[i], v)
				}
				return err
			},
			word: func(l *parse.Line) error {
				write(l, math.Inf(-1))
				return nil
			},
		})
	})
	out := make([]likelihoods, len(lines))
	for i := range lines {
		out[i].LogProbs = lines[i]
	}
	return out, err
}

type (
	sampleRequest struct {
		sentences
		Count int    `json:"count" help:"trees of each sentence, at most 200"`
		By    string `json:"by,omitempty" help:"exact (also if left out), or gfn"`
		Seed  uint64 `json:"seed,omitempty"`
	}
	samples struct {
		Samples []sampled `json:"samples" help:"by sentence"`
	}
	sampled struct {
		Error string    `json:"error,omitempty"`
		Trees []counted `json:"trees,omitempty" help:"the most frequent first"`
		// ESS is how many exact samples those of the GFlowNet are worth.
		ESS     *float64 `json:"effective_samples,omitempty" help:"how many exact samples those of a GFlowNet are worth"`
		LogProb *float64 `json:"log_prob_estimate,omitempty" help:"of a GFlowNet: log p(x), estimated from the weights of its samples"`
	}
	counted struct {
		parseJSON
		Count int `json:"count"`
	}
)

// Check implements command.Checked.
func (q sampleRequest) Check() error {
	switch {
	case q.Count < 1 || q.Count > servedSamples:
		return fmt.Errorf("count %d is not between 1 and %d", q.Count, servedSamples)
	case q.By != "" && q.By != "exact" && q.By != "gfn":
		return fmt.Errorf("by %q is neither exact nor gfn", q.By)
	}
	return cmp.Or(command.CheckSeed(q.Seed), q.sentences.Check())
}

// Size implements command.Sized.
func (q sampleRequest) Size() int { return len(q.Sentences) * q.Count }

// sample draws what the command parse draws of the same sentence on so many lines.
func (m *inspected) sample(q sampleRequest) (out samples, err error) {
	how := parse.Sample
	if q.By == "gfn" {
		how = parse.GFNSample
	}
	for _, text := range q.Sentences {
		lines, err := m.find(slices.Repeat([]string{text}, q.Count), q.AsIs, how, q.Seed)
		if err != nil {
			return out, err
		}
		one, err := count(lines)
		if err != nil {
			return out, err
		}
		out.Samples = append(out.Samples, one)
	}
	return out, nil
}

// count counts equal trees.
func count(lines []json.RawMessage) (out sampled, err error) {
	at := map[string]int{}
	var logW []float64
	for _, line := range lines {
		var one struct {
			parseJSON
			Error string `json:"error"`
		}
		if err := json.Unmarshal(line, &one); err != nil {
			return out, err
		}
		if one.Error != "" {
			return sampled{Error: one.Error}, nil
		}
		if one.LogForward != nil {
			w := math.Inf(-1)
			if one.LogProbTree != nil {
				w = *one.LogProbTree + *one.LogBackward - *one.LogForward
			}
			logW = append(logW, w)
		}
		one.LogForward, one.LogBackward = nil, nil // of one of the trajectories to the tree
		if _, ok := at[one.Tree]; !ok {
			at[one.Tree] = len(out.Trees)
			out.Trees = append(out.Trees, counted{parseJSON: one.parseJSON})
		}
		out.Trees[at[one.Tree]].Count++
	}
	slices.SortStableFunc(out.Trees, func(a, b counted) int { return cmp.Compare(b.Count, a.Count) })
	if logW != nil {
		if e := gfn.EstimateLogZ(logW); !math.IsInf(e.LogZ, 0) && !math.IsNaN(e.LogZ) {
			out.ESS, out.LogProb = &e.ESS, &e.LogZ
		}
	}
	return out, nil
}
