package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/runtime/api"
)

// output is the flag of every command that prints data.
type output struct {
	Output string `short:"o" default:"table" enum:"table,json,yaml" env:"TIERD_OUTPUT" help:"Form of what is printed: ${enum}."`
}

// print writes v as JSON or YAML, which are exact, or calls table, which is for people.
func (o output) print(a *app, v any, table func(p *page)) error {
	switch o.Output {
	case "json":
		return api.Encode(a.stdout, v)
	case "yaml":
		return encodeYAML(a.stdout, v)
	}
	p := &page{colour: screen.Colours(a.stdout, a.lookupEnv)}
	table(p)
	_, err := p.WriteTo(a.stdout)
	return err
}

// encodeYAML writes the JSON of v as YAML, with the keys in the same order.
func encodeYAML(w io.Writer, v any) error {
	var text bytes.Buffer
	if err := api.Encode(&text, v); err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text.Bytes(), &doc); err != nil {
		return fmt.Errorf("print YAML: %w", err)
	}
	block(&doc)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	return enc.Encode(&doc)
}

// block takes the style of JSON from the nodes. Empty lists and mappings have no other.
func block(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		block(c)
	}
}

// page collects what a command prints for people: lines, and tables whose columns align. What a
// terminal would act upon is printed as an escape. Like the buffer that it is, it takes everything.
type page struct {
	bytes.Buffer
	colour bool
}

// line prints one line.
func (p *page) line(format string, args ...any) {
	p.print(fmt.Sprintf(format, args...), "", "")
}

// print prints one line between two sequences for the terminal.
func (p *page) print(text, before, after string) {
	_, _ = fmt.Fprintf(p, "%s%s%s\n", before, screen.Text(text), after)
}

// indented prints each line of the text two spaces further in.
func (p *page) indented(text string) {
	for line := range strings.Lines(text) {
		p.line("  %s", strings.TrimRight(line, "\n"))
	}
}

// alarm prints one line that wants an operator.
func (p *page) alarm(format string, args ...any) {
	before, after := "", ""
	if p.colour {
		before, after = "\x1b[31m", "\x1b[0m"
	}
	p.print(fmt.Sprintf(format, args...), before, after)
}

// table prints rows below a head, each cell separated by a tab. Without rows it prints nothing.
func (p *page) table(head string, rows []string) {
	if len(rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "%s\n%s\n", head, strings.Join(rows, "\n"))
	_ = w.Flush()
}

// row joins cells for table.
func row(cells ...string) string {
	fit := make([]string, len(cells))
	for i, c := range cells {
		fit[i] = screen.Line(c)
	}
	return strings.Join(fit, "\t")
}
