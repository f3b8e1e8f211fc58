package rego

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Error is one thing that is wrong with a policy.
type Error struct {
	Path string // of the module; "" where the error belongs to none
	Line int    // from 1; 0 where the error belongs to the whole module
	Col  int    // from 1; 0 where it is not known
	Text string // what is wrong and what would be right
}

// Error gives "path:line:col: text".
func (e Error) Error() string {
	switch {
	case e.Path == "":
		return e.Text
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.Path, e.Text)
	case e.Col == 0:
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Col, e.Text)
}

// Errors is everything that Load found wrong, by path and line.
type Errors []Error

// Error gives one error a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// add notes an error at a place.
func (es *Errors) add(loc *ast.Location, format string, args ...any) {
	e := Error{Text: fmt.Sprintf(format, args...)}
	if loc != nil {
		e.Path, e.Line, e.Col = loc.File, loc.Row, loc.Col
		if e.Line > 0 {
			e.Col = max(e.Col, 1) // OPA counts from 0 where a file ends behind its last line
		}
	}
	*es = append(*es, e)
}

// addOPA notes what OPA says, in our words where it is about a field or a built-in, and not at all
// where something was said of the same place.
func (es *Errors) addOPA(errs ast.Errors) {
	said := slices.Clone(*es)
	for _, e := range errs {
		if e.Location == nil || !slices.ContainsFunc(said, func(s Error) bool {
			return s.Path == e.Location.File && s.Line == e.Location.Row && s.Col == e.Location.Col
		}) {
			es.add(e.Location, "%s", opaText(e))
		}
	}
}

// notOfTypes tells an error of OPA's from those of its type checker.
func notOfTypes(e *ast.Error) bool { return e.Code != ast.TypeErr }

func opaText(e *ast.Error) string {
	if d, ok := e.Details.(*ast.RefErrInvalidDetail); ok {
		if key, isString := d.Ref[d.Pos].Value.(ast.String); isString && len(d.OneOf) > 0 {
			return unknownField(d.Ref[:d.Pos].String(), string(key), fieldNames(d.OneOf))
		}
	}
	if name, ok := strings.CutPrefix(e.Message, "undefined function "); ok {
		if why := unavailable[name]; why != "" {
			return fmt.Sprintf("%s is not available to policies: %s", name, why)
		}
		return e.Message
	}
	text := e.Message
	if e.Details != nil {
		text += " (" + strings.Join(trimmed(e.Details.Lines()), "; ") + ")"
	}
	return text
}

func trimmed(lines []string) []string {
	var out []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" && strings.Trim(l, "^") != "" {
			out = append(out, l)
		}
	}
	return out
}

func fieldNames(vs []ast.Value) []string {
	var names []string
	for _, v := range vs {
		if s, ok := v.(ast.String); ok && s != "" {
			names = append(names, string(s))
		}
	}
	slices.Sort(names)
	return names
}

func unknownField(of, field string, known []string) string {
	if of == "input.facts" && len(known) == 0 {
		return fmt.Sprintf("input.facts has no field %q; the configuration has no facts: "+
			"name its file in the section facts", field)
	}
	return fmt.Sprintf("%s has no field %q%s", of, field, suggest(field, known))
}

// sorted puts the errors into reading order, each once.
func (es Errors) sorted() Errors {
	slices.SortStableFunc(es, func(a, b Error) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), a.Line-b.Line, a.Col-b.Col,
			strings.Compare(a.Text, b.Text))
	})
	return slices.Compact(es)
}
