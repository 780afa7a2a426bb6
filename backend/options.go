package backend

import (
	"fmt"
	"slices"
	"strings"
)

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
