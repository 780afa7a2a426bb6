package backend

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// plugin is a PJRT plugin on disk.
type plugin struct {
	kind string // "cuda", "rocm", "cpu", "tpu"...; "" when the file's name does not say
	path string // absolute
}

// finder looks for plugins. Its fields are the machine, so that a test can hand it another one.
type finder struct {
	root   string                      // put before every absolute folder that is not from the environment; "" in use
	getenv func(string) (string, bool) // os.LookupEnv
	python func() []string             // the folders python3 imports from
}

func machine() *finder {
	return &finder{getenv: os.LookupEnv, python: pythonPath}
}

// find returns the plugin to use for a kind, or for "" the best one whose device is there.
//
// The folders are searched in the order of folders, and a folder's newest plugin first.
func (f *finder) find(kind string) (plugin, error) {
	wants := []string{kind}
	if kind == "" {
		wants = f.usable()
	}
	var found []plugin
	var looked []string
	for dir := range f.folders() {
		looked = append(looked, dir)
		for _, p := range pluginsIn(dir) {
			if p.kind == wants[0] {
				return p, nil
			}
			found = append(found, p)
		}
	}
	for _, want := range wants[1:] {
		for _, p := range found {
			if p.kind == want {
				return p, nil
			}
		}
	}
	return plugin{}, f.notFound(kind, found, looked)
}

// usable lists the kinds that "xla" alone may choose on this machine, the preferred ones first. A GPU's plugin often
// is installed where no GPU is; there it would only fail.
func (f *finder) usable() []string {
	var kinds []string
	if f.exists("/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/dxg") { // dxg: the GPU of a Windows host
		kinds = append(kinds, "cuda")
	}
	if f.exists("/dev/kfd") {
		kinds = append(kinds, "rocm")
	}
	return append(kinds, "cpu")
}

func (f *finder) exists(patterns ...string) bool {
	for _, p := range patterns {
		if m, _ := filepath.Glob(filepath.Join(f.root, p)); len(m) > 0 {
			return true
		}
	}
	return false
}

// resolve turns what follows "xla:" into a plugin: a path, a kind, or "" for the best there is.
func (f *finder) resolve(arg string) (plugin, error) {
	isPath := strings.ContainsAny(arg, `/\`) || slices.Contains([]string{".so", ".dylib", ".dll"}, filepath.Ext(arg))
	if !isPath {
		return f.find(arg)
	}
	path := arg
	if rest, ok := strings.CutPrefix(path, "~/"); ok { // a shell leaves the ~ of xla:~/plugin.so alone
		home, _ := f.getenv("HOME")
		path = filepath.Join(home, rest)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return plugin{}, fmt.Errorf("backend %q: %w", "xla:"+arg, err)
	}
	switch st, err := os.Stat(path); {
	case err != nil:
		return plugin{}, fmt.Errorf("backend %q: no plugin there: %w", "xla:"+arg, err)
	case st.IsDir():
		return plugin{}, fmt.Errorf("backend %q: that is a folder; give the plugin's file, or set PJRT_PLUGIN_LIBRARY_PATH to the folder and use --backend xla", "xla:"+arg)
	}
	kind := kindOf(path)
	if kind == "" && strings.Contains(strings.ToLower(filepath.Base(path)), "cuda") {
		kind = "cuda"
	}
	return plugin{kind: kind, path: path}, nil
}

// notFound says in one line where find looked, what it saw and what to do.
func (f *finder) notFound(kind string, found []plugin, looked []string) error {
	name, what, hint := "xla", "a PJRT plugin", ""
	if kind != "" {
		name, what = "xla:"+kind, "a PJRT plugin of kind "+kind
	}
	switch kind {
	case "", "cuda":
		hint = `pip install "jax[cuda13]" brings one for NVIDIA, or `
	case "tpu":
		hint = `pip install "jax[tpu]" brings one, or `
	}
	var seen string
	if len(found) > 0 {
		seen = fmt.Sprintf("; found only %s for %s", found[0].path, cmp.Or(found[0].kind, "another device"))
		if kind == "" {
			seen += ", whose device is not on this machine"
		}
	}
	return fmt.Errorf("backend %q needs %s: %sgive its path as --backend xla:/path/plugin.so, or use --backend auto%s; looked in %s",
		name, what, hint, seen, shorten(looked))
}

// shorten lists the folders that exist, at most six of them and the loader's own, which are many, last.
func shorten(dirs []string) string {
	const most = 6
	here := slices.DeleteFunc(slices.Clone(dirs), func(d string) bool {
		st, err := os.Stat(d)
		return err != nil || !st.IsDir()
	})
	if len(here) == 0 {
		here = dirs
	}
	rank := func(d string) int {
		if strings.Contains(d, "go-xla") || strings.HasSuffix(d, "-packages") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(here, func(a, b string) int { return rank(a) - rank(b) })
	if len(here) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(here[:most], ", "), len(here)-most)
	}
	return cmp.Or(strings.Join(here, ", "), "no folder at all")
}

// folders yields where plugins may be, each folder once: those of PJRT_PLUGIN_LIBRARY_PATH and no others when it is
// set; else go-xla's, the dynamic loader's, then the site-packages of the active environment, of python3, and of the
// usual places, newest Python first. python3 is asked only if the search gets that far.
func (f *finder) folders() iter.Seq[string] {
	groups := []func() []string{f.libraries, f.environment, f.python, f.sites}
	if paths, ok := f.getenv("PJRT_PLUGIN_LIBRARY_PATH"); ok {
		given := slices.DeleteFunc(filepath.SplitList(paths), func(d string) bool { return d == "" })
		for i, d := range given {
			if abs, err := filepath.Abs(d); err == nil {
				given[i] = abs
			}
		}
		groups = []func() []string{func() []string { return given }}
	}
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		for _, group := range groups {
			for _, d := range group() {
				if d = filepath.Clean(d); !filepath.IsAbs(d) || seen[d] {
					continue
				}
				if seen[d] = true; !yield(d) {
					return
				}
			}
		}
	}
}

// libraries lists the folders that go-xla itself searches.
func (f *finder) libraries() []string {
	home, _ := f.getenv("HOME") // folders below no home are relative, and left out
	var dirs []string
	for _, prefix := range []string{filepath.Join(home, ".local"), filepath.Join(f.root, "/usr/local")} {
		for _, d := range []string{"lib/go-xla", "lib/go-xla/nvidia", "lib/gomlx/pjrt"} {
			dirs = append(dirs, filepath.Join(prefix, d))
		}
	}
	dirs = append(dirs, filepath.Join(home, "Library/Application Support/go-xla"))
	for _, v := range []string{"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		paths, _ := f.getenv(v)
		dirs = append(dirs, filepath.SplitList(paths)...)
	}
	return append(dirs, f.loaderConfig("/etc/ld.so.conf", 0)...)
}

// loaderConfig lists the folders named in ld.so.conf and the files it includes.
func (f *finder) loaderConfig(file string, depth int) []string {
	text, err := os.ReadFile(filepath.Join(f.root, file))
	if err != nil || depth > 4 {
		return nil
	}
	var dirs []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case fields[0] == "include":
			for _, pattern := range fields[1:] {
				if !filepath.IsAbs(pattern) {
					pattern = filepath.Join(filepath.Dir(file), pattern)
				}
				files, _ := filepath.Glob(filepath.Join(f.root, pattern))
				for _, inc := range files {
					dirs = append(dirs, f.loaderConfig(strings.TrimPrefix(inc, f.root), depth+1)...)
				}
			}
		default:
			dirs = append(dirs, filepath.Join(f.root, strings.TrimSpace(line)))
		}
	}
	return dirs
}

// environment lists the site-packages of the Python environment that is active.
func (f *finder) environment() []string {
	venv, _ := f.getenv("VIRTUAL_ENV")
	conda, _ := f.getenv("CONDA_PREFIX")
	return sitePackages(venv, conda)
}

// sites lists the site-packages in the usual places.
func (f *finder) sites() []string {
	var prefixes []string
	home, _ := f.getenv("HOME")
	for _, p := range []string{".local", ".venv", "venv", ".pyenv/versions/*", "miniconda3", "miniforge3", "anaconda3"} {
		prefixes = append(prefixes, filepath.Join(home, p))
	}
	for _, p := range []string{"/usr/local", "/usr", "/opt/*", "/opt/*/.venv", "/opt/*/venv"} {
		prefixes = append(prefixes, filepath.Join(f.root, p))
	}
	return sitePackages(prefixes...)
}

// sitePackages lists the folders of packages below prefixes, which may be patterns.
func sitePackages(prefixes ...string) (dirs []string) {
	for _, p := range prefixes {
		dirs = append(dirs, newest(filepath.Join(p, "lib/python3*/*-packages"))...)
	}
	return dirs
}

// pythonPath asks python3 where it imports from. A shim that hangs costs ten seconds, once.
func pythonPath() []string {
	exe, err := exec.LookPath("python3")
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-c", `import sys; print("\n".join(sys.path))`)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var dirs []string
	for line := range strings.Lines(string(out)) {
		if dir := strings.TrimSpace(line); strings.HasSuffix(dir, "-packages") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// pluginPatterns are the names plugins go by, below a folder: go-xla's, then those of JAX's packages.
var pluginPatterns = []string{
	"pjrt_c_api_*_plugin.*", "pjrt-plugin-*.*", "pjrt_plugin_*.*",
	"xla_*_plugin.so", "jax_plugins/xla_*/xla_*_plugin.so", "libtpu/libtpu.so",
}

// kindPattern takes the kind out of a plugin's file name, without its version: cpu of pjrt_c_api_cpu_v0.83.1_plugin.so.
var kindPattern = regexp.MustCompile(
	`^(?:(?:pjrt_c_api|xla)_([a-z]+).*_plugin|pjrt[-_]plugin[-_]([a-z]+).*|lib(tpu))\.(?:so|dylib|dll)$`)

// pluginsIn lists the plugins of a folder, the newest of each pattern first; a plugin's own path stands for itself.
func pluginsIn(dir string) []plugin {
	var found []plugin
	if st, err := os.Stat(dir); err == nil && !st.IsDir() && kindOf(dir) != "" {
		return []plugin{{kind: kindOf(dir), path: dir}}
	}
	for _, pattern := range pluginPatterns {
		for _, path := range newest(filepath.Join(dir, pattern)) {
			if k := kindOf(path); k != "" {
				found = append(found, plugin{kind: k, path: path})
			}
		}
	}
	return found
}

// kindOf reads the kind off a plugin's file name; "" when it does not say.
func kindOf(path string) string {
	if m := kindPattern.FindStringSubmatch(filepath.Base(path)); m != nil {
		return cmp.Or(m[1:]...)
	}
	return ""
}

// newest returns the paths a pattern matches, higher numbers first: python3.12 before python3.9, cuda13 before cuda12.
func newest(pattern string) []string {
	paths, _ := filepath.Glob(pattern)
	slices.SortStableFunc(paths, func(a, b string) int { return natural(b, a) })
	return paths
}

var digits = regexp.MustCompile(`[0-9]+`)

// natural compares strings with their runs of digits read as numbers.
func natural(a, b string) int {
	padded := func(s string) string {
		return digits.ReplaceAllStringFunc(s, func(n string) string { return strings.Repeat("0", max(0, 20-len(n))) + n })
	}
	return strings.Compare(padded(a), padded(b))
}
