//go:build cgo

package deps

import _ "github.com/gomlx/go-xla/compute/xla"
