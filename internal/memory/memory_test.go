package memory

import (
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gfnem/gfnem/badinput"
)

// machine is the files of a system.
func machine(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestLimitsOfLinux(t *testing.T) {
	const mib = 1 << 20
	type want struct{ machine, container, data, space float64 }
	for name, c := range map[string]struct {
		files map[string]string
		want
	}{
		"nothing known": {},
		"a machine": {map[string]string{
			"proc/meminfo":     "MemTotal:       24684100 kB\nMemFree:        21402724 kB\n",
			"proc/self/cgroup": "0::/\n",
			"proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units     \n" +
				"Max data size             unlimited            unlimited            bytes     \n",
		}, want{machine: 24684100 * 1024}},
		"a container": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "2147483648\n",
			"sys/fs/cgroup/memory.current": "1\n",
		}, want{container: 2048 * mib}},
		"a group inside another": {map[string]string{
			"proc/self/cgroup":                          "0::/system.slice/job.scope\n",
			"sys/fs/cgroup/system.slice/memory.max":     "1048576\n",
			"sys/fs/cgroup/system.slice/job.scope/none": "",
			"sys/fs/cgroup/memory.max":                  "max\n",
		}, want{container: mib}},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/a/b\n0::/\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "3145728\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":   "9223372036854771712\n",
			"sys/fs/cgroup/cpu/memory.limit_in_bytes":        "1\n",
		}, want{container: 3 * mib}},
		"version 1, seen from inside": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/abc\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "4194304\n",
		}, want{container: 4 * mib}},
		"both versions": {map[string]string{
			"proc/self/cgroup":                             "4:memory:/a\n0::/b\n",
			"sys/fs/cgroup/unified/memory.max":             "max\n",
			"sys/fs/cgroup/unified/b/memory.max":           "2097152\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4194304\n",
		}, want{container: 2 * mib}},
		"ulimit": {map[string]string{
			"proc/self/limits": "Max data size             2147483648           unlimited            bytes     \n" +
				"Max address space         4294967296           unlimited            bytes     \n",
		}, want{data: 2048 * mib, space: 4096 * mib}},
		"nonsense": {map[string]string{
			"proc/meminfo": "MemTotal: many kB\nMemTotal\n", "proc/self/cgroup": "::\n\nmemory\n0::/../..\n",
			"proc/self/limits": "Max data size\n", "proc/self/statm": "1 2",
		}, want{}},
	} {
		root := machine(c.files)
		got := want{ofMachine(root), ofContainer(root), ofProcess(root, "Max data size"), ofProcess(root, "Max address space")}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if n := pages(machine(map[string]string{"proc/self/statm": "300000 17000 1200 700 0 90000 0\n"}), 5); n != 90000 {
		t.Errorf("%g pages of data", n)
	}
}

// within runs a test under limits of its own.
func within(t *testing.T, all ...limit) {
	before := limits
	limits = func() []limit { return all }
	t.Cleanup(func() { limits = before; forced.Store(false) })
}

func TestNeed(t *testing.T) {
	const gib = 1 << 30
	used := func(n float64) func() float64 { return func() float64 { return n } }
	within(t, limit{2 * gib, "this container", used(gib)}, limit{16 * gib, "this machine", used(gib)})
	if err := Need("a table", 8, gib/16); err != nil {
		t.Errorf("half of a GiB beside one: %v", err)
	}
	for _, factors := range [][]int{{gib}, {8, gib / 8}, {math.MaxInt, math.MaxInt, math.MaxInt}} {
		err := Need("a table", factors...)
		var e *Error
		if !errors.As(err, &e) || !errors.As(err, new(*badinput.Error)) || e.Room != limits()[0].room() {
			t.Fatalf("%v: error %v", factors, err)
		}
		if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, "a table needs ") ||
			!strings.HasSuffix(text, " of memory, and this container leaves 1.84 GiB") {
			t.Errorf("%v: message %q", factors, text)
		}
		func() {
			defer func() {
				if p, _ := recover().(error); p == nil || !errors.As(p, &e) {
					t.Errorf("%v: Must panics with %v", factors, p)
				}
			}()
			Must("a table", factors...)
		}()
	}
	if Fits("a program", 1.5*gib) != nil || Fits("a program", 2*gib) == nil {
		t.Error("Fits looks at what is used")
	}
	Force()
	if Need("a table", 8*gib) != nil || Fits("a program", 8*gib) != nil {
		t.Error("forced, it still refuses")
	}
}

func TestWithoutLimits(t *testing.T) {
	within(t)
	if Need("a table", math.MaxInt) != nil || Fits("a program", math.Inf(1)) != nil {
		t.Error("refused where no limit is known")
	}
}

// What is measured follows what is allocated and given back.
func TestResident(t *testing.T) {
	const big = 64 << 20
	before := alive()
	block := make([]byte, big)
	if grown := resident() - before; grown < big || alive() < before {
		t.Errorf("64 MiB more are %.0f more", grown)
	}
	clear(block)
}

// The guard speaks once what is alive leaves no room, although it grew little by little.
func TestGuard(t *testing.T) {
	within(t, limit{128 << 20, "this container", resident})
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	said := make(chan error, 2)
	Guard(func(err error) { said <- err })
	var blocks [][]byte
	for begin := time.Now(); len(said) == 0; {
		if time.Since(begin) > time.Minute {
			t.Fatalf("nothing was said about %d MiB", len(blocks)/4)
		}
		if len(blocks) < 1024 {
			blocks = append(blocks, make([]byte, 1<<18))
		} else {
			runtime.GC()
		}
	}
	if err := <-said; !errors.As(err, new(*Error)) {
		t.Errorf("error %v", err)
	}
	if len(blocks) < 4*32 {
		t.Errorf("it spoke at %d MiB", len(blocks)/4)
	}
	runtime.GC()
	runtime.GC()
	if len(said) > 0 {
		t.Error("it spoke twice")
	}
	runtime.KeepAlive(blocks)
}
