package disk

import (
	"errors"
	"os"
	"syscall"
)

// Exchange swaps two names at once.
func (OS) Exchange(a, b string) error {
	err := exchange(a, b)
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.EINVAL) { // the file system does not know this kind of rename
		err = errors.ErrUnsupported
	}
	return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
}
