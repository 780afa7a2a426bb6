//go:build cgo

package backend

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"k8s.io/klog/v2"

	"github.com/gfnem/gfnem/backend/internal/quiet"
)

const xlaBuilt = true

func init() {
	quiet.Done()
	// go-xla downloads plugins unless told not to. It is given absolute paths, which never reach that code; this
	// closes it for everyone else in the process as well.
	xla.EnableAutoInstall(false)
}

func openXLA(arg string) (compute.Backend, error) {
	where, options, _ := strings.Cut(arg, ",")
	m := machine()
	if err := checkOptions(options); err != nil {
		return nil, err
	}
	p, err := m.resolve(where)
	if err != nil {
		return nil, err
	}

	setDefault("GOMLX_NO_AUTO_INSTALL", "1")
	config := p.path
	var missing []string
	if p.kind == "cuda" {
		// go-xla's check looks for NVIDIA's libraries where pip does not put them, and warns at length.
		setDefault("GOPJRT_CUDA_CHECKS", "0")
		packages := m.nvidiaPackages(p.path)
		if flags := withDataDir(os.Getenv("XLA_FLAGS"), cudaDataDir(packages)); flags != "" {
			os.Setenv("XLA_FLAGS", flags)
		}
		if len(preload([]string{"libcuda.so.1"})) > 0 {
			preload(cudaDrivers)
		}
		missing = preload(cudaLibraries(packages))
		// go-xla takes a plugin for the CPU's when its path has "cpu" anywhere, and would then map its buffers.
		if !strings.Contains(options, "shared_buffers") {
			config += ",shared_buffers=false"
		}
	}
	if options != "" {
		config += "," + options
	}

	// What goes wrong below is returned, so go-xla's log of it would only say it twice.
	logs := klog.CaptureState()
	defer logs.Restore()
	klog.SetLogger(klog.New(nil))

	b, err := newXLA(config)
	if err != nil {
		for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
			err = inner // what is around it only repeats where the plugin is
		}
		op := fmt.Sprintf("backend %q: plugin %s", strings.TrimSuffix("xla:"+p.kind, ":"), p.path)
		if len(missing) > 0 {
			op += " (not loaded: " + strings.Join(missing, "; ") + ")"
		}
		cause, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		return nil, fmt.Errorf("%s: %s", op, cause)
	}
	return b, nil
}

// newXLA returns a panic of go-xla as an error.
func newXLA(config string) (b *xla.Backend, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return xla.NewWithOptions(config, nil)
}

func setDefault(name, value string) {
	if _, set := os.LookupEnv(name); !set {
		os.Setenv(name, value)
	}
}
