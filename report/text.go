package report

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
)

// Text in figures. Liberation Sans has the metrics of Arial and Helvetica, so that an SVG keeps its layout where only
// those are installed.
var (
	titleInk  = ink(font.Font{Size: 11.5, Weight: bold}, 0x1a)
	headInk   = ink(font.Font{Size: 10, Weight: bold}, 0x33)
	labelInk  = ink(font.Font{Size: 9.5}, 0x33)
	tickInk   = ink(font.Font{Size: 8.5}, 0x55)
	legendInk = ink(font.Font{Size: 9}, 0x33)
)

func init() {
	titleInk.YAlign, headInk.XAlign = text.YTop, text.XCenter
	legendInk.YAlign = -0.22 // so that the middles of names are those of their samples
}

const bold = 3 // golang.org/x/image/font.WeightBold

func ink(f font.Font, level uint8) text.Style {
	f.Typeface, f.Variant = "Liberation", "Sans"
	return text.Style{Color: gray(level), Font: f, Handler: plot.DefaultTextHandler}
}

// printable replaces by spaces what has no shape: controls, line breaks, broken UTF-8. What is left is fit for a
// terminal and for XML.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, s)
}

// typeset writes the hyphens of a formatted number as minus signs.
func typeset(number string) string { return strings.ReplaceAll(number, "-", "−") }

// Duration writes how long something took, for a person; "" for nothing.
func Duration(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}
