package catalog

import (
	"strings"
	"testing"
)

// A journal that is cut between the look at its size and its reading has nothing more.
func TestCutJournal(t *testing.T) {
	f := Follower{}
	if err := f.pieces(strings.NewReader("{}\n{}\n"), 6, 3, func(lines []byte) { t.Errorf("%q", lines) }); err != nil {
		t.Error(err)
	}
}
