//go:build !js

// Browser trains the hierarchical mixture in a browser, by the same Go code as the command train mixture, compiled to
// WebAssembly:
//
//	go run ./examples/browser
//
// It builds that code with the Go that runs it, and serves it with a page to this machine alone.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/gfnem/gfnem/badinput"
)

//go:embed page
var page embed.FS

// source is the package that runs in the browser: this one, for another platform.
const source = "github.com/gfnem/gfnem/examples/browser"

// policy lets the page run scripts and programs of ours, and nothing else.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; " +
	"img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func main() {
	listen := flag.String("listen", "127.0.0.1:8081", "address to serve at; port 0 is any that is free")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen, func(addr string) { fmt.Println("http://" + addr) }); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		if errors.As(err, new(*badinput.Error)) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// run serves until the context ends, and says at which address.
func run(ctx context.Context, listen string, at func(addr string)) error {
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return badinput.Errorf("--listen %s: give an address of this machine alone, such as 127.0.0.1:8081", listen)
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return badinput.Errorf("--listen %s: %w", listen, err)
	}
	defer l.Close()
	fmt.Fprintln(os.Stderr, "building the program for the browser, which takes minutes the first time")
	files, err := build(ctx)
	if ctx.Err() != nil {
		return nil
	} else if err != nil {
		return err
	}
	s := &http.Server{Handler: handler(files), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { s.Close() })
	at(l.Addr().String())
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// built is what a browser needs of Go: the program, compressed, and the script of the Go distribution that starts it.
type built struct{ program, script []byte }

// build compiles the program.
func build(ctx context.Context) (out built, err error) {
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "train.wasm")
	goBuild := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", file, source)
	goBuild.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	goBuild.Stderr = os.Stderr
	if err := goBuild.Run(); err != nil {
		return out, fmt.Errorf("go build %s: %w: run this in a folder of the repository", source, err)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return out, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(program); err != nil {
		return out, err
	}
	if err := z.Close(); err != nil {
		return out, err
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return out, fmt.Errorf("go env GOROOT: %w", err)
	}
	out.program = b.Bytes()
	out.script, err = os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	return out, err
}

// handler serves the page and what was built.
func handler(files built) http.Handler {
	static, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // it is in the program
	}
	m := http.NewServeMux()
	m.Handle("GET /", http.FileServerFS(static))
	m.HandleFunc("GET /wasm_exec.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Write(files.script)
	})
	m.HandleFunc("GET /train.wasm", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/wasm")
		w.Header().Set("Content-Encoding", "gzip") // all browsers that run it take that
		w.Write(files.program)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache")
		m.ServeHTTP(w, r)
	})
}
