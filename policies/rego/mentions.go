package rego

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Mentions are the things of tierd's that policies and their data speak of by name: a simulation
// must have them, or the rules about them are never tried.
type Mentions struct {
	Tables   []string        // names
	Logs     []string        // ids
	Patterns []string        // for names of tables
	Spans    []time.Duration // after which something may change
}

var (
	tableNameRef = ast.MustParseRef("input.table.name")
	logIDRef     = ast.MustParseRef("input.log.id")
)

// spanMin is the shortest time that counts as a span of data's life, and not as a count.
const spanMin = time.Minute

// Mentioned finds what the modules, tests left out, and data mention: constants that are compared
// with input.table.name or input.log.id, keys of data that are looked up by them, patterns, and
// durations. Each list ascends. What cannot be parsed is passed over.
func Mentioned(modules []Module, data map[string]any) Mentions {
	m := &mentions{data: data, tables: map[string]bool{}, logs: map[string]bool{},
		patterns: map[string]bool{}, spans: map[time.Duration]bool{}}
	for _, mod := range modules {
		var errs Errors
		if IsTest(mod.Path) {
			continue
		}
		if parsed := parseModule(mod, &errs); parsed != nil {
			m.module(parsed)
		}
	}
	m.value(data)
	return Mentions{slices.Sorted(maps.Keys(m.tables)), slices.Sorted(maps.Keys(m.logs)),
		slices.Sorted(maps.Keys(m.patterns)), slices.Sorted(maps.Keys(m.spans))}
}

type mentions struct {
	data                   map[string]any
	tables, logs, patterns map[string]bool
	spans                  map[time.Duration]bool
}

func (m *mentions) module(parsed *ast.Module) {
	ast.WalkExprs(parsed, func(e *ast.Expr) bool {
		operands := e.Operands()
		for i, o := range operands {
			ref, isRef := o.Value.(ast.Ref)
			if !isRef {
				continue
			}
			for j, other := range operands {
				if s, isString := other.Value.(ast.String); isString && i != j {
					m.name(ref, string(s))
				}
			}
		}
		return false
	})
	ast.WalkRefs(parsed, func(r ast.Ref) bool {
		m.lookedUp(r)
		return false
	})
	ast.WalkTerms(parsed, func(t *ast.Term) bool {
		switch v := t.Value.(type) {
		case ast.Number:
			if n, ok := v.Int64(); ok {
				m.span(time.Duration(n))
			}
		case ast.String:
			m.text(string(v))
		}
		return false
	})
}

func (m *mentions) name(ref ast.Ref, s string) {
	switch {
	case ref.Equal(tableNameRef):
		m.tables[s] = true
	case ref.Equal(logIDRef):
		m.logs[s] = true
	}
}

// lookedUp takes the keys of data.a.b from a reference data.a.b[input.table.name].
func (m *mentions) lookedUp(r ast.Ref) {
	if len(r) < 2 || !r[0].Equal(ast.DefaultRootDocument) {
		return
	}
	var at any = m.data
	for _, t := range r[1:] {
		object, _ := at.(map[string]any)
		switch v := t.Value.(type) {
		case ast.String:
			at = object[string(v)]
		case ast.Ref:
			for _, key := range slices.Sorted(maps.Keys(object)) {
				m.name(v, key)
			}
			return
		default:
			return
		}
	}
}

// value takes patterns and durations from data.
func (m *mentions) value(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			m.text(key)
			m.value(child)
		}
	case []any:
		for _, child := range v {
			m.value(child)
		}
	case string:
		m.text(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			m.span(time.Duration(n))
		}
	case int:
		m.span(time.Duration(v))
	case int64:
		m.span(time.Duration(v))
	}
}

func (m *mentions) text(s string) {
	if d, err := time.ParseDuration(s); err == nil {
		m.span(d)
	}
	if strings.ContainsRune(s, '*') && !strings.ContainsAny(s, " %/") && len(s) > 1 {
		m.patterns[s] = true
	}
}

// span takes a duration that may be one: at least a minute, and at most a hundred years.
func (m *mentions) span(d time.Duration) {
	if d >= spanMin && d <= 100*366*24*time.Hour {
		m.spans[d] = true
	}
}
