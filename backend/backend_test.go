package backend

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

func open(t *testing.T, name string) compute.Backend {
	t.Helper()
	b, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

func TestOpenComputes(t *testing.T) {
	for _, name := range []string{"", "auto", "simd", "go"} {
		b := open(t, name)
		sum := graph.MustExecOnce(b, func(x, y *graph.Node) *graph.Node { return graph.Add(x, y) }, 1.0, 1.0)
		if got := tensors.ToScalar[float64](sum); got != 2 {
			t.Errorf("backend %q: 1+1 = %v", name, got)
		}
	}
}

func TestOpenUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"goo":     `unknown backend "goo"; did you mean "go"? known: auto, simd, go`,
		"GO":      `did you mean "go"?`,
		"gpu":     `did you mean "xla:cuda"?`,
		"cuda":    `did you mean "xla:cuda"?`,
		"cpu":     `did you mean "auto"?`,
		"xl":      `did you mean "xla"?`,
		"XLA:cud": `did you mean "xla:cuda"?`,
		"atuo":    `did you mean "auto"?`,
		"auto:x":  `backend "auto:x": "auto" takes nothing after its name; use --backend auto`,
		"go:x":    `backend "go:x": "go" takes nothing after its name; use --backend go`,
	} {
		_, err := Open(name)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Open(%q) = %v, want %q", name, err, want)
		}
	}
}

func TestNames(t *testing.T) {
	names := Names()
	if len(names) < 2 || names[0] != "auto" || !slices.Contains(names, "go") {
		t.Errorf("Names() = %q", names)
	}
	if got := slices.Contains(names, "xla:cuda"); got != xlaBuilt {
		t.Errorf("xla listed: %v, built: %v", got, xlaBuilt)
	}
}

func TestDescribe(t *testing.T) {
	if got := Describe(open(t, "go")); got == "" || strings.Contains(got, "\n") {
		t.Errorf("Describe = %q", got)
	}
}

// device is a backend that answers as go-xla's does.
type device struct{ compute.Backend }

func (device) String() string      { return "xla" }
func (device) PluginName() string  { return "/p.so" }
func (device) Description() string { return "xla:/p.so - PJRT plugin (/p.so) v0.115 [2 device(s)]" }
func (device) NumDevices() int     { return 2 }
func (device) DeviceDescription(n compute.DeviceNum) string {
	return fmt.Sprintf("tpu:%d [processId=0]", n)
}

func TestDescribePlugin(t *testing.T) {
	if got := Describe(device{}); got != "PJRT plugin (/p.so) v0.115 [2 device(s)] on tpu:0, tpu:1" {
		t.Errorf("%q", got)
	}

	tr := newTree(t)
	if got := tr.finder().nvidiaModel(); got != "" {
		t.Errorf("no driver: %q", got)
	}
	tr.write("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 1\n")
	tr.write("/proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: \t\t NVIDIA H200\n")
	if got := tr.finder().nvidiaModel(); got != "NVIDIA H200" {
		t.Errorf("two alike: %q", got)
	}
	tr.write("/proc/driver/nvidia/gpus/0000:03:00.0/information", "Model: \t\t NVIDIA A10\n")
	if got := tr.finder().nvidiaModel(); got != "" {
		t.Errorf("two kinds: %q", got)
	}
}

func TestCheckOptions(t *testing.T) {
	for _, good := range []string{"", "tf32", "notf32", "tf32=false,preallocate=true,memory_fraction=0.5", "nopreallocate"} {
		if err := checkOptions(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"tf23", "help", "tf32=false,x=1"} {
		if err := checkOptions(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

func ExampleOpen() {
	b, err := Open("auto")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Finalize()
	sum := graph.MustExecOnce(b, func(x, y *graph.Node) *graph.Node { return graph.Add(x, y) }, 1.0, 1.0)
	fmt.Println(sum.Value())
	// Output: 2
}

func ExampleOpen_unknown() {
	_, err := Open("gpu")
	fmt.Println(strings.Split(err.Error(), " known:")[0])
	// Output: unknown backend "gpu"; did you mean "xla:cuda"?
}
