package serve_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/gfnem/gfnem/run"
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

// The curve of a run that is being trained grows, without anybody doing anything.
func TestLiveCurve(t *testing.T) {
	dir := t.TempDir()
	r, err := run.Create(filepath.Join(dir, "live"), run.Options{Task: "mixture", Config: "seed = 0\n"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	step := uint64(0)
	log := func(n int) {
		for range n {
			step++
			if err := r.Log(step, map[string]float64{"e/loss": 100 / float64(step), "m/accepted": 0.5}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := r.Load(); !errors.Is(err, run.ErrNoCheckpoint) {
		t.Fatal(err)
	}
	log(20)
	s := start(t, serve.Options{Dir: dir})
	b := chromium(t, s.URL)
	b.look(1280, "light")
	b.open("/?metric=e%2Floss")
	said := `document.getElementById("chart").getAttribute("aria-label")`
	b.until("the first points", said+`?.includes("ends at 5")`)
	log(30)
	b.until("more points", said+`?.includes("ends at 2")`)
	log(50)
	b.until("even more points", said+`?.includes("ends at 1")`)
	b.until("that it runs", `document.querySelector("td.running")`)
	b.shoot("live")
	b.open(runPath("live"))
	b.until("curves of a run", `document.querySelectorAll("#curves canvas").length == 2`)
	b.clean()
}

// Two runs are chosen and overlaid; groups have a band; a filter leaves some.
func TestOverlay(t *testing.T) {
	dir := *served
	if dir == "" {
		dir = filepath.Join(t.TempDir(), "runs")
		*manyRuns, *manyPoints, *manyKeep = 6, 300, ""
		os.Rename(makeMany(t), dir)
	}
	s := start(t, serve.Options{Dir: dir})
	b := chromium(t, s.URL)
	b.look(1280, "light")
	b.open("/?q=" + url.QueryEscape("mixture") + "&metric=" + url.QueryEscape(overlaid()))
	drawn := func(n int) {
		b.t.Helper()
		b.until(fmt.Sprint(n, " curves"), fmt.Sprintf(`document.documentElement.dataset.drawn == %d`, n))
	}
	b.until("curves", `document.documentElement.dataset.drawn > 5`)
	b.do(chromedp.Click(`tbody tr:nth-child(1) input`, chromedp.ByQuery), chromedp.Click(`tbody tr:nth-child(3) input`, chromedp.ByQuery))
	drawn(2)
	if text := eval[string](b, `document.getElementById("legend").children.length + ""`); text != "2" {
		t.Errorf("%s names in the legend", text)
	}
	b.shoot("overlay")
	b.do(chromedp.Click(`#none`, chromedp.ByQuery))
	b.until("all curves", `document.documentElement.dataset.drawn > 5`)
	group := eval[string](b, `[...document.getElementById("group").options].map((o) => o.value).find((v) => v.includes("."))`)
	b.do(chromedp.SetValue(`#group`, group, chromedp.ByQuery), chromedp.Evaluate(`document.getElementById("group").dispatchEvent(new Event("input"))`, nil))
	drawn(3)
	b.shoot("groups")
	b.shoot("parallel", "#sweep")
	// The lines are one stop of the tab key, and arrow keys go from one to the next, which is told.
	if got := eval[string](b, `(() => {
		const lines = [...document.querySelectorAll("#parallel a")];
		lines[0].focus();
		document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
		const stops = lines.filter((l) => l.tabIndex === 0);
		const told = document.getElementById("line").textContent === lines[1].getAttribute("aria-label");
		const is = document.activeElement === lines[1] && stops.length === 1 && stops[0] === lines[1] && told;
		document.activeElement.blur();
		return String(is && lines.length > 2);
	})()`); got != "true" {
		t.Error("parallel coordinates do not go by keyboard")
	}
	b.do(chromedp.SendKeys(`#query`, " seed=0", chromedp.ByQuery))
	b.until("fewer rows", `document.querySelectorAll("#runs tbody tr").length < 6`)
	b.look(390, "dark")
	b.fits("the list of runs")
	b.clean()
}

// overlaid is a metric that the runs of TestOverlay have.
func overlaid() string {
	if *served != "" {
		return "e/loss"
	}
	return "m/loss"
}

// A sentence is typed, and its tree is shown; what the GFlowNet builds is stepped through.
func TestParsePage(t *testing.T) {
	s := start(t, serve.Options{Dir: runsOf(t)})
	sentences := sentencesOf(t, s.URL)
	b := chromium(t, s.URL)
	b.look(1280, "light")
	b.open(runPath("english"))
	b.until("the first tree", `document.querySelector("#out-steps svg")`)
	typed := sentences[1]
	if *served != "" {
		typed = "the old man slept in the house"
	}
	b.until("the rest of the page", `document.documentElement.dataset.model`)
	b.do(b.clear("#sentence"), chromedp.SendKeys("#sentence", typed+"\r", chromedp.ByQuery))
	words := `[...document.querySelectorAll("#out-tree svg text[font-weight]")].map((n) => n.textContent).join(" ")`
	b.until("its tree", fmt.Sprintf("%s === %q && !document.querySelector('.busy')", words, typed))
	tree := ask[struct{ Trees []struct{ Tree string } }](t, s.URL+"/api/parse", fmt.Sprintf(`{"run":"english","sentences":[%q]}`, typed)).Trees[0].Tree
	if got := eval[string](b, `document.querySelector("#out-tree svg").getAttribute("aria-label")`); got != tree {
		t.Errorf("the page shows %s, not %s", got, tree)
	}
	n := len(strings.Fields(typed))
	if got := eval[int](b, `document.querySelectorAll("#out-tree svg path").length`); got != 2*(n-1) {
		t.Errorf("%d lines in a tree over %d words", got, n)
	}
	for _, part := range []string{"chart", "steps"} {
		b.until("words of "+part, fmt.Sprintf(`[...document.querySelectorAll("#out-%s svg text[font-weight]")].map((n) => n.textContent).join(" ") === %q`, part, typed))
	}
	b.shoot("tree", "#out-tree")
	b.shoot("spans", "#out-chart")
	b.shoot("draws", "#out-samples")
	for step := range n - 1 {
		if step == 2 {
			b.shoot("steps", "#out-steps")
		}
		b.do(chromedp.Click("#next-step", chromedp.ByQuery))
	}
	b.until("the last step", `document.querySelector("#out-steps .note").textContent.includes("whole")`)
	b.do(b.clear("#sentence"), chromedp.SendKeys("#sentence", strings.Fields(typed)[0]+"\r", chromedp.ByQuery))
	b.until("what is wrong with one word", `document.getElementById("out-tree").textContent.includes("one word")`)
	b.do(chromedp.SetValue("#symbol", "NT-2", chromedp.ByQuery), chromedp.Evaluate(`document.getElementById("symbol").dispatchEvent(new Event("change"))`, nil))
	b.until("rules", `document.querySelector("#rules .bars").textContent.includes("NT-2 →")`)
	b.clean()
}

// A digit is drawn with the mouse and comes back decoded; a code is changed; the prior is sampled.
func TestDrawPage(t *testing.T) {
	s := start(t, serve.Options{Dir: runsOf(t)})
	b := chromium(t, s.URL)
	b.look(1280, "light")
	b.open(runPath("digits"))
	b.until("the drawing area", `document.documentElement.dataset.model`)
	var box map[string]float64
	b.do(chromedp.Evaluate(`(() => { const r = document.getElementById("draw").getBoundingClientRect(); return {x: r.x, y: r.y, w: r.width, h: r.height}; })()`, &box))
	at := func(kind input.MouseType, x, y float64) chromedp.Action {
		return input.DispatchMouseEvent(kind, box["x"]+x*box["w"], box["y"]+y*box["h"]).WithButton(input.Left).WithClickCount(1)
	}
	b.do(at(input.MousePressed, .3, .25), at(input.MouseMoved, .5, .24), at(input.MouseMoved, .7, .25), at(input.MouseMoved, .6, .5),
		at(input.MouseMoved, .48, .82), at(input.MouseReleased, .48, .82))
	ready := `document.getElementById("codes").dataset.ready === "1"`
	b.until("codes", ready)
	ink := `document.getElementById("decoded").toDataURL()`
	blank := eval[string](b, `(() => { const c = document.createElement("canvas"); c.width = c.height = 28; return c.toDataURL(); })()`)
	before := eval[string](b, ink)
	if before == blank {
		t.Error("nothing was decoded")
	}
	codes := `[...document.querySelectorAll("#codes .number")].map((n) => n.textContent).join(" ")`
	old := eval[string](b, codes)
	b.shoot("digit", "#digits")
	b.do(chromedp.Click("#codes button:nth-child(1)", chromedp.ByQuery), chromedp.Click("#choices button[aria-pressed=false]", chromedp.ByQuery))
	b.until("another code", fmt.Sprintf("%s !== %q", codes, old))
	b.until("another image", fmt.Sprintf("%s !== %q", ink, before))
	b.shoot("code-changed", "#digits")
	b.do(chromedp.Click("#sample", chromedp.ByQuery))
	b.until("samples of the prior", `document.querySelectorAll("#prior-samples canvas").length === 24`)
	b.shoot("prior", "#prior")
	b.do(chromedp.Focus("#draw", chromedp.ByQuery), chromedp.SendKeys("#draw", " "+kb.ArrowDown+" \r", chromedp.ByQuery))
	b.until("codes of what the keyboard drew", ready)
	const named = `(() => { const d = document.getElementById("draw");
		return d.getAttribute("role") + ", " + document.getElementById(d.getAttribute("aria-describedby")).textContent + document.getElementById("draw-at").textContent; })()`
	if got := eval[string](b, named); !strings.HasPrefix(got, "application, Draw with") || !strings.Contains(got, "row 16, column 15, inked") {
		t.Errorf("the drawing area is, for a screen reader: %s", got)
	}
	b.clean()
}

// A click adds a point, and its posterior is shown three times; a model is measured.
func TestMixturePage(t *testing.T) {
	s := start(t, serve.Options{Dir: runsOf(t)})
	b := chromium(t, s.URL)
	b.look(1280, "light")
	b.open(runPath("mixture"))
	b.until("the planes", `document.documentElement.dataset.model`)
	b.do(chromedp.Click("svg.plane", chromedp.ByQuery))
	b.until("three posteriors", `document.querySelectorAll("#posterior table").length === 3`)
	b.do(chromedp.SendKeys("svg.plane", kb.ArrowLeft+kb.ArrowLeft+kb.ArrowUp+"\r", chromedp.ByQuery))
	b.until("six posteriors", `document.querySelectorAll("#posterior table").length === 6`)
	b.shoot("mixture-means", "#means")
	b.shoot("mixture-posterior", "#responsibilities")
	b.do(chromedp.Click("#diagnose", chromedp.ByQuery))
	b.until("a diagnosis", `document.querySelector("#diagnosis").textContent.includes("worth")`)
	b.shoot("diagnosis", "#diagnosis")
	// Play is a pause while it plays, and the slider begins anew.
	if got := eval[string](b, `(() => {
		const play = document.getElementById("play"), range = document.getElementById("iteration");
		const out = [play.textContent];
		play.click();
		out.push(play.textContent, range.value);
		play.click();
		out.push(play.textContent);
		return out.join(" ");
	})()`); got != "Play Pause 0 Play" {
		t.Errorf("the button Play: %s", got)
	}
	b.clean()
}
