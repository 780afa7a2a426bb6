// Package report shows results: tables, figures and self-contained HTML pages.
//
// It knows nothing of what it shows. A [Table] holds numbers and prints them as text, HTML or JSON; a
// [Figure] is a grid of panels ([Lines], [Scatter], [Strip], [Bars], [Ranks], [Tree], [Picture]) and becomes PNG and SVG; a
// [Page] gathers both in one HTML file that needs neither network nor script. [Summarize] and [Rate] compute what
// tables over repeated runs need.
//
// Laws:
//   - the same value gives the same bytes: nothing here reads a clock, a map's order or a random number;
//   - text is shown literally, whatever it contains;
//   - what cannot be drawn (NaN, infinities, non-positive values on a log axis) leaves a gap, never a wrong mark;
//   - a file appears complete or not at all, and a failed write is an error.
package report
