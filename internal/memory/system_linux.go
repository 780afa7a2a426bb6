package memory

import "os"

// system lists the limits that Linux sets. Those of "ulimit" count what is mapped, also if it is free.
func system() []limit {
	root := os.DirFS("/")
	mapped := func(column int) func() float64 {
		size := float64(os.Getpagesize())
		return func() float64 { return size * pages(root, column) }
	}
	return []limit{
		{ofMachine(root), "this machine", resident},
		{ofContainer(root), "this container", resident},
		{ofProcess(root, "Max data size"), "ulimit -d", mapped(5)},
		{ofProcess(root, "Max address space"), "ulimit -v", mapped(0)},
	}
}
