package serve

import (
	"strings"
	"testing"
)

// Every path of the API is described.
func TestHandlersAreDescribed(t *testing.T) {
	s := &server{stats: newStats()}
	paths := s.described()
	for pattern := range s.handlers() {
		method, path, ok := strings.Cut(pattern, " ")
		if !ok || strings.Contains(path, "{question}") || !strings.HasPrefix(path, "/api/") {
			continue
		}
		if one, ok := paths[path].(object); !ok || one[strings.ToLower(method)] == nil {
			t.Errorf("%s is not described", pattern)
		}
	}
}
