//go:build !linux

package gemm

import "time"

var started = time.Now()

func threadTime() time.Duration { return time.Since(started) }
