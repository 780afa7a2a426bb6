package serve_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/cli"
	"github.com/gfnem/gfnem/grammar/grammarcmd"
	"github.com/gfnem/gfnem/mixture"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/serve"
	"github.com/gfnem/gfnem/vae/vaecmd"
)

var served = flag.String("serve.runs", "", "a folder of runs to drive the page with, instead of tiny ones: mixture, english, digits")

var program = cli.Program{Name: "gfnem", Tasks: []run.Task{mixture.Task{}, grammarcmd.Task{}, vaecmd.Task{}}}

// tiny trains a run of each task once, for all tests: they only read it.
var tiny = sync.OnceValues(func() (string, error) {
	if *served != "" {
		return *served, nil
	}
	dir, err := os.MkdirTemp("", "serve")
	if err != nil {
		return "", err
	}
	for name, args := range map[string][]string{
		"mixture": {"mixture"},
		"english": {"grammar", "--method", "gfn", "--set", "updates=20"},
		"digits":  {"vae", "--method", "gfn-gd-prior"},
	} {
		config := "../cmd/gfnem/testdata/tiny/" + args[0] + ".toml"
		args = append([]string{"train", "--config", config, "--out", filepath.Join(dir, name)}, args...)
		var out bytes.Buffer
		if code := program.Execute(args, &out, &out); code != 0 {
			return "", &trainError{name, out.String()}
		}
	}
	return dir, nil
})

type trainError struct{ name, text string }

func (e *trainError) Error() string { return "train " + e.name + ": " + e.text }

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if trained && *served == "" {
		if dir, err := tiny(); err == nil {
			os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

var trained bool

// runsOf returns the folder of the tiny runs.
func runsOf(t testing.TB) string {
	t.Helper()
	trained = true
	dir, err := tiny()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func openBackend() (compute.Backend, error) { return backend.Open("") }

// start serves a folder until the test ends.
func start(t testing.TB, o serve.Options) *httptest.Server {
	t.Helper()
	if o.Tasks == nil {
		o.Tasks = program.Tasks
	}
	o.Backend = openBackend
	if o.Log == nil {
		o.Log = func(line string) { t.Log(line) }
	}
	v, err := serve.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(v.Handler())
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		v.Close()
	})
	return s
}

// post sends JSON and returns the status and the body.
func post(t testing.TB, url string, body string) (int, string) {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return r.StatusCode, string(data)
}

// ask sends JSON and decodes the answer.
func ask[A any](t testing.TB, url, body string) (out A) {
	t.Helper()
	status, text := post(t, url, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s: status %d: %s", url, body, status, text)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
