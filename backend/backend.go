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
package backend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"

	simd "github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/internal/suggest"
)

// names are what Open accepts; a build without cgo has the first three.
var names = []string{"auto", "simd", "go", "xla", "xla:cuda", "xla:cpu", "xla:/path/plugin.so"}

// Names lists what Open accepts in this build, "auto" first.
func Names() []string {
	if !xlaBuilt {
		return slices.Clone(names[:3])
	}
	return slices.Clone(names)
}

// Open opens the backend called name: "auto" (or ""), "simd", "go", "xla", "xla:KIND" or "xla:PATH", the last three
// optionally followed by go-xla's options ("xla:cuda,tf32=false").
//
// A name that cannot be opened (unknown, not in this build, no such plugin, a plugin that failed) gives an error of one
// line that says what to do.
//
// Environment read on the way to a plugin: PJRT_PLUGIN_LIBRARY_PATH (when set, the only folders searched),
// LD_LIBRARY_PATH, VIRTUAL_ENV, CONDA_PREFIX, HOME, PATH (for python3). Set for the plugin unless the user did:
// GOMLX_NO_AUTO_INSTALL, GOPJRT_CUDA_CHECKS, TF_CPP_MIN_LOG_LEVEL, and --xla_gpu_cuda_data_dir in XLA_FLAGS.
func Open(name string) (compute.Backend, error) {
	base, arg, hasArg := strings.Cut(name, ":")
	switch {
	case base == "xla":
		return openXLA(arg)
	case hasArg && slices.Contains(names, base):
		return nil, fmt.Errorf("backend %q: %q takes nothing after its name; use --backend %s", name, base, base)
	}
	switch name {
	case "", "auto", "simd":
		return simd.New("")
	case "go":
		// One operation after another: side by side, large matrix products can take all workers of this backend and then
		// wait for more of them for ever.
		return gobackend.New("ops_sequential")
	}
	known := strings.Join(Names(), ", ")
	return nil, fmt.Errorf("unknown backend %q; did you mean %q? known: %s", name, nearest(name), known)
}

// aliases are words people use for a backend that is called otherwise here.
var aliases = map[string]string{
	"cpu": "auto", "default": "auto", "native": "auto",
	"gpu": "xla:cuda", "cuda": "xla:cuda", "nvidia": "xla:cuda",
	"jax": "xla", "pjrt": "xla", "stablehlo": "xla",
}

// nearest returns the known name that takes the fewest edits to reach from name.
func nearest(name string) string {
	name = strings.ToLower(name)
	if a, ok := aliases[name]; ok {
		return a
	}
	return slices.MinFunc(names, func(a, b string) int { return suggest.Distance(name, a) - suggest.Distance(name, b) })
}

// xlaOptions are the options go-xla knows; a boolean one may also be written with "no" before it.
var xlaOptions = []string{
	"allocator", "memory_fraction", "preallocate", "shared_buffers", "tf32", "use_tfrt_gpu_client", "visible_devices",
}

// checkOptions refuses options that go-xla does not know ("tf32=false,preallocate").
func checkOptions(options string) error {
	for opt := range strings.SplitSeq(options, ",") {
		key, _, _ := strings.Cut(opt, "=")
		if opt != "" && !slices.Contains(xlaOptions, key) && !slices.Contains(xlaOptions, strings.TrimPrefix(key, "no")) {
			return fmt.Errorf("backend \"xla\": unknown option %q; known: %s", key, strings.Join(xlaOptions, ", "))
		}
	}
	return nil
}

// Describe says in one line what an open backend is, for the provenance of a run.
func Describe(b compute.Backend) string {
	text := strings.Join(strings.Fields(b.Description()), " ")
	p, ok := b.(interface{ PluginName() string })
	if !ok {
		return text
	}
	text = strings.TrimPrefix(text, fmt.Sprintf("%s:%s - ", b, p.PluginName()))
	var devices []string
	for d := range b.NumDevices() {
		device, _, _ := strings.Cut(b.DeviceDescription(compute.DeviceNum(d)), " [processId=")
		if model := machine().nvidiaModel(); model != "" && strings.HasPrefix(device, "cuda") {
			device += " (" + model + ")"
		}
		devices = append(devices, device)
	}
	if devices == nil {
		return text
	}
	return text + " on " + strings.Join(devices, ", ")
}

// QuickToCompile reports whether a backend declares that its programs are quick to compile and take as long as their
// arithmetic, so that it pays to have many, of all sizes. On a card a program takes seconds to compile, and as long as
// it has operations.
func QuickToCompile(b compute.Backend) bool {
	q, ok := b.(interface{ QuickToCompile() bool })
	return ok && q.QuickToCompile()
}
