package sweep

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/gfnem/gfnem/run"
)

// Program identifies this program: its version, with a hash of its source's revision and of all modules; or of its
// file, where no revision tells what it was built from.
var Program = sync.OnceValue(func() string {
	info := run.Program()
	sum := sha256.New()
	source, _ := json.Marshal([]any{info.Version, info.Revision, info.Go, info.Modules}) // plain text
	sum.Write(source)
	if info.Revision == "" || info.Modified {
		if path, err := os.Executable(); err == nil {
			if f, err := os.Open(path); err == nil {
				_, _ = io.Copy(sum, f) // the rest identifies it less well
				f.Close()
			}
		}
	}
	return fmt.Sprintf("%s %s", cmp.Or(info.Version, "unknown"), hex.EncodeToString(sum.Sum(nil))[:12])
})
