//go:build !amd64 && !arm64

package cpu

var here = kind{[]Level{Off}, 1}
