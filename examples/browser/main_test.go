//go:build !js

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/gfnem/gfnem/badinput"
)

var (
	inBrowser = flag.Bool("browser", false, "build the program and train in a headless Chromium, which takes minutes the first time")
	shot      = flag.String("shot", "", "a file for a picture of the page")
)

// The whole of it: the program is built, a browser trains, and the means that it shows are the true ones.
//
//	go test ./examples/browser -browser -v -timeout 30m
func TestTrainInBrowser(t *testing.T) {
	if !*inBrowser {
		t.Skip("-browser is not given")
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no Chromium here")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	defer cancel()
	addr, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", func(a string) { addr <- a }) }()
	var at string
	select {
	case at = <-addr:
	case err := <-ended:
		t.Fatal(err)
	}
	page := open(t, ctx, path)
	var text, means string
	var png []byte
	if err := chromedp.Run(page, cdplog.Enable(), chromedp.Navigate("http://"+at), chromedp.Click("#start"),
		chromedp.WaitVisible("html[data-done]", chromedp.ByQuery), chromedp.Text("#said", &text), chromedp.FullScreenshot(&png, 100),
		chromedp.Evaluate(`JSON.stringify([...document.querySelectorAll(".mean")].map((c) => [Number(c.getAttribute("cx")), Number(c.getAttribute("cy"))]))`, &means),
	); err != nil {
		t.Fatal(err)
	}
	t.Log(text, means)
	if *shot != "" {
		if err := os.WriteFile(*shot, png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var found [][2]float64
	if err := json.Unmarshal([]byte(means), &found); err != nil || len(found) != 4 {
		t.Fatal(err, means)
	}
	for _, corner := range [][2]float64{{1, 1}, {1, -1}, {-1, 1}, {-1, -1}} { // the true means, at √2 of the middle
		near := math.Inf(1)
		for _, m := range found {
			near = min(near, math.Hypot((m[0]-150)/150*3.4-math.Sqrt2*corner[0], (150-m[1])/150*3.4-math.Sqrt2*corner[1]))
		}
		if near > 0.1 {
			t.Errorf("no mean is near %v: the nearest is off by %.2g", corner, near)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// open opens an empty page in a browser, of which errors fail the test.
func open(t *testing.T, ctx context.Context, path string) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(800, 1100),
		chromedp.WSURLReadTimeout(3*time.Minute))
	all, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	page, leave := chromedp.NewContext(all)
	t.Cleanup(leave)
	chromedp.ListenTarget(page, func(event any) {
		switch e := event.(type) {
		case *cdpruntime.EventExceptionThrown:
			t.Error(e.ExceptionDetails.Error())
		case *cdplog.EventEntryAdded:
			t.Errorf("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	})
	return page
}

// A program that ends badly, or cannot go on, says so on the page.
func TestWrong(t *testing.T) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no Chromium here")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	page := open(t, ctx, path)
	var program bytes.Buffer
	z := gzip.NewWriter(&program)
	if _, err := z.Write([]byte("\x00asm\x01\x00\x00\x00")); err != nil { // an empty one
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for does, want := range map[string]string{
		"this.exit(2)":                   "The program has ended with exit code 2.",
		`throw new Error("unreachable")`: "Error: unreachable",
	} {
		s := httptest.NewServer(handler(built{program.Bytes(), []byte("class Go { importObject = {}; async run() { " + does + " } }")}))
		t.Cleanup(s.Close)
		if err := chromedp.Run(page, cdplog.Enable(), chromedp.Navigate(s.URL), chromedp.Click("#start"),
			chromedp.Poll(fmt.Sprintf(`document.getElementById("said").textContent == %q`, want), nil, chromedp.WithPollingTimeout(3*time.Minute)),
		); err != nil {
			t.Errorf("%s: %v", does, err)
		}
	}
}

// An address that cannot be listened at is said before anything is built, and an interrupt while it is built is no error.
func TestListens(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, listen := range []string{taken.Addr().String(), "127.0.0.1:99999", "0.0.0.0:0"} {
		if err := run(t.Context(), listen, nil); !errors.As(err, new(*badinput.Error)) {
			t.Errorf("--listen %s: %v", listen, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, "127.0.0.1:0", nil); err != nil {
		t.Error(err)
	}
}

// Only this machine is served, and scripts of the page alone run.
func TestServes(t *testing.T) {
	for _, listen := range []string{":0", "0.0.0.0:0", "example.org:80", "127.0.0.1"} {
		if err := run(t.Context(), listen, nil); err == nil {
			t.Errorf("--listen %s is taken", listen)
		}
	}
	h := handler(built{program: []byte("program"), script: []byte("script")})
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/page.js": "text/javascript; charset=utf-8", "/worker.js": "text/javascript; charset=utf-8",
		"/wasm_exec.js": "text/javascript; charset=utf-8", "/train.wasm": "application/wasm",
	} {
		w := httptest.NewRecorder()
		r, err := http.NewRequest(http.MethodGet, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != kind || w.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("%s: status %d, %v", path, w.Code, w.Header())
		}
	}
}
