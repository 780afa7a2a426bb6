//go:build cgo && !linux

package backend

// preload does nothing: pip's CUDA packages exist for Linux alone.
func preload([]string) []string { return nil }
