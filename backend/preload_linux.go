//go:build cgo

package backend

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// preload loads libraries, in order, and returns what failed.
//
// The plugin later opens them by bare name (libcudnn.so.9), which the dynamic loader answers with a library of that
// name that is already loaded, before it looks in any folder. So pip's libraries are found with no LD_LIBRARY_PATH:
// the loader reads that variable once, at the start of the process, and the other way, to set it and execute the
// program again, loses what was read from standard input, held locks and debuggers, leaks the variable into every
// child, and does nothing for a setuid program. JAX loads its libraries this way too. Their symbols stay local: the
// plugin asks each library for its own.
func preload(files []string) (failed []string) {
	runtime.LockOSThread() // dlerror speaks of the calling thread
	defer runtime.UnlockOSThread()
	for _, file := range files {
		name := C.CString(file)
		if C.dlopen(name, C.RTLD_LAZY|C.RTLD_LOCAL) == nil {
			failed = append(failed, C.GoString(C.dlerror()))
		}
		C.free(unsafe.Pointer(name))
	}
	return failed
}
