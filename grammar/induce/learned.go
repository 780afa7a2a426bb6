package induce

import (
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
)

// Exact does exact inference with the grammar as it is.
func (s *Session) Exact() *parse.Exact { return s.exact }

// Network parses with the GFlowNet as it is; nil with other methods.
func (s *Session) Network() *parse.GFlowNet { return s.network }

// Learned returns the grammar as it is.
func (s *Session) Learned() (*grammar.Grammar, error) {
	state, err := s.State()
	if err != nil {
		return nil, err
	}
	return s.table(s.set.Backend, state)
}

// Counts returns the numbers of updates, of the grammar, or of the GFlowNet alone if the grammar is fixed, and of
// iterations.
func (s *Session) Counts() (updates, iterations uint64) { return s.made(), s.loop.State().Iteration }
