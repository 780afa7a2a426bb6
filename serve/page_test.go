package serve_test

import (
	"testing"

	"github.com/gfnem/gfnem/serve"
)

// looks are how every page is looked at.
var looks = []struct {
	width  int64
	scheme string
	name   string
}{{1280, "light", "wide"}, {1280, "dark", "wide-dark"}, {390, "light", "phone"}, {390, "dark", "phone-dark"}}

// All pages, at all widths and in light and dark: no error, nothing wider than the window, no request elsewhere.
func TestPages(t *testing.T) {
	s := start(t, serve.Options{Dir: runsOf(t)})
	b := chromium(t, s.URL)
	for _, one := range []struct{ name, path, ready string }{
		{"home", "/", `document.documentElement.dataset.drawn > 0`},
		{"grammar", runPath("english"), `document.documentElement.dataset.model && document.querySelector("#out-steps svg")`},
		{"digits", runPath("digits"), `document.documentElement.dataset.model`},
		{"mixture", runPath("mixture"), `document.documentElement.dataset.model`},
	} {
		for _, l := range looks {
			b.look(l.width, l.scheme)
			b.open(one.path)
			b.until(one.name, one.ready)
			b.until("curves of "+one.name, `document.documentElement.dataset.drawn > 0`)
			b.fits(one.name)
			b.shoot(one.name + "-" + l.name)
		}
	}
	b.clean()
}
