package serve_test

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("serve.shots", "", "a folder to write pictures of pages to")

// browser is a headless Chromium with one page, which notes what must not happen: errors, requests to other hosts.
type browser struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu    sync.Mutex
	wrong []string
}

// chromium starts one, or skips the test where there is none.
func chromium(t *testing.T, base string) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no Chromium here to drive the page with")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(3*time.Minute),
	)
	all, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(all)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, base: base}
	chromedp.ListenTarget(ctx, b.listen)
	b.do(network.Enable(), cdplog.Enable())
	return b
}

// listen notes errors and requests to other hosts.
func (b *browser) listen(event any) {
	switch e := event.(type) {
	case *cdpruntime.EventConsoleAPICalled:
		if e.Type == cdpruntime.APITypeError || e.Type == cdpruntime.APITypeWarning {
			for _, a := range e.Args {
				b.note("console: " + string(a.Value) + a.Description)
			}
		}
	case *cdpruntime.EventExceptionThrown:
		b.note("exception: " + e.ExceptionDetails.Error())
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError || e.Entry.Level == cdplog.LevelWarning {
			b.note(fmt.Sprintf("log: %s %s", e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, b.base) && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "about:") {
			b.note("a request to another host: " + u)
		}
	}
}

func (b *browser) note(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, text)
}

// clean fails the test if anything was noted.
func (b *browser) clean() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.wrong {
		b.t.Error(text)
	}
	b.wrong = nil
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.t.Fatal(err, b.wrong)
	}
}

// look sets how the page is looked at.
func (b *browser) look(width int64, scheme string) {
	b.t.Helper()
	b.do(
		emulation.SetDeviceMetricsOverride(width, 900, 1, width < 500),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
	)
}

func (b *browser) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

// clear empties a field.
func (b *browser) clear(selector string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q).value = ''", selector), nil)
}

// eval returns the value of an expression.
func eval[T any](b *browser, expression string) (out T) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, &out))
	return out
}

// until waits for an expression to be true.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for !eval[bool](b, "!!("+expression+")") {
		if time.Now().After(end) {
			text := eval[string](b, `document.getElementById("problem")?.textContent ?? ""`)
			b.shoot("failed")
			b.clean()
			b.t.Fatalf("%s: not in two minutes; %s", what, text)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// fits fails the test if the page is wider than the window.
func (b *browser) fits(what string) {
	b.t.Helper()
	if over := eval[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
		b.t.Errorf("%s is %d pixels wider than the window", what, over)
	}
}

// shoot takes a picture of the window, or of a part of the page, if that is asked for.
func (b *browser) shoot(name string, part ...string) {
	b.t.Helper()
	if *shots == "" {
		return
	}
	var png []byte
	if len(part) > 0 {
		b.do(chromedp.Screenshot(part[0], &png, chromedp.ByQuery))
	} else {
		b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
			png, err = page.CaptureScreenshot().Do(ctx)
			return err
		}))
	}
	if err := os.MkdirAll(*shots, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func runPath(name string) string { return "/run?name=" + url.QueryEscape(name) }
