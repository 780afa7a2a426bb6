package mnist

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/testkit"
)

// idx returns a file with the given header and content.
func idx(magic, count, height, width uint32, pixels ...byte) []byte {
	var head []byte
	for _, n := range []uint32{magic, count, height, width} {
		head = binary.BigEndian.AppendUint32(head, n)
	}
	return append(head, pixels...)
}

func gz(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

// TestThreshold reads all gray values, and files of 0 and 1.
func TestThreshold(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, c := range []struct {
		name   string
		pixels []byte
		kind   kind
		first  byte // that becomes 1
	}{
		{"gray", all, gray, 128},
		{"two grays", slices.Concat(bytes.Repeat([]byte{0}, 128), bytes.Repeat([]byte{2}, 128)), gray, 128},
		{"0 and 1", slices.Concat(bytes.Repeat([]byte{0}, 128), bytes.Repeat([]byte{1}, 128)), zeroOne, 1},
		{"blank", make([]byte, 256), blank, 1},
	} {
		for _, file := range [][]byte{idx(magicImages, 4, 8, 8, c.pixels...), gz(idx(magicImages, 4, 8, 8, c.pixels...))} {
			m, k, err := inking{}.readIDX(bytes.NewReader(file))
			if err != nil || k != c.kind {
				t.Fatalf("%s: pixels %v, error %v", c.name, k, err)
			}
			for i, v := range m.Floats() {
				if (v == 1) != (c.pixels[i] >= c.first) {
					t.Fatalf("%s: gray %d becomes %g", c.name, c.pixels[i], v)
				}
			}
		}
	}
}

// TestKindIsOfTheFile reads images that look like 0 and 1 before one that is gray: in any order the same pixels come out.
func TestKindIsOfTheFile(t *testing.T) {
	dark, light := []byte{0, 1, 1, 0, 1, 0}, []byte{0, 1, 200, 0, 128, 127}
	want := NewImages(Size{2, 3}, []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0})
	m, k, err := inking{}.readIDX(bytes.NewReader(idx(magicImages, 2, 2, 3, slices.Concat(dark, light)...)))
	if err != nil || k != gray || !bytes.Equal(m.bits, want.bits) {
		t.Errorf("%v, pixels %v, error %v", m.Floats(), k, err)
	}
}

func TestBadIDX(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	noise := make([]byte, 1200)
	for i := range noise {
		noise[i] = byte(r.IntN(256))
	}
	good := idx(magicImages, 3, 20, 20, noise...)
	zipped := gz(good)
	broken := bytes.Clone(zipped)
	broken[len(broken)-6] ^= 1 // in the sum
	for _, c := range []struct {
		name, want string
		file       []byte
	}{
		{"empty", "the file is empty", nil},
		{"a byte", "too short", good[:1]},
		{"half a header", "too short for an idx file of images: 9 bytes", good[:9]},
		{"labels", "holds labels, not images", binary.BigEndian.AppendUint32([]byte{0, 0, 8, 1}, 5)},
		{"zipped labels", "holds labels, not images", gz([]byte("\x00\x00\x08\x01\x00\x00\x00\x03abc"))},
		{"floats", "an idx file, but not of images", idx(0x0d03, 1, 1, 1, 0, 0, 0, 0)},
		{"text", "not an idx file of images", []byte("5 0 4 1 9 2 1 3 1 4")},
		{"little-endian", "not an idx file of images", idx(0x03080000, 1, 1, 1, 0)},
		{"none", "holds no images", idx(magicImages, 0, 28, 28)},
		{"no rows", "images are 0x28", idx(magicImages, 1, 0, 28)},
		{"huge", "images are 4294967295x4294967295", idx(magicImages, 1, 1<<32-1, 1<<32-1)},
		{"too many", "promises 4294967295 images of 2048x2048", idx(magicImages, 1<<32-1, 2048, 2048)},
		{"header alone", "cut short in image 1 of the 3", good[:16]},
		{"truncated", "cut short in image 3 of the 3", good[:len(good)-1]},
		{"trailing", "something follows the 3 images", append(bytes.Clone(good), 0)},
		{"another count", "something follows the 2 images", idx(magicImages, 2, 20, 20, noise...)},
		{"truncated gzip", "cut short in image", zipped[:len(zipped)/2]},
		{"gzip without its sum", "cut short after its last image", zipped[:len(zipped)-8]},
		{"gzip header", "cut short in its gzip header", zipped[:5]},
		{"gzip sum", "gzip: invalid checksum", broken},
		{"gzip method", "gzip: invalid header", []byte("\x1f\x8b\x07 and so on, for long")},
		{"gzip and more", "gzip: invalid header", append(bytes.Clone(zipped), "and so on, for long"...)},
		{"gzip of gzip", "not an idx file of images", gz(zipped)},
	} {
		_, _, err := inking{}.readIDX(bytes.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// TestLyingHeader checks that memory follows what a file holds, not what its header promises: 100 MB of pixels in the
// first case, as much as is allowed in the second.
func TestLyingHeader(t *testing.T) {
	for _, file := range [][]byte{
		idx(magicImages, 1_000_000, 28, 28, make([]byte, 784*10)...),
		idx(magicImages, maxPacked/maxSide/maxSide*8, maxSide, maxSide, 1, 2, 3),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := inking{}.readIDX(bytes.NewReader(file))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Fatal("a file without its images was read")
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 6<<20 {
			t.Errorf("%d bytes of memory for a file of %d", used, len(file))
		}
	}
}

// FuzzIDX checks that whatever is read is an error or, written again, reads as the same images.
func FuzzIDX(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(idx(magicImages, 2, 2, 3, 0, 1, 1, 0, 1, 0, 0, 1, 200, 0, 128, 127))
	f.Add(gz(idx(magicImages, 2, 2, 3, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 1)))
	f.Add(idx(magicImages, 1<<31, 28, 28, 1, 2, 3))
	f.Add(idx(magicImages, 1, 1<<31, 1<<31))
	f.Add(idx(magicLabels, 5, 0, 0))
	f.Add(gz(idx(magicImages, 1, 9, 9, make([]byte, 81)...))[:30])
	f.Fuzz(func(t *testing.T, data []byte) {
		m, k, err := inking{}.readIDX(bytes.NewReader(data))
		if err != nil {
			if m.Len() != 0 || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%d images and error %q", m.Len(), err)
			}
			return
		}
		if k < blank || k > gray || m.Len() == 0 {
			t.Fatalf("%d images of pixels %d", m.Len(), k)
		}
		var again bytes.Buffer
		if err := grayOf(m).Encode(&again, IDX); err != nil {
			t.Fatal(err)
		}
		m2, _, err := inking{}.readIDX(&again)
		if err != nil || m2.Size != m.Size || !bytes.Equal(m2.bits, m.bits) {
			t.Fatalf("images of %v came back as %v, error %v", m.Size, m2.Size, err)
		}
	})
}
