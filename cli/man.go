package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/gfnem/gfnem/cli/command"
)

type manCmd struct{}

// Run prints the manual page.
func (manCmd) Run(io command.Console, p *Program, program *kong.Kong) error {
	return p.man(io.Out, program.Model.Node)
}

// man writes a page for the macros man(7), with all that help says.
func (p *Program) man(w io.Writer, root *kong.Node) error {
	var page strings.Builder
	b := p.built()
	day, _, _ := strings.Cut(b.Date, "T")
	fmt.Fprintf(&page, ".TH %q 1 %q %q\n", strings.ToUpper(p.Name), day, p.Name+" "+b.Version)
	page.WriteString(".SH NAME\n" + roff(p.Name+" - "+cmp.Or(strings.TrimSuffix(p.About, "."), "trains models")) + "\n")
	fmt.Fprintf(&page, ".SH SYNOPSIS\n.B %s\n.I command\n[\n.I argument\n\\&...]\n", roff(p.Name))
	page.WriteString(".SH DESCRIPTION\n")
	prose(&page, root.Detail)
	page.WriteString(".SH OPTIONS\n")
	options(&page, root)
	page.WriteString(".SH COMMANDS\n")
	for _, leaf := range root.Leaves(true) {
		fmt.Fprintf(&page, ".SS %s\n%s\n", roff(leaf.Summary()), roff(leaf.Help))
		for _, a := range leaf.Positional {
			fmt.Fprintf(&page, ".TP\n.I %s\n%s\n", roff(a.Summary()), roff(a.Help))
		}
		options(&page, leaf)
		if leaf.Detail != "" {
			page.WriteString(".PP\n")
			prose(&page, leaf.Detail)
		}
	}
	_, err := io.WriteString(w, page.String())
	return err
}

// options writes the flags of a command, without those of the program.
func options(page *strings.Builder, n *kong.Node) {
	for _, f := range n.Flags {
		if !f.Hidden {
			fmt.Fprintf(page, ".TP\n.B %s\n%s\n", roff(f.String()), roff(f.Help))
		}
	}
}

// prose writes help: lines that are indented stay as they are, others are filled.
func prose(page *strings.Builder, text string) {
	literal := false
	for line := range strings.SplitSeq(text, "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != literal && line != "" {
			literal = indented
			page.WriteString(map[bool]string{true: ".nf\n.RS 2\n", false: ".RE\n.fi\n.PP\n"}[literal])
		}
		switch {
		case line == "" && !literal:
			page.WriteString(".PP\n")
		case line != "":
			page.WriteString(roff(strings.TrimPrefix(line, "  ")) + "\n")
		}
	}
	if literal {
		page.WriteString(".RE\n.fi\n")
	}
}

// roff escapes a line.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}
