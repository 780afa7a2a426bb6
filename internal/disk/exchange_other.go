//go:build !linux && !darwin

package disk

import "errors"

func exchange(a, b string) error { return errors.ErrUnsupported }
