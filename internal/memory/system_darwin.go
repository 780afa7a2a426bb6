package memory

import "golang.org/x/sys/unix"

// system lists the limit that the machine sets.
func system() []limit {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return nil
	}
	return []limit{{float64(n), "this machine", resident}}
}
