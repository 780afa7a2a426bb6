package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Named is a configuration with a name, such as a preset.
type Named struct {
	Name   string
	Config any // a pointer to a struct, as for Resolve
}

// Describe writes a configuration as TOML with all that is known of each key as comments, and with the values that others of
// the same type have. Keys without the prefix, "" for all, are left out. Resolve with a File of it gives the configuration
// again.
func Describe(c Named, others []Named, prefix string) (string, error) {
	fields, err := Fields(c.Config)
	if err != nil {
		return "", err
	}
	values := make([][]Field, len(others))
	for i, o := range others {
		if values[i], err = Fields(o.Config); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	for i, f := range fields {
		if f.Name != prefix && !strings.HasPrefix(f.Name, prefix) {
			continue
		}
		if f.Value == "" { // a section
			fmt.Fprintf(&b, "\n## %s: %s\n", f.Name, f.Help)
			continue
		}
		notes := []string{f.Help, f.Limits()}
		at := map[string]int{} // of a value among the notes
		for j, o := range others {
			v := values[j][i].Value
			if k, ok := at[v]; ok {
				notes[k] = strings.Replace(notes[k], ": ", ", "+o.Name+": ", 1)
			} else if v != f.Value {
				at[v] = len(notes)
				notes = append(notes, o.Name+": "+v)
			}
		}
		if f.Resume {
			notes = append(notes, "may change when a run is resumed")
		}
		for _, line := range wrap(strings.Join(notes, "; "), 118) {
			b.WriteString("# " + line + "\n")
		}
		fmt.Fprintf(&b, "%s = %s\n", f.Name, f.Value)
	}
	return strings.TrimLeft(b.String(), "\n"), nil
}

// Limits says in words what a key takes: "a number from 0 to 1, or -1".
func (f Field) Limits() string {
	if f.Choices != nil {
		return "one of " + strings.Join(f.Choices, ", ")
	}
	out := strings.TrimSuffix(f.Type, " from 0")
	r := f.Range
	if r == nil {
		return f.Type
	}
	if bounded(r.Low) {
		out += " from " + short(r.Low)
	}
	if bounded(r.High) {
		out += " to " + short(r.High)
	}
	if r.Else != nil {
		out += ", or " + short(*r.Else)
	}
	return out
}

// bounded reports whether a limit is one that somebody might meet: not the greatest number of a type.
func bounded(v float64) bool { return math.Abs(v) < math.MaxInt32 }

func short(v float64) string { return strconv.FormatFloat(v, 'g', 12, 64) }

// wrap breaks text into lines between words.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	return append(lines, line)
}
