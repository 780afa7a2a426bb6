package blame

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// here returns the place of its caller, some lines further down.
func here(below int) string {
	_, file, line, _ := runtime.Caller(1)
	return place(file, line+below)
}

func check(t *testing.T, err error, at, text string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), at+": ") || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want one at %s about %q", err, at, text)
	}
}

func TestCaller(t *testing.T) {
	cause := errors.New("a cause")
	at := here(1)
	err := Caller(cause)
	check(t, err, at, "a cause")
	if again := Caller(fmt.Errorf("more: %w", err)); !errors.Is(err, cause) || again.Error() != "more: "+err.Error() {
		t.Errorf("an error became %v, and that %v", err, again)
	}
	if Caller(nil) != nil {
		t.Error("no error became one")
	}
}

func TestIsUser(t *testing.T) {
	inGo := goRoot + "slices/sort.go"
	for _, c := range []struct {
		function, file string
		want           bool
	}{
		{"main.noisyOR.LogJoint", "/home/a/main.go", true},
		{"example.org/m/model.(*Model).LogJoint", "/home/a/model.go", true},
		{"mine/model.(*Model).LogJoint", "/home/a/model.go", true},
		{"example.org/m/em.(*Model).LogJoint.func1", "/home/a/model.go", true},
		{"gopkg.in/m%2ev2.Model.LogJoint", "/home/a/model.go", true},
		{module + "mixture.gfnModel.LogJoint", "gfnmodel.go", true},
		{module + "em.ofTest", "/home/a/em/a_test.go", true},
		{module + "em_test.ofTest", "/home/a/em/a_test.go", true},
		{module + "em.New", "/home/a/em/learner.go", false},
		{module + "gfn/envs.Sequence.Legal", "/home/a/gfn/envs/sequence.go", false},
		{module + "internal/program.New[go.shape.struct { a/b.C }].func1", "/home/a/program.go", false},
		{"github.com/gomlx/gomlx/core/graph.Add", "/home/a/graph_test.go", false},
		{"github.com/pkg/errors.New", "/home/a/errors.go", false},
		{"slices.Max[...]", inGo, false},
		{"runtime.gopanic", goRoot + "runtime/panic.go", false},
		{"example.org/m.T.Method", generated, false},
		{"", "", false},
	} {
		if got := isUser(c.function, c.file); got != c.want {
			t.Errorf("%s in %s: %t", c.function, c.file, got)
		}
	}
	if goRoot != "" && !strings.HasSuffix(goRoot, "/src/") {
		t.Errorf("Go is at %q", goRoot)
	}
}

type legal interface{ Legal() }
type plain struct{}
type pointed struct{}
type around struct{ legal }

var plainAt = here(2)

func (plain) Legal() {}

var pointedAt = here(2)

func (*pointed) Legal() {}

func TestFunc(t *testing.T) {
	for _, c := range []struct {
		of any
		at string
	}{
		{plain{}, plainAt},
		{&plain{}, plainAt},
		{&pointed{}, pointedAt},
		{around{legal: plain{}}, plainAt},
		{&around{legal: around{legal: &pointed{}}}, pointedAt},
	} {
		check(t, Method(c.of, "Legal").Errorf("returns %d", 3), c.at, "Legal returns 3")
	}

	f, begins := func() {}, here(0)
	check(t, Field(f, "Loss").Errorf("is bad"), begins, "Loss is bad")
	called := here(1)
	check(t, Field(plain{}.Legal, "Loss").Errorf("is bad"), called, "Loss (blame.plain.Legal) is bad")
	called = here(1)
	check(t, Method(nil, "Legal").Errorf("is bad"), called, "Legal is bad")
	called = here(1)
	check(t, Field((func())(nil), "Loss").Errorf("is bad"), called, "Loss is bad")
	if got := ofMethod(reflect.ValueOf(around{}), "Legal"); got != "" {
		t.Errorf("nothing is at %s", got)
	}
}
