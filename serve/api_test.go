package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/serve"
)

// printed runs a command with a text on standard input and returns what it prints.
func printed(t *testing.T, in string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte(in), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old := os.Stdin
	os.Stdin = f
	defer func() { os.Stdin = old }()
	var out, errOut bytes.Buffer
	if code := program.Execute(args, &out, &errOut); code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, errOut.String())
	}
	return out.String()
}

// sentencesOf are sentences that the tiny grammar knows.
func sentencesOf(t *testing.T, url string) []string {
	t.Helper()
	about := ask[struct{ Examples []string }](t, url+"/api/about", `{"run":"english"}`)
	if len(about.Examples) < 2 {
		t.Fatalf("examples: %q", about.Examples)
	}
	return about.Examples
}

func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// Answers are those of the commands.
func TestAnswersOfGrammars(t *testing.T) {
	runs := runsOf(t)
	s := start(t, serve.Options{Dir: runs})
	sentences := sentencesOf(t, s.URL)
	in, dir := strings.Join(sentences, "\n")+"\n", filepath.Join(runs, "english")
	for _, decode := range []string{"viterbi", "mbr", "sample", "gfn", "gfn-mbr"} {
		got := ask[struct{ Trees []json.RawMessage }](t, s.URL+"/api/parse",
			fmt.Sprintf(`{"run":"english","sentences":%s,"decode":%q,"seed":3}`, asJSON(sentences), decode))
		want := strings.Split(strings.TrimSpace(printed(t, in, "parse", dir, "--json", "--decode", decode, "--seed", "3")), "\n")
		for i := range want {
			if string(got.Trees[i]) != want[i] {
				t.Errorf("%s of %q: %s, the command says %s", decode, sentences[i], got.Trees[i], want[i])
			}
		}
	}
	logs := ask[struct {
		LogProbs []json.RawMessage `json:"log_probs"`
	}](t, s.URL+"/api/inside", fmt.Sprintf(`{"run":"english","sentences":%s}`, asJSON(sentences)))
	for i, want := range strings.Fields(printed(t, in, "inside", dir)) {
		if string(logs.LogProbs[i]) != want {
			t.Errorf("log p(%q) = %s, the command says %s", sentences[i], logs.LogProbs[i], want)
		}
	}
	// Samples are what the command draws of the same sentence on many lines.
	drawn := ask[struct {
		Samples []struct {
			Trees []struct {
				Tree  string
				Count int
			}
		}
	}](t, s.URL+"/api/sample", fmt.Sprintf(`{"run":"english","sentences":[%q],"count":40,"seed":5}`, sentences[0]))
	want, got := map[string]int{}, map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(printed(t, strings.Repeat(sentences[0]+"\n", 40), "parse", dir, "--decode", "sample", "--seed", "5")), "\n") {
		want[line]++
	}
	for _, one := range drawn.Samples[0].Trees {
		got[one.Tree] += one.Count
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("samples %v, the command draws %v", got, want)
	}
}

func TestAnswersOfImages(t *testing.T) {
	runs := runsOf(t)
	s := start(t, serve.Options{Dir: runs})
	dir := filepath.Join(runs, "digits")
	img := image.NewGray(image.Rect(0, 0, 28, 28))
	pixels := make([]float64, 28*28)
	for i := range pixels {
		if x, y := i%28, i/28; x > 8 && x < 20 && (y < 8 || x > 14) {
			pixels[i] = 1
			img.SetGray(x, y, color.Gray{255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "seven.png")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	text := func(codes [][]int) string {
		var lines []string
		for _, z := range codes {
			lines = append(lines, strings.Trim(fmt.Sprint(z), "[]"))
		}
		return strings.Join(lines, "\n") + "\n"
	}
	type answer struct{ Codes [][]int }
	greedy := ask[answer](t, s.URL+"/api/encode", fmt.Sprintf(`{"run":"digits","images":[%s]}`, asJSON(pixels)))
	if want := printed(t, "", "encode", dir, path); text(greedy.Codes) != want {
		t.Errorf("codes %q, the command says %q", text(greedy.Codes), want)
	}
	drawn := ask[answer](t, s.URL+"/api/encode", fmt.Sprintf(`{"run":"digits","images":[%s],"draw":true,"seed":7}`, asJSON(pixels)))
	if want := printed(t, "", "encode", dir, path, "--draw", "--seed", "7"); text(drawn.Codes) != want {
		t.Errorf("drawn codes %q, the command says %q", text(drawn.Codes), want)
	}
	prior := ask[answer](t, s.URL+"/api/sample", `{"run":"digits","count":5,"seed":2}`)
	if want := printed(t, "", "sample", dir, "--count", "5", "--seed", "2"); text(prior.Codes) != want {
		t.Errorf("samples %q, the command says %q", text(prior.Codes), want)
	}
	type choice struct {
		Codes   []int
		Choices [][]float64
		LogQ    float64 `json:"log_q"`
	}
	chosen := ask[choice](t, s.URL+"/api/choose", fmt.Sprintf(`{"run":"digits","image":%s}`, asJSON(pixels)))
	for i, row := range chosen.Choices {
		sum, best := 0.0, 0
		for k, p := range row {
			if sum += p; p > row[best] {
				best = k
			}
		}
		if sum < 1-1e-5 || sum > 1+1e-5 || best != chosen.Codes[i] || greedy.Codes[0][i] != best {
			t.Errorf("position %d: code %d of %v, which add up to %v", i, chosen.Codes[i], row, sum)
		}
	}
}

// The description says what there is.
func TestOpenAPI(t *testing.T) {
	s := start(t, serve.Options{Dir: t.TempDir()})
	_, _, text := get(t, s.URL+"/api/openapi.json")
	var d struct {
		OpenAPI string
		Paths   map[string]map[string]struct{ Responses map[string]any }
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	for path, method := range map[string]string{
		"/api/runs": "get", "/api/status": "get", "/api/events": "get", "/api/openapi.json": "get", "/healthz": "get", "/metrics": "get", "/api/curves": "post",
		"/api/about": "post", "/api/parse": "post", "/api/inside": "post", "/api/sample": "post", "/api/encode": "post", "/api/decode": "post", "/api/chart": "post",
		"/api/steps": "post", "/api/rules": "post", "/api/choose": "post", "/api/weigh": "post", "/api/posterior": "post", "/api/diagnose": "post",
	} {
		if d.Paths[path][method].Responses["200"] == nil {
			t.Errorf("%s %s is not described", method, path)
		}
		delete(d.Paths, path)
	}
	for path := range d.Paths {
		t.Errorf("%s is described; what is it?", path)
	}
	if !strings.HasPrefix(d.OpenAPI, "3.1") {
		t.Error(d.OpenAPI)
	}
}

// Whatever is refused has a status that the description has, and its form.
func TestDescribedErrors(t *testing.T) {
	const token = "a token of some length"
	s := start(t, serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{&fake{}}, Token: token, Bytes: 1000})
	_, _, text := get(t, s.URL+"/api/openapi.json", "Authorization", "Bearer "+token)
	var d struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	try := func(status int, method, path, body string, headers ...string) {
		t.Helper()
		r, err := http.NewRequest(strings.ToUpper(method), s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var failure struct{ Error struct{ Status int } }
		if err := json.NewDecoder(answer.Body).Decode(&failure); err != nil || answer.StatusCode != status || failure.Error.Status != status {
			t.Errorf("%s %s %s: status %d, not %d; %v %v", method, path, body, answer.StatusCode, status, failure, err)
		}
		path, _, _ = strings.Cut(path, "?")
		if d.Paths[path][method].Responses[fmt.Sprint(status)] == nil {
			t.Errorf("%s %s: status %d is not described", method, path, status)
		}
	}
	for path, methods := range d.Paths {
		for method := range methods {
			if path == "/healthz" {
				continue
			}
			try(401, method, path, "{}", "Authorization", "Bearer another")
			try(403, method, path, "{}", "Origin", "https://elsewhere.example")
			if method == "get" {
				continue
			}
			try(400, method, path, "[")
			if path != "/api/curves" {
				try(413, method, path, strings.Repeat(" ", 2000))
				try(415, method, path, "{}", "Content-Type", "text/plain")
				try(404, method, path, `{"run":"none"}`)
			}
		}
	}
	try(400, "get", "/api/runs?q=a<b", "")
	try(500, "post", "/api/double", `{"run":"a","n":13}`)
	try(413, "post", "/api/curves", strings.Repeat(" ", 1<<20+1))
}

// Bad requests get one line and a status; none is a mistake of the program.
func TestBadRequests(t *testing.T) {
	s := start(t, serve.Options{Dir: runsOf(t), Bytes: 1 << 16, Items: 100, Log: func(line string) { t.Error("logged: ", line) }})
	for _, one := range []struct {
		path, body string
		status     int
	}{
		{"parse", `{`, 400}, {"parse", `[]`, 400}, {"parse", `null`, 404}, {"parse", `{"run":3}`, 400},
		{"parse", `{"run":"english","sentences":["a b"],"decode":"viterby"}`, 400},
		{"parse", `{"run":"english","sentences":["a b"],"color":1}`, 400},
		{"parse", `{"run":"english","sentences":["a\nb"]}`, 400},
		{"parse", `{"run":"mixture","sentences":["a b"]}`, 404},
		{"parse", `{"run":"nobody","sentences":["a b"]}`, 404},
		{"parse", `{"run":"../english","sentences":["a b"]}`, 404},
		{"parse", `{"run":"/etc","sentences":["a b"]}`, 404},
		{"nothing", `{"run":"english"}`, 404},
		{"sample", `{"run":"english","sentences":["a b"],"count":0}`, 400},
		{"sample", `{"run":"english","sentences":["a b"],"count":101}`, 413},
		{"parse", `{"run":"english","sentences":[` + strings.Repeat(`"a b",`, 100) + `"a b"]}`, 413},
		{"parse", `{"run":"english","sentences":["` + strings.Repeat("a ", 1<<16) + `"]}`, 413},
		{"chart", `{"run":"english","sentence":""}`, 400}, {"chart", `{"run":"english","sentence":"blorb blorb"}`, 400},
		{"rules", `{"run":"english","symbol":"nobody"}`, 400},
		{"encode", `{"run":"digits","images":[[1,2]]}`, 400}, {"decode", `{"run":"digits","codes":[[0,0,0,300]]}`, 400},
		{"decode", `{"run":"digits","codes":[[0]]}`, 400}, {"choose", `{"run":"digits","image":[]}`, 400},
		{"posterior", `{"run":"mixture","points":[]}`, 400}, {"posterior", `{"run":"mixture","points":[[1e9,0]]}`, 400},
		{"diagnose", `{"run":"mixture","samples":100000}`, 400},
	} {
		status, text := post(t, s.URL+"/api/"+one.path, one.body)
		var e struct {
			Error struct {
				Status  int
				Message string
			}
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || status != one.status || e.Error.Status != status || e.Error.Message == "" ||
			strings.Contains(e.Error.Message, "\n") {
			t.Errorf("%s %.80s: status %d, want %d: %s", one.path, one.body, status, one.status, text)
		}
	}
	// Sentences that cannot be used do not spoil others.
	good := sentencesOf(t, s.URL)[0]
	got := ask[struct {
		Trees []struct{ Tree, Error string }
	}](t, s.URL+"/api/parse", fmt.Sprintf(`{"run":"english","sentences":["",%q,"blorb blorb"]}`, good))
	if len(got.Trees) != 3 || got.Trees[0].Error == "" || got.Trees[1].Tree == "" || got.Trees[2].Error == "" {
		t.Errorf("%+v", got)
	}
}
