//go:build unix

package disk

import "syscall"

// noFollow makes opening a link, or waiting for the other end of a pipe, an error.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
