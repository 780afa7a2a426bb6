package main

import (
	"fmt"
	"math"
	"os"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/run"
)

// byNetwork says whether a decoder asks a GFlowNet.
func byNetwork(d induce.Decode) bool { return d == induce.GFNSample || d == induce.GFNMBR }

// openNetworkStream is openStream for decoders that ask the GFlowNet of a run.
func openNetworkStream(c console, arg grammarArg, flags sentenceFlags) (*stream, error) {
	info, err := os.Stat(arg.Grammar)
	if err != nil {
		return nil, badinput.Errorf("%s is not a run folder: %w", arg.Grammar, err)
	}
	if !info.IsDir() {
		return nil, badinput.Errorf("%s is a file with a grammar and has no GFlowNet: "+
			"give the folder of a run of \"gfnem train grammar --method gfn\"", arg.Grammar)
	}
	r, err := run.Read(arg.Grammar)
	if err != nil {
		return nil, err
	}
	b, err := backend.Open(arg.Backend)
	if err != nil {
		return nil, badinput.Errorf("%w", err)
	}
	g, net, warnings, err := induce.ReadGFlowNet(b, r)
	for _, w := range warnings {
		fmt.Fprintln(c.err, "warning:", w)
	}
	if err != nil {
		return nil, err
	}
	s, err := newStream(c, b, g, flags)
	if err != nil {
		net.Close()
		return nil, err
	}
	s.network = net
	if most := net.Longest(); most < s.reader.limit {
		s.reader.limit, s.reader.reason = most, "the GFlowNet has learned no longer ones, other decoders read them"
	}
	return s, nil
}

// parseByNetwork answers sentences of about the same length with trees of the GFlowNet.
func (p *parsing) parseByNetwork(group []*sentence) error {
	ids := idsOf(group)
	found, err := p.network.Parse(ids, p.decode, p.nextSeed())
	if err != nil {
		return err
	}
	logX, logTree := make([]float64, len(ids)), make([]float64, len(ids))
	if p.json {
		if logX, err = p.parser.LogLikelihoods(ids); err != nil {
			return err
		}
	}
	if p.json && p.decode == induce.GFNSample {
		trees := make([]*grammar.Tree, len(found))
		for i, f := range found {
			trees[i] = f.Tree
		}
		if logTree, err = p.parser.LogTrees(ids, trees); err != nil {
			return err
		}
	}
	for i, s := range group {
		if math.IsInf(logX[i], -1) {
			s.complain("without a tree", "the grammar has no tree for this sentence")
			continue
		}
		f := &found[i]
		out := parseJSON{LogProb: logX[i]}
		if p.decode == induce.GFNMBR {
			f.Tree.Tags = make([]int, f.Tree.Words())
			out.ExpectedSpans = &f.Spans
		} else {
			out.LogForward, out.LogBackward = &f.LogForward, &f.LogBack
			if !math.IsInf(logTree[i], -1) { // a tree that the grammar does not have can be drawn
				out.LogProbTree = &logTree[i]
			}
		}
		s.answer = p.format(s, f.Tree, out)
	}
	return nil
}
