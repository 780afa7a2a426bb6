//go:build unix

package disk

import "syscall"

// NoFollow is a flag of os.OpenFile: a link is an error, and nobody waits for the other end of a pipe.
const NoFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
