//go:build !cgo

package backend

import (
	"errors"

	"github.com/gomlx/compute"
)

const xlaBuilt = false

func openXLA(string) (compute.Backend, error) {
	return nil, errors.New(`backend "xla" needs a build with cgo (CGO_ENABLED=1 and a C compiler); use --backend go`)
}
