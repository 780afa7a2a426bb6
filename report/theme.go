package report

import (
	"fmt"
	"image/color"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A figure on a page follows the reader's choice of light or dark: each of its colours that belongs to a palette, and each
// gray, is a variable of the page's style, which has another value in the dark.

// Where a page is dark: its ink, and what figures stand on.
var darkInk, darkCard = rgb(0xe4e8ee), rgb(0x1c2027)

// themed are the colours, besides grays, that have another one in the dark. Those of classes stay: their numbers are written
// over them.
var themed = func() map[color.NRGBA]color.NRGBA {
	all := map[color.NRGBA]color.NRGBA{rgb(0xb4bcc6): rgb(0x56606d)}
	for _, c := range okabeIto {
		all[c] = lightened(c)
	}
	return all
}()

// dark is a colour as it is on a dark page.
func dark(c color.Color) color.Color {
	own := color.NRGBAModel.Convert(c).(color.NRGBA)
	opaque := own
	opaque.A = 0xff
	out, ok := themed[opaque]
	if own.R == own.G && own.G == own.B {
		out, ok = mixed(darkInk, darkCard, float64(own.R)/255), true
	}
	if !ok {
		return own
	}
	out.A = own.A
	return out
}

// lightened mixes a colour with white until it stands out on a dark page.
func lightened(c color.NRGBA) color.NRGBA {
	const least = 0.3 // of the luminance
	out := c
	for m := 0.0; luminance(out) < least; m += 0.02 {
		out = mixed(c, gray(0xff), m)
	}
	return out
}

// luminance is about that of WCAG 2, from 0 to 1.
func luminance(c color.NRGBA) float64 {
	linear := func(v uint8) float64 { x := float64(v) / 255; return x * x }
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// mixed is a colour between two.
func mixed(a, b color.NRGBA, t float64) color.NRGBA {
	mix := func(x, y uint8) uint8 { return uint8((1-t)*float64(x) + t*float64(y) + 0.5) }
	return color.NRGBA{R: mix(a.R, b.R), G: mix(a.G, b.G), B: mix(a.B, b.B), A: a.A}
}

// hex writes a colour as in CSS, without its opacity.
func hex(c color.Color) string {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	return fmt.Sprintf("#%02x%02x%02x", n.R, n.G, n.B)
}

var (
	styles   = regexp.MustCompile(`style="[^"]*"`) // in a text, quotes are escaped
	colours  = regexp.MustCompile(`:#([0-9A-Fa-f]{6})`)
	variable = regexp.MustCompile(`var\(--c([0-9a-f]{6}),`)
)

// followTheme makes the colours of an svg element variables.
func followTheme(svg []byte) []byte {
	return styles.ReplaceAllFunc(svg, func(style []byte) []byte {
		return colours.ReplaceAllFunc(style, func(match []byte) []byte {
			c := strings.ToLower(string(match[2:]))
			if parsed := parseHex(c); dark(parsed) == color.Color(parsed) {
				return match
			}
			return fmt.Appendf(nil, ":var(--c%s,#%s)", c, c)
		})
	})
}

func parseHex(c string) color.NRGBA {
	var v uint32
	fmt.Sscanf(c, "%x", &v)
	return rgb(v)
}

// darkStyle gives the variables of some HTML their values in the dark.
func darkStyle(html ...string) string {
	used := map[string]bool{}
	for _, text := range html {
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			used[m[1]] = true
		}
	}
	if len(used) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n@media (prefers-color-scheme: dark) { :root {")
	for _, c := range slices.Sorted(maps.Keys(used)) {
		fmt.Fprintf(&b, " --c%s: %s;", c, hex(dark(parseHex(c))))
	}
	b.WriteString(" } }\n")
	return b.String()
}
