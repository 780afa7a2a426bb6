package report

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"os"
	"path/filepath"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	svgHead  = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	pngDPI   = 192  // two pixels for each of CSS
	legible  = 0.5  // of its size, below which a drawing is not shrunk to fit a screen
	svgMarks = 2000 // a figure of more marks is embedded as an image, which is then smaller
)

// encode returns the figure as an image of 192 dots per inch and as a drawing of the same size.
func (f Figure) encode() (png, svg []byte, err error) {
	l, err := f.lay()
	if err != nil {
		return nil, nil, err
	}
	png, err = l.png()
	return png, append([]byte(svgHead), l.svg("", nil)...), err
}

// Save writes the figure to name.png and name.svg in dir, which is made if it is not there.
func (f Figure) Save(dir, name string) error {
	png, svg, err := f.encode()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	err = os.MkdirAll(dir, 0o777)
	if err == nil {
		err = cmp.Or(writeFile(path+".png", png), writeFile(path+".svg", svg))
	}
	if err != nil {
		return fmt.Errorf("save figure %s: %w", name, err)
	}
	return nil
}

// HTML returns the figure as an element that holds all of it: a drawing, or an image where a drawing would have very
// many marks. The alternative text is for readers who cannot see it.
func (f Figure) HTML(alt string) (template.HTML, error) {
	l, err := f.lay()
	if err != nil {
		return "", err
	}
	marks := 0
	for _, c := range l.charts {
		marks += c.marks
	}
	escaped := template.HTMLEscapeString(alt)
	if marks <= svgMarks {
		least := legible * l.width.Dots(96)
		element := l.svg(fmt.Sprintf(` role="img" aria-label="%s" style="fill:#000000;min-width:%.0fpx"`, escaped, least), l.tips)
		return template.HTML(followTheme(element)), nil
	}
	png, err := l.png()
	if err != nil {
		return "", err
	}
	return template.HTML(fmt.Sprintf(`<img alt="%s" width="%.0f" height="%.0f" src="data:image/png;base64,%s">`,
		escaped, l.width.Dots(96), l.height.Dots(96), base64.StdEncoding.EncodeToString(png))), nil
}

func (l *layout) png() ([]byte, error) {
	canvas := vgimg.NewWith(vgimg.UseWH(l.width, l.height), vgimg.UseDPI(pngDPI))
	l.draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(&b); err != nil {
		return nil, fmt.Errorf("encode figure %q: %w", l.title, err)
	}
	return b.Bytes(), nil
}

// svg returns one svg element with the given extra attributes and, if not nil, what is drawn last. It says once what vgsvg
// repeats on every text, and names fonts to fall back on.
func (l *layout) svg(attributes string, over func() []byte) []byte {
	canvas := vgsvg.New(l.width, l.height)
	l.draw(draw.New(canvas))
	var b bytes.Buffer
	canvas.WriteTo(&b) // a bytes.Buffer never fails
	_, body, _ := bytes.Cut(b.Bytes(), []byte("<svg"))
	_, body, _ = bytes.Cut(body, []byte(">"))
	body = bytes.ReplaceAll(body, []byte(`style="font-family:Liberation Sans;font-variant:normal;`), []byte(`style="`))
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" `+
		`xmlns:xlink="http://www.w3.org/1999/xlink" width="%gpt" height="%gpt" viewBox="0 0 %[1]g %[2]g" `+
		`font-family="Liberation Sans, Arial, Helvetica, sans-serif" stroke-linejoin="round"%s>`,
		l.width.Points(), l.height.Points(), attributes)
	body = bytes.ReplaceAll(body, []byte(`<image `), []byte(`<image style="image-rendering:pixelated" `))
	if over != nil {
		body = bytes.TrimSuffix(bytes.TrimSpace(body), []byte("</svg>"))
		body = append(append(body, over()...), "</svg>\n"...)
	}
	return append([]byte(head), body...)
}
