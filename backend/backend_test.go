package backend

import (
	"encoding/json"
	"errors"
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
	for _, name := range []string{"", "auto", "go"} {
		b := open(t, name)
		var sum *tensors.Tensor
		if err := Try(func() {
			sum = graph.MustExecOnce(b, func(x, y *graph.Node) *graph.Node { return graph.Add(x, y) }, 1.0, 1.0)
		}); err != nil {
			t.Fatal(err)
		}
		if got := tensors.ToScalar[float64](sum); got != 2 {
			t.Errorf("backend %q: 1+1 = %v", name, got)
		}
	}
}

func TestOpenUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"goo":     `unknown backend "goo"; did you mean "go"? known: auto, go`,
		"GO":      `did you mean "go"?`,
		"gpu":     `did you mean "xla:cuda"?`,
		"cuda":    `did you mean "xla:cuda"?`,
		"cpu":     `did you mean "auto"?`,
		"xl":      `did you mean "xla"?`,
		"XLA:cud": `did you mean "xla:cuda"?`,
		"atuo":    `did you mean "auto"?`,
		"go:x":    `backend "go:x": "go" takes nothing after its name; use --backend go`,
	} {
		_, err := Open(name)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Open(%q) = %v, want %q", name, err, want)
		}
		if errors.As(err, new(*Error)) {
			t.Errorf("Open(%q): a user's mistake must be a plain error", name)
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
	info := Describe(open(t, "go"))
	if info.Name != "go" || info.Description == "" || strings.Contains(info.String(), "\n") {
		t.Errorf("Describe = %+v", info)
	}
	text, err := json.Marshal(info)
	if err != nil || strings.Contains(string(text), "plugin") {
		t.Errorf("%s, %v", text, err)
	}
	info = Info{Name: "xla", Description: "xla - PJRT v0.1", Plugin: "/p.so", Devices: []string{"A", "B"}}
	if got := info.String(); got != "xla - PJRT v0.1; devices: A, B" {
		t.Errorf("String() = %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"go", "go", 0}, {"flaw", "lawn", 2}, {"xla", "", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
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
