// Package backend opens the engine that runs compiled programs, by name.
//
//	b, err := backend.Open("auto")      // what this build has, no install needed
//	b, err := backend.Open("xla")       // the best PJRT plugin on this machine
//	b, err := backend.Open("xla:cuda")  // a plugin of that kind
//	b, err := backend.Open("xla:/opt/plugin.so")
//	b, err := backend.Open("xla:cuda,tf32=false") // options of go-xla follow a comma
//
// Plugins are found where pip, conda and go-xla leave them (see the variables at Open); nothing is ever downloaded.
// XLA needs cgo: a build without it has every other backend and says so when asked for this one.
//
// GoMLX reports mistakes in a graph by panicking. Try turns such a panic into an error of one line.
package backend

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"

	simd "github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/internal/suggest"
)

// engine is a row of the table of backends.
type engine struct {
	name  string
	forms []string // what may follow the name, as Names shows it
	built bool     // whether this build holds it
	auto  bool     // whether "auto" may choose it; the first such row wins
	open  func(arg string) (compute.Backend, error)
}

// engines lists the backends, the preferred ones first. A new backend is a new row.
var engines = []engine{
	{name: "simd", built: true, auto: true, open: openSIMD},
	{name: "go", built: true, open: openGo},
	{name: "xla", forms: []string{"cuda", "cpu", "/path/plugin.so"}, built: xlaBuilt, open: openXLA},
}

// Open opens the backend called name: "auto" (or ""), "simd", "go", "xla", "xla:KIND" or "xla:PATH", the last three
// optionally followed by go-xla's options ("xla:cuda,tf32=false").
//
// A name that cannot be opened because of what was asked (unknown, not in this build, no such plugin) gives a plain
// error of one line that says what to do. A plugin that was found and failed gives an *Error.
//
// Environment read on the way to a plugin: PJRT_PLUGIN_LIBRARY_PATH (when set, the only folders searched),
// LD_LIBRARY_PATH, VIRTUAL_ENV, CONDA_PREFIX, HOME, PATH (for python3). Set for the plugin unless the user did:
// GOMLX_NO_AUTO_INSTALL, GOPJRT_CUDA_CHECKS, TF_CPP_MIN_LOG_LEVEL, and --xla_gpu_cuda_data_dir in XLA_FLAGS.
func Open(name string) (compute.Backend, error) {
	if name == "" || name == "auto" {
		for _, e := range engines {
			if e.auto && e.built {
				return e.open("")
			}
		}
		return nil, errors.New("this build holds no default backend; name one of: " + strings.Join(Names(), ", "))
	}
	base, arg, hasArg := strings.Cut(name, ":")
	for _, e := range engines {
		if e.name != base {
			continue
		}
		if hasArg && len(e.forms) == 0 {
			return nil, fmt.Errorf("backend %q: %q takes nothing after its name; use --backend %s", name, base, base)
		}
		return e.open(arg)
	}
	return nil, unknown(name)
}

// Names lists what Open accepts in this build, "auto" first.
func Names() []string {
	names := []string{"auto"}
	for _, e := range engines {
		if e.built {
			names = append(names, e.names()...)
		}
	}
	return names
}

func (e engine) names() []string {
	names := []string{e.name}
	for _, f := range e.forms {
		names = append(names, e.name+":"+f)
	}
	return names
}

// openSIMD opens our own backend.
func openSIMD(string) (compute.Backend, error) {
	b, err := simd.New("")
	if err != nil {
		return nil, &Error{Op: `backend "simd"`, Cause: err}
	}
	return b, nil
}

// openGo opens GoMLX's own backend with operations one after another: run side by side, large matrix products can take all
// its workers and then wait for more of them for ever.
func openGo(string) (compute.Backend, error) {
	b, err := gobackend.New("ops_sequential")
	if err != nil {
		return nil, &Error{Op: `backend "go"`, Cause: err}
	}
	return b, nil
}

// aliases are words people use for a backend that is called otherwise here.
var aliases = map[string]string{
	"cpu": "auto", "default": "auto", "native": "auto",
	"gpu": "xla:cuda", "cuda": "xla:cuda", "nvidia": "xla:cuda",
	"jax": "xla", "pjrt": "xla", "stablehlo": "xla",
}

func unknown(name string) error {
	return fmt.Errorf("unknown backend %q; did you mean %q? known: %s", name, nearest(name), strings.Join(Names(), ", "))
}

// nearest returns the known name that takes the fewest edits to reach from name.
func nearest(name string) string {
	name = strings.ToLower(name)
	if a, ok := aliases[name]; ok {
		return a
	}
	best, bestDist := "auto", suggest.Distance(name, "auto")
	for _, e := range engines {
		for _, n := range e.names() {
			if d := suggest.Distance(name, n); d < bestDist {
				best, bestDist = n, d
			}
		}
	}
	return best
}

// QuickToCompile reports whether a backend declares that its programs are quick to compile and take as long as their arithmetic, so
// that it pays to have many, of all sizes. On a card a program takes seconds to compile, and as long as it has operations.
func QuickToCompile(b compute.Backend) bool {
	q, ok := b.(interface{ QuickToCompile() bool })
	return ok && q.QuickToCompile()
}
