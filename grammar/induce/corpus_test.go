package induce

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/testkit"
)

// What cells of a grid have in common is made of a corpus once, and a corpus that is gone is missed before anything
// else.
func TestShareCorpus(t *testing.T) {
	path := filepath.Join(t.TempDir(), "corpus.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("The dog saw a cat .\nA cat saw the dog .\n", 20)), 0o666); err != nil {
		t.Fatal(err)
	}
	resolve := func(set ...string) *Config {
		c := Task{}.Config("quick").(*Config)
		if err := config.Resolve(c, config.Set(append(set, "data="+path))); err != nil {
			t.Fatal(err)
		}
		return c
	}
	prepare := func(c *Config) *Config {
		if _, err := (Task{}).Prepare(c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := prepare(resolve())
	for _, c := range []struct {
		set   string
		share bool
	}{{"seed=7", true}, {"method=exact", true}, {"max_length=5", false}, {"text.rare=0", false}} {
		got, want := resolve(c.set), prepare(resolve(c.set))
		if got.Share(first) != c.share {
			t.Errorf("%s: shares %v, want %v", c.set, !c.share, c.share)
		}
		if c.share && (got.opened != first.opened || got.MaxLength != want.MaxLength || !got.ofText) {
			t.Errorf("%s: max_length %d, want %d", c.set, got.MaxLength, want.MaxLength)
		}
	}
	late := resolve("seed=8")
	late.Share(first)
	prepare(first)
	if !late.Share(first) { // as from rung to rung of a sweep
		t.Error("what is prepared twice is not shared")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := Task{}.Prepare(resolve())
	testkit.BadInput(t, err, "there is no "+path+": data names a file of sentences or trees, a folder of such files, or a data set")
}
