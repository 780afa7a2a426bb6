package backend

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tree is a fake machine: files below a temporary folder, and an environment.
type tree struct {
	t    *testing.T
	root string
	env  map[string]string
	py   []string
	asks int // how often python3 was asked
}

func newTree(t *testing.T, files ...string) *tree {
	tr := &tree{t: t, root: t.TempDir(), env: map[string]string{}}
	tr.env["HOME"] = tr.at("/home/me")
	for _, f := range files {
		tr.write(f, "")
	}
	return tr
}

func (tr *tree) at(path string) string { return filepath.Join(tr.root, path) }

func (tr *tree) write(path, text string) {
	tr.t.Helper()
	if err := os.MkdirAll(filepath.Dir(tr.at(path)), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(tr.at(path), []byte(text), 0o644); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) finder() *finder {
	return &finder{
		root:   tr.root,
		getenv: func(k string) (string, bool) { v, ok := tr.env[k]; return v, ok },
		python: func() []string { tr.asks++; return tr.py },
	}
}

func (tr *tree) expect(kind, wantKind, wantPath string) {
	tr.t.Helper()
	p, err := tr.finder().find(kind)
	if err != nil {
		tr.t.Fatal(err)
	}
	if p.kind != wantKind || p.path != tr.at(wantPath) {
		tr.t.Errorf("find(%q) = %+v, want %s at %s", kind, p, wantKind, wantPath)
	}
}

const (
	cuda13 = "jax_plugins/xla_cuda13/xla_cuda_plugin.so"
	cuda12 = "jax_plugins/xla_cuda12/xla_cuda_plugin.so"
)

func TestFindOrder(t *testing.T) {
	places := []string{ // in the order of preference
		"/home/me/.local/lib/go-xla/pjrt_c_api_cuda_plugin.so",
		"/home/me/.local/lib/go-xla/nvidia/pjrt_c_api_cuda_plugin.so",
		"/usr/local/lib/go-xla/pjrt-plugin-cuda.so",
		"/ld/one/pjrt_c_api_cuda_plugin.so",
		"/ld/two/pjrt_plugin_cuda.so",
		"/conf/libs/pjrt_c_api_cuda_plugin.so",
		"/venv/lib/python3.12/site-packages/" + cuda13,
		"/venv/lib/python3.12/site-packages/" + cuda12,
		"/conda/lib/python3.11/site-packages/" + cuda13,
		"/py/site-packages/" + cuda12,
		"/home/me/.local/lib/python3.14/site-packages/" + cuda13,
		"/home/me/.local/lib/python3.9/site-packages/" + cuda13,
		"/home/me/.pyenv/versions/3.13.1/lib/python3.13/site-packages/" + cuda13,
		"/usr/local/lib/python3.12/dist-packages/" + cuda13,
		"/usr/lib/python3/dist-packages/" + cuda13,
		"/opt/tools/lib/python3.12/site-packages/" + cuda13,
		"/opt/torch/.venv/lib/python3.12/site-packages/" + cuda13,
	}
	tr := newTree(t, places...)
	tr.write("/etc/ld.so.conf", "# comment\ninclude ld.so.conf.d/*.conf\n")
	tr.write("/etc/ld.so.conf.d/a.conf", "/conf/libs # ours\n")
	tr.env["LD_LIBRARY_PATH"] = "relative::" + tr.at("/ld/one") + ":" + tr.at("/ld/two")
	tr.env["VIRTUAL_ENV"] = tr.at("/venv")
	tr.env["CONDA_PREFIX"] = tr.at("/conda")
	tr.py = []string{tr.at("/py/site-packages"), tr.at("/venv/lib/python3.12/site-packages")}
	for i, want := range places {
		tr.asks = 0
		tr.expect("cuda", "cuda", want)
		if late := strings.HasPrefix(want, "/py/") || i > slices.Index(places, "/py/site-packages/"+cuda12); (tr.asks > 0) != late {
			t.Errorf("%s: python3 asked %d times", want, tr.asks)
		}
		os.Remove(tr.at(want))
	}
	if _, err := tr.finder().find("cuda"); err == nil {
		t.Error("found a plugin in an empty tree")
	}
}

func TestFindEnvironmentOverrides(t *testing.T) {
	tr := newTree(t,
		"/home/me/.local/lib/go-xla/pjrt_c_api_cuda_plugin.so",
		"/mine/a/readme", "/mine/b/pjrt_c_api_cuda_plugin.so", "/mine/c/"+cuda13, "/mine/d/xla_cuda_plugin.so")
	tr.env["PJRT_PLUGIN_LIBRARY_PATH"] = ":" + tr.at("/mine/a") + ":" + tr.at("/mine/b")
	tr.expect("cuda", "cuda", "/mine/b/pjrt_c_api_cuda_plugin.so")
	tr.env["PJRT_PLUGIN_LIBRARY_PATH"] = tr.at("/mine/c")
	tr.expect("cuda", "cuda", "/mine/c/"+cuda13)
	tr.env["PJRT_PLUGIN_LIBRARY_PATH"] = tr.at("/mine/d/xla_cuda_plugin.so")
	tr.expect("cuda", "cuda", "/mine/d/xla_cuda_plugin.so")
	for _, only := range []string{tr.at("/mine/a"), ""} {
		tr.env["PJRT_PLUGIN_LIBRARY_PATH"] = only
		if p, err := tr.finder().find("cuda"); err == nil {
			t.Errorf("searched beyond the folders given: %+v", p)
		}
	}
	if tr.asks > 0 {
		t.Error("asked python3 although the folders were given")
	}
}

func TestFindBestKind(t *testing.T) {
	const gpu, cpu = "/usr/local/lib/python3.12/dist-packages/" + cuda13, "/usr/local/lib/go-xla/pjrt_c_api_cpu_v0.83.1_plugin.so"
	tr := newTree(t, gpu, cpu, "/usr/local/lib/go-xla/pjrt_c_api_cpu_v0.9.0_plugin.so", "/usr/local/lib/go-xla/pjrt_c_api_readme.txt")
	tr.expect("", "cpu", cpu) // no GPU
	tr.expect("cuda", "cuda", gpu)
	tr.write("/dev/nvidia0", "")
	tr.expect("", "cuda", gpu)
	tr.expect("cpu", "cpu", cpu)

	tr = newTree(t, gpu)
	_, err := tr.finder().find("")
	if err == nil || !strings.Contains(err.Error(), "whose device is not on this machine") || !strings.Contains(err.Error(), tr.at(gpu)) {
		t.Errorf("a CUDA plugin and no GPU: %v", err)
	}
}

func TestFindNothing(t *testing.T) {
	tr := newTree(t, "/usr/local/lib/go-xla/readme")
	for kind, wants := range map[string][]string{
		"":     {`backend "xla" needs`, `pip install "jax[cuda13]"`, "--backend xla:/path/plugin.so", "looked in " + tr.at("/usr/local/lib/go-xla")},
		"cuda": {`backend "xla:cuda" needs`, `pip install "jax[cuda13]"`},
		"cpu":  {`backend "xla:cpu" needs`, "--backend xla:/path/plugin.so"},
		"tpu":  {`jax[tpu]`},
		"foo":  {`backend "xla:foo" needs a PJRT plugin of kind foo`},
	} {
		_, err := tr.finder().find(kind)
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("find(%q) = %v, want %q", kind, err, want)
			}
		}
	}
}

func TestResolve(t *testing.T) {
	tr := newTree(t, "/p/mine.so", "/home/me/pjrt_c_api_cpu_plugin.so", "/p/libCUDA_pjrt.so", "/opt/x/lib/python3.12/site-packages/"+cuda13)
	f := tr.finder()
	for arg, want := range map[string]plugin{
		tr.at("/p/mine.so"):           {"", tr.at("/p/mine.so")},
		tr.at("/p/libCUDA_pjrt.so"):   {"cuda", tr.at("/p/libCUDA_pjrt.so")},
		"~/pjrt_c_api_cpu_plugin.so":  {"cpu", tr.at("/home/me/pjrt_c_api_cpu_plugin.so")},
		"cuda":                        {"cuda", tr.at("/opt/x/lib/python3.12/site-packages/" + cuda13)},
		tr.at("/p") + "/../p/mine.so": {"", tr.at("/p/mine.so")},
	} {
		if got, err := f.resolve(arg); err != nil || got != want {
			t.Errorf("resolve(%q) = %+v, %v", arg, got, err)
		}
	}
	t.Chdir(tr.at("/p"))
	if got, err := f.resolve("mine.so"); err != nil || filepath.Base(got.path) != "mine.so" || !filepath.IsAbs(got.path) {
		t.Errorf("a relative path: %+v, %v", got, err)
	}
	for arg, want := range map[string]string{
		tr.at("/p/none.so"): "no plugin there",
		tr.at("/p"):         "that is a folder",
	} {
		if _, err := f.resolve(arg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("resolve(%q) = %v, want %q", arg, err, want)
		}
	}
}

func TestLoaderConfigLoop(t *testing.T) {
	tr := newTree(t)
	tr.write("/etc/ld.so.conf", "include /etc/ld.so.conf\n/a\n")
	if dirs := tr.finder().loaderConfig("/etc/ld.so.conf", 0); !slices.Contains(dirs, tr.at("/a")) {
		t.Errorf("%q", dirs)
	}
}

func TestPythonPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the fake python3 is a shell script")
	}
	tr := newTree(t)
	tr.write("/bin/python3", "#!/bin/sh\nprintf '\\n/usr/lib/python3.12\\n/x/site-packages\\n/y/dist-packages\\n'\n")
	if err := os.Chmod(tr.at("/bin/python3"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tr.at("/bin"))
	if got, want := pythonPath(), []string{"/x/site-packages", "/y/dist-packages"}; !slices.Equal(got, want) {
		t.Errorf("pythonPath() = %q, want %q", got, want)
	}
	tr.write("/bin/python3", "#!/bin/sh\nexit 1\n")
	if got := pythonPath(); got != nil {
		t.Errorf("a python3 that fails: %q", got)
	}
	t.Setenv("PATH", tr.at("/none"))
	if got := pythonPath(); got != nil {
		t.Errorf("no python3: %q", got)
	}
}

func TestNatural(t *testing.T) {
	for _, c := range []struct{ small, big string }{
		{"python3.9", "python3.12"}, {"cuda9", "cuda13"}, {"v0.83.1", "v0.83.10"}, {"a", "b"}, {"a", "a1"}, {"x2a", "x2b"},
	} {
		if natural(c.small, c.big) >= 0 || natural(c.big, c.small) <= 0 {
			t.Errorf("%s does not sort before %s", c.small, c.big)
		}
	}
	rapid.Check(t, func(t *rapid.T) { // an order on numbers, and antisymmetric on anything
		x, y := rapid.Uint().Draw(t, "x"), rapid.Uint().Draw(t, "y")
		text := func(n uint) string { return "p" + itoa(n) + "/lib" }
		if natural(text(x), text(y)) != cmp.Compare(x, y) {
			t.Fatalf("%d, %d", x, y)
		}
		a, b := rapid.StringMatching(`[a-b0-2.]{0,6}`).Draw(t, "a"), rapid.StringMatching(`[a-b0-2.]{0,6}`).Draw(t, "b")
		if natural(a, b) != -natural(b, a) {
			t.Fatalf("%q, %q", a, b)
		}
	})
}

func itoa(n uint) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}
