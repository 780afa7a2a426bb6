package report

// SVG returns the figure as a drawing, which is a file of its own.
func (f Figure) SVG() ([]byte, error) {
	l, err := f.lay()
	if err != nil {
		return nil, err
	}
	return append([]byte(svgHead), l.svg("", nil)...), nil
}
