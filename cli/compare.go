package cli

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run/catalog"
)

type compareCmd struct {
	Runs   []string `arg:"" name:"run" help:"Folders of runs, or of many runs."`
	By     []string `help:"Keys that make a setting, with commas between (default: those that differ, but the seed)." placeholder:"KEY"`
	Figure []string `help:"What the table shows; may be repeated (default: the figure of the task)." placeholder:"NAME" sep:"none"`
	Metric []string `help:"Curves of the page; may be repeated (default: the most telling ones)." placeholder:"NAME" sep:"none"`
	HTML   string   `help:"Write a page with curves, tables and what the runs have in common." placeholder:"FILE" name:"html"`
	JSON   bool     `help:"Print all figures of all settings as one JSON object on standard output." xor:"format"`
	CSV    bool     `help:"The same as lines with commas between the values." name:"csv" xor:"format"`
}

// Run compares runs.
func (c compareCmd) Run(con command.Console) error {
	if c.Metric != nil && c.HTML == "" {
		return badinput.Errorf("--metric chooses the curves of a page: give it a file with --html")
	}
	runs, err := findRuns(c.Runs...)
	if err != nil {
		return err
	}
	found, err := catalog.Compare(runs, catalog.Options{By: c.By, Figures: c.Figure})
	if err != nil {
		return err
	}
	if c.HTML != "" {
		if err := c.page(found); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		return command.PrintJSON(con.Out, found)
	case c.CSV:
		con.Warn(found.Notes()...)
		out := csv.NewWriter(con.Out)
		return out.WriteAll(found.Rows())
	}
	if _, err := fmt.Fprint(con.Out, found.Table()); err != nil {
		return err
	}
	others := slices.DeleteFunc(found.AllFigures(), func(name string) bool { return slices.Contains(found.Figures, name) })
	if c.Figure == nil && len(others) > 0 {
		_, err = fmt.Fprintf(con.Out, "other figures, for --figure: %s\n", command.Shorten(strings.Join(others, ", "), 600))
	}
	if err == nil && c.HTML != "" {
		_, err = fmt.Fprintln(con.Out, "Look at", c.HTML)
	}
	return err
}

// page writes the page.
func (c compareCmd) page(found *catalog.Comparison) error {
	page, err := found.Page(c.Metric)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := page.Write(&b); err != nil {
		return err
	}
	return command.WriteWhole(c.HTML, func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
}
