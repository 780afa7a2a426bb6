package serve_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/serve"
)

// get sends a request with headers and returns the status, the headers and the body.
func get(t *testing.T, url string, headers ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(body)
}

// What comes from elsewhere is refused.
func TestGuard(t *testing.T) {
	s := start(t, serve.Options{Dir: t.TempDir()})
	for _, one := range []struct {
		headers []string
		status  int
	}{
		{nil, 200},
		{[]string{"Host", "evil.example"}, 403},
		{[]string{"Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Origin", s.URL}, 200},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
	} {
		if status, _, _ := get(t, s.URL+"/api/runs", one.headers...); status != one.status {
			t.Errorf("%q: status %d, want %d", one.headers, status, one.status)
		}
	}
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	if status, _, _ := get(t, s.URL+"/", link...); status != 200 {
		t.Errorf("a link to the page: status %d", status)
	}
	status, h, body := get(t, s.URL+"/")
	if policy := h.Get("Content-Security-Policy"); status != 200 || !strings.Contains(policy, "script-src 'self';") || strings.Contains(policy, "unsafe") {
		t.Errorf("status %d, policy %q", status, policy)
	}
	if strings.Contains(body, "<script>") || strings.Contains(body, "style=") || strings.Contains(body, "://") {
		t.Errorf("the page has something inline, or from elsewhere: %s", body)
	}
	r, err := http.Post(s.URL+"/api/parse", "text/plain", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form: status %d", r.StatusCode)
	}
}

// With a token, every client needs it: as a header, or once in the address, for a cookie.
func TestToken(t *testing.T) {
	const token = "0123456789abcdef"
	s := start(t, serve.Options{Dir: t.TempDir(), Token: token})
	for _, one := range []struct {
		path    string
		headers []string
		status  int
	}{
		{"/", nil, 401}, {"/api/runs", nil, 401}, {"/metrics", nil, 401}, {"/static/page.css", nil, 401}, {"/healthz", nil, 200},
		{"/api/runs", []string{"Authorization", "Bearer " + token}, 200},
		{"/api/runs", []string{"Authorization", "Bearer " + token, "Host", "other.example"}, 200},
		{"/api/runs", []string{"Authorization", "Bearer wrong"}, 401},
		{"/?token=wrong", nil, 401}, {"/?token=" + token, nil, 303},
	} {
		if status, _, _ := get(t, s.URL+one.path, one.headers...); status != one.status {
			t.Errorf("%s %q: status %d, want %d", one.path, one.headers, status, one.status)
		}
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&http.Client{Jar: jar}).Get(s.URL + "/?token=" + token)
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != 200 || r.Request.URL.RawQuery != "" {
		t.Errorf("status %d at %s", r.StatusCode, r.Request.URL)
	}
	for listen, good := range map[string]bool{"127.0.0.1:0": true, "localhost:8080": true, "[::1]:80": true, ":8080": false, "0.0.0.0:80": false, "192.0.2.1:80": false} {
		if err := serve.CheckAddress(listen, ""); (err == nil) != good {
			t.Errorf("%s without a token: %v", listen, err)
		}
		if err := serve.CheckAddress(listen, token); err != nil {
			t.Errorf("%s with a token: %v", listen, err)
		}
	}
	if serve.CheckAddress("127.0.0.1:0", "short") == nil {
		t.Error("a token of five characters is taken")
	}
}

// Names of runs, and reports in their folders, come from anybody.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	name := `<img src=x onerror=alert(1)> & "quotes"`
	r, err := run.Create(filepath.Join(dir, name), run.Options{Task: "<b>task</b>", Config: "note = \"</td><script>alert(2)</script>\"\n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name, "report.html"), []byte("<script>alert(3)</script>"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret.svg")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, name, "means.svg")); err != nil {
		t.Fatal(err)
	}
	s := start(t, serve.Options{Dir: dir})
	escaped := strings.NewReplacer(" ", "%20", "<", "%3C", ">", "%3E", `"`, "%22", "&", "%26", "=", "%3D", "(", "%28", ")", "%29").Replace(name)
	status, _, body := get(t, s.URL+"/run?name="+escaped)
	if status != 200 || strings.Contains(body, "<img") || strings.Contains(body, "<script>") || strings.Contains(body, "<b>") {
		t.Errorf("status %d: %s", status, body)
	}
	status, h, _ := get(t, s.URL+"/report/"+escaped+"/report.html")
	if policy := h.Get("Content-Security-Policy"); status != 200 || !strings.Contains(policy, "sandbox") || strings.Contains(policy, "script-src") {
		t.Errorf("report: status %d, policy %q", status, policy)
	}
	for _, path := range []string{"/report/" + escaped + "/means.svg", "/report/" + escaped + "/run.toml", "/report/..%2f..%2fetc/passwd.svg", "/run?name=.."} {
		if status, _, body := get(t, s.URL+path); status == 200 || strings.Contains(body, "secret") {
			t.Errorf("%s: status %d", path, status)
		}
	}
}
