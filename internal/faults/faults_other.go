//go:build !(linux && (amd64 || arm64))

package faults

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
)

// Run cannot follow a program on this system.
func Run(*exec.Cmd, Options) (Result, error) {
	return Result{}, fmt.Errorf("follow a program on %s/%s: %w", runtime.GOOS, runtime.GOARCH, errors.ErrUnsupported)
}
