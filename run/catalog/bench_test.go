package catalog_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gfnem/gfnem/run/catalog"
)

// BenchmarkSeries reads one metric out of eight from 100,000 lines.
func BenchmarkSeries(b *testing.B) {
	var text bytes.Buffer
	for step := range 100_000 {
		fmt.Fprintf(&text, `{"step":%d,"e/grad_norm":1.2345678901234567,"e/loss":%g,"gate/average":0.12345678901234567,`+
			`"gate/threshold":6,"m/grad_norm":0.98765432109876,"m/loss":3.14159265358979,"m/updates":17,"skipped":0}`+"\n", step, 1/(1+float64(step)))
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "metrics.jsonl"), text.Bytes(), 0o666); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		s, err := catalog.Run{Dir: dir}.Series("e/loss")
		if err != nil || len(s["e/loss"].X) != 100_000 {
			b.Fatal(err, len(s["e/loss"].X))
		}
	}
}
