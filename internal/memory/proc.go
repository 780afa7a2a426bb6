package memory

import (
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// The limits of a process are read from the files of Linux, below root.

// ofMachine returns the memory of the machine, 0 if it is not known.
func ofMachine(root fs.FS) float64 {
	for line := range lines(root, "proc/meminfo") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			return number(f[1]) * 1024
		}
	}
	return 0
}

// ofContainer returns the least limit of the control groups that the process is in, 0 if it is in none.
func ofContainer(root fs.FS) (least float64) {
	for line := range lines(root, "proc/self/cgroup") {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		switch {
		case f[0] == "0" && f[1] == "": // version 2
			least = lesser(least, above(root, "sys/fs/cgroup", f[2], "memory.max"))
			least = lesser(least, above(root, "sys/fs/cgroup/unified", f[2], "memory.max"))
		case strings.Contains(","+f[1]+",", ",memory,"):
			least = lesser(least, above(root, "sys/fs/cgroup/memory", f[2], "memory.limit_in_bytes"))
		}
	}
	return least
}

// above returns the least limit of a group and those that it is in. What a container does not see of them is left out.
func above(root fs.FS, mount, group, name string) (least float64) {
	for at := path.Join("/", group); ; at = path.Dir(at) {
		if text, err := fs.ReadFile(root, path.Join(mount, at, name)); err == nil {
			least = lesser(least, number(string(text)))
		}
		if at == "/" {
			return least
		}
	}
}

// ofProcess returns a limit that the process was started with: the soft one of "ulimit", 0 if there is none.
func ofProcess(root fs.FS, name string) float64 {
	for line := range lines(root, "proc/self/limits") {
		if rest, ok := strings.CutPrefix(line, name); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				return number(f[0])
			}
		}
	}
	return 0
}

// pages returns a column of the pages that the process has, see proc(5).
func pages(root fs.FS, column int) float64 {
	text, err := fs.ReadFile(root, "proc/self/statm")
	if f := strings.Fields(string(text)); err == nil && column < len(f) {
		return number(f[column])
	}
	return 0
}

// number reads a number; 0 for what is none, such as "max" and "unlimited".
func number(text string) float64 {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return float64(n)
}

// lesser is the lesser of two limits, of which 0 is none.
func lesser(a, b float64) float64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func lines(root fs.FS, name string) func(func(string) bool) {
	text, err := fs.ReadFile(root, name)
	return func(yield func(string) bool) {
		for line := range bytes.Lines(text) {
			if err != nil || !yield(string(line)) {
				return
			}
		}
	}
}
