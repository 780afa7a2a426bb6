package mnist

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"image/png"
	"io"
	"math"
	"strings"

	"github.com/gfnem/gfnem/badinput"
)

// Format is a way to write images to a file.
type Format int

const (
	PNG   Format = iota // one picture, a grid where there are several images
	PGM                 // the same, uncompressed
	IDX                 // any number of images, as MNIST's own files
	IDXGz               // that, compressed
)

// formats are the endings of names, the longer ones of the same letters first.
var formats = []struct {
	ending string
	format Format
}{
	{".png", PNG}, {".pgm", PGM},
	{".idx.gz", IDXGz}, {"idx3-ubyte.gz", IDXGz},
	{".idx", IDX}, {"idx3-ubyte", IDX},
}

// FormatOf returns the format that the name of a file asks for by its ending: .png, .pgm, .idx or, as MNIST's own files
// are named, idx3-ubyte, the last two also with .gz.
func FormatOf(path string) (Format, error) {
	lower := strings.ToLower(path)
	for _, f := range formats {
		if strings.HasSuffix(lower, f.ending) {
			return f.format, nil
		}
	}
	return 0, badinput.Errorf("%s: images are written to names that end in .png, .pgm, .idx or .idx.gz", path)
}

// maxPicture is the number of pixels of a picture that viewers still open.
const maxPicture = 1 << 27

// Encode writes the images. Those of many that no picture can hold are an error in the formats that are pictures.
func (g Gray) Encode(w io.Writer, f Format) error {
	switch f {
	case IDX:
		return g.encodeIDX(w)
	case IDXGz:
		z := gzip.NewWriter(w)
		if err := g.encodeIDX(z); err != nil {
			return err
		}
		return z.Close()
	}
	if g.Len() == 0 {
		return badinput.Errorf("there are no images to write")
	}
	if g.Len() > maxPicture/((g.Width+gutter)*(g.Height+gutter)) {
		return badinput.Errorf("%d images are too many for one picture: write to a name that ends in .idx", g.Len())
	}
	grid := g.grid()
	if f == PNG {
		return png.Encode(w, grid)
	}
	_, err := fmt.Fprintf(w, "P5\n%d %d\n255\n%s", grid.Rect.Dx(), grid.Rect.Dy(), grid.Pix)
	return err
}

func (g Gray) encodeIDX(w io.Writer) error {
	if uint64(g.Len()) > math.MaxUint32 {
		return badinput.Errorf("%d images are too many for an idx file", g.Len())
	}
	head := []uint32{magicImages, uint32(g.Len()), uint32(g.Height), uint32(g.Width)}
	if err := binary.Write(w, binary.BigEndian, head); err != nil {
		return err
	}
	_, err := w.Write(g.Pix)
	return err
}
