//go:build !unix

package treebank

import "errors"

func mkfifo(path string) error { return errors.ErrUnsupported }
