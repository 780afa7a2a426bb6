package mnist

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/testkit"
)

func encode(t testing.TB, g Gray, f Format) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := g.Encode(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReadWhatWasWritten writes random images in every format and reads them.
func TestReadWhatWasWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for range 20 {
		size, n, pixels := random(r)
		all := NewImages(size, pixels)
		one := all.Slice(n-1, n)
		dir := folder(t, "mine", map[string][]byte{
			"1.png": encode(t, grayOf(one), PNG), "2.PGM": encode(t, grayOf(one), PGM),
			"3.idx": encode(t, grayOf(all), IDX), "4-idx3-ubyte.gz": encode(t, grayOf(all), IDXGz), "notes.txt": nil,
		})
		for _, paths := range [][]string{
			{dir},
			{filepath.Join(dir, "1.png"), filepath.Join(dir, "2.PGM"), filepath.Join(dir, "3.idx"), filepath.Join(dir, "4-idx3-ubyte.gz")},
		} {
			got, names, err := Read(size, paths...)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Concat(one.bits, one.bits, all.bits, all.bits)
			if got.Size != size || !bytes.Equal(got.bits, want) || len(names) != got.Len() {
				t.Fatalf("%d images of %v came back as %d of %v with %d names", 2+2*n, size, got.Len(), got.Size, len(names))
			}
			if names[1] != filepath.Join(dir, "2.PGM") || names[len(names)-1] != fmt.Sprintf("%s#%d", filepath.Join(dir, "4-idx3-ubyte.gz"), n-1) {
				t.Fatalf("names are %q", names)
			}
		}
	}
}

// TestPNGColours reads every kind of picture: a pixel is 1 from the first value on that is nearer to white.
func TestPNGColours(t *testing.T) {
	box := image.Rect(0, 0, 2, 1)
	palette := image.NewPaletted(box, color.Palette{color.Black, color.White})
	palette.Pix[1] = 1
	for name, picture := range map[string]image.Image{
		"gray":    &image.Gray{Pix: []byte{127, 128}, Stride: 2, Rect: box},
		"gray16":  &image.Gray16{Pix: []byte{0x7f, 0xff, 0x80, 0}, Stride: 4, Rect: box},
		"colour":  &image.NRGBA{Pix: []byte{127, 127, 127, 255, 128, 128, 128, 255}, Stride: 8, Rect: box},
		"alpha":   &image.NRGBA{Pix: []byte{255, 255, 255, 0, 255, 255, 255, 255}, Stride: 8, Rect: box},
		"palette": palette,
	} {
		var b bytes.Buffer
		if err := png.Encode(&b, picture); err != nil {
			t.Fatal(err)
		}
		m, err := inking{}.readPNG(bufio.NewReader(&b))
		if err != nil || m.Size != (Size{1, 2}) || !slices.Equal(m.Floats(), []float32{0, 1}) {
			t.Errorf("%s: %v of %v, error %v", name, m.Floats(), m.Size, err)
		}
	}
}

func TestPGM(t *testing.T) {
	for _, text := range []string{
		"P5\n3 2\n255\n\x00\x7f\x80\xff\x01\xfe",
		"P5 3 2 # white:\n# below\n255 \x00\x7f\x80\xff\x01\xfe",
		"P5 3 2 1000\n\x00\x00\x01\xf4\x01\xf5\x03\xe8\x00\x01\x03\xe7",
		"P2\n3 2\n255\n0 127 128\n255 1 254\n",
		"P2 # text\n3 2 3 0 1 2 3 1 3",
		"P2 3 2 1 0 0 1 1 0 1 \n\n",
	} {
		m, err := inking{}.readPGM(bufio.NewReader(strings.NewReader(text)))
		if err != nil || m.Size != (Size{2, 3}) || !slices.Equal(m.Floats(), []float32{0, 0, 1, 1, 0, 1}) {
			t.Errorf("%q is %v of %v, error %v", text, m.Floats(), m.Size, err)
		}
	}
}

func TestBadPictures(t *testing.T) {
	good := encode(t, NewGray(Size{4, 4}, make([]float32, 16)), PNG)
	huge := bytes.Clone(good)
	huge[16] = 0x7f
	broken := bytes.Clone(good)
	broken[29] ^= 1 // in the sum of the header
	for _, c := range []struct {
		name, want string
		file       []byte
	}{
		{"empty.png", "the file is empty", nil},
		{"text.png", "neither an idx file of images nor PNG nor PGM", []byte("hello")},
		{"jpeg.png", "neither an idx file of images nor PNG nor PGM", []byte("\xff\xd8\xff\xe0\x00\x10JFIF")},
		{"signature.png", "cut short in its PNG header", good[:8]},
		{"truncated.png", "cut short", good[:len(good)/2]},
		{"huge.png", "images are 4x2130706436; sides from 1", huge},
		{"broken.png", "png: invalid format", broken},
		{"header.pgm", "cut short in its PGM header", []byte("P5 3 ")},
		{"letters.pgm", `'x' where a number`, []byte("P5 3x 2 255 ")},
		{"long.pgm", `'0' where a number`, []byte("P5 10000000000 2 255 ")},
		{"huge.pgm", "images are 2x999999999", []byte("P5 999999999 2 255 ")},
		{"black.pgm", "white is 0", []byte("P5 1 1 0 \x00")},
		{"white.pgm", "white is 65536", []byte("P5 1 1 65536 \x00")},
		{"bright.pgm", "pixel 2 is 9", []byte("P2 2 1 8 7 9")},
		{"truncated.pgm", "cut short in pixel 6 of 6", []byte("P5 3 2 255 01234")},
		{"half.pgm", "cut short in pixel 1 of 1", []byte("P5 1 1 256 0")},
		{"trailing.pgm", "something follows", []byte("P5 3 2 255 0123456")},
		{"more.pgm", "something follows", []byte("P2 1 1 255 17 18")},
		{"other.png", "images of 4x4, where 4x5 is needed", good},
		{"labels-idx1-ubyte", "holds labels", []byte("\x00\x00\x08\x01\x00\x00\x00\x01\x07")},
		{"cut.idx", "cut short in image 2 of the 2", grays[:len(grays)-1]},
	} {
		dir := folder(t, "pictures", map[string][]byte{c.name: c.file})
		_, _, err := Read(Size{4, 5}, filepath.Join(dir, c.name))
		checkInput(t, c.name, err, c.name, c.want)
	}
	_, _, err := Read(Size{}, folder(t, "empty", map[string][]byte{"notes.txt": nil}))
	checkInput(t, "a folder without images", err, "empty", "no file in")
	_, _, err = Read(Size{})
	checkInput(t, "no names", err, "", "no images")
	_, _, err = Read(Size{}, folder(t, "mixed", map[string][]byte{"1.png": good, "2.idx": grays}))
	checkInput(t, "two sizes", err, "2.idx", "images of 2x3, where 4x4 is needed")
}

func TestGray(t *testing.T) {
	g := NewGray(Size{1, 7}, []float32{0, 1, 0.5, -3, 7, float32(math.NaN()), 0.25})
	if want := []byte{0, 255, 128, 0, 255, 0, 64}; !bytes.Equal(g.Pix, want) {
		t.Errorf("grays are %v, want %v", g.Pix, want)
	}
}

// TestGrid looks for every pixel of every image in the grid, and counts those that belong to none.
func TestGrid(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for range 50 {
		size, n, pixels := random(r)
		grid := grayOf(NewImages(size, pixels)).grid()
		across := int(math.Ceil(math.Sqrt(float64(n))))
		down := (n + across - 1) / across
		if b := grid.Bounds(); b.Dx() != across*(size.Width+gutter)-gutter || b.Dy() != down*(size.Height+gutter)-gutter {
			t.Fatalf("%d images of %v: %v", n, size, b)
		}
		for i, v := range pixels {
			image, p := i/size.Pixels(), i%size.Pixels()
			x := image%across*(size.Width+gutter) + p%size.Width
			y := image/across*(size.Height+gutter) + p/size.Width
			if grid.GrayAt(x, y).Y != 255*v {
				t.Fatalf("pixel %d of image %d is not in the grid", p, image)
			}
		}
		if between := bytes.Count(grid.Pix, []byte{gutterGray}); between != len(grid.Pix)-len(pixels) {
			t.Fatalf("%d pixels between images, want %d", between, len(grid.Pix)-len(pixels))
		}
	}
}

func TestBadWrites(t *testing.T) {
	_, err := FormatOf("out.jpg")
	checkInput(t, "format", err, "out.jpg", ".png, .pgm, .idx or .idx.gz")
	for name, want := range map[string]Format{
		"a.PNG": PNG, "a.pgm": PGM, "a.idx": IDX, "a.idx.gz": IDXGz, "t10k-images-idx3-ubyte": IDX, "t10k-images.idx3-ubyte.gz": IDXGz,
	} {
		if got, err := FormatOf(name); got != want || err != nil {
			t.Errorf("%s: format %d, error %v", name, got, err)
		}
	}
	var b bytes.Buffer
	checkInput(t, "none", Gray{Size: Size{2, 2}}.Encode(&b, PNG), "", "no images")
	many := Gray{Size: Size{1, 1}, Pix: make([]byte, maxPicture/9+1)}
	checkInput(t, "many", many.Encode(&b, PNG), "", "too many for one picture")
	one := NewGray(Size{4, 4}, make([]float32, 16))
	for _, f := range []Format{PNG, PGM, IDX, IDXGz} {
		if err := one.Encode(full{}, f); !errors.Is(err, os.ErrClosed) {
			t.Errorf("format %d: a failed write is error %v", f, err)
		}
	}
}

// full is a file that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

// FuzzPicture checks that whatever is read as a picture is an error or one image of a possible size.
func FuzzPicture(f *testing.F) {
	g := NewGray(Size{3, 4}, make([]float32, 12))
	f.Add(encode(f, g, PNG))
	f.Add(encode(f, g, PGM))
	f.Add([]byte("P2 # text\n3 2 3 0 1 2 3 1 3"))
	f.Add([]byte("P5 3 2 1000\n\x00\x00\x01\xf4\x01\xf5\x03\xe8\x00\x01\x03\xe7"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReader(bytes.NewReader(data))
		read, many := inking{}.sniff(in)
		if read == nil || many {
			return
		}
		m, err := read(in)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		if m.Len() != 1 || m.Height < 1 || m.Width < 1 || m.Height > maxSide || m.Width > maxSide {
			t.Fatalf("%d images of %v", m.Len(), m.Size)
		}
	})
}
