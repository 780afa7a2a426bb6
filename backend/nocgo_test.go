//go:build !cgo

package backend

import "testing"

func TestXLANeedsCgo(t *testing.T) {
	for _, name := range []string{"xla", "xla:cuda", "xla:/x/plugin.so"} {
		_, err := Open(name)
		if err == nil || err.Error() != `backend "xla" needs a build with cgo (CGO_ENABLED=1 and a C compiler); use --backend go` {
			t.Errorf("Open(%q) = %v", name, err)
		}
	}
}
