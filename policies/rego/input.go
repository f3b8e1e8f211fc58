package rego

import (
	"fmt"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tierd/tierd/policies/gate"
)

// InputJSON is the input that policies see of the facts, as the schema describes it. Keys ascend.
func InputJSON(f *gate.Facts) ([]byte, error) {
	if err := checkWords(f); err != nil {
		return nil, err
	}
	facts, err := factsTerm(f.Extern)
	if err != nil {
		return nil, err
	}
	var of [membersMax]member
	w := inputText{text: append(make([]byte, 0, 1024), '{')}
	w.members(append(of[:0], ofWord("action", f.Action), ofTerm("facts", facts)))
	w.object("log", logMembers(of[:0], &f.Log))
	w.object("node", nodeMembers(of[:0], &f.Node))
	w.members(append(of[:0], ofNumber("now_ns", f.Now)))
	w.object("segment", segmentMembers(of[:0], f))
	w.object("table", tableMembers(of[:0], f))
	if w.err != nil {
		return nil, fmt.Errorf("input: %w", w.err)
	}
	return append(w.text, '}'), nil
}

// inputOf builds the input.
func inputOf(f *gate.Facts) (ast.Value, error) {
	return inputWith(f, &terms{})
}

// inputWith builds the input with what is kept of the last one. Facts with a word that the schema
// does not know are an error, so that no rule decides on a state it was not written for.
func inputWith(f *gate.Facts, kept *terms) (ast.Value, error) {
	if err := checkWords(f); err != nil {
		return nil, err
	}
	table, log := kept.of(f)
	facts, err := factsTerm(f.Extern)
	if err != nil {
		return nil, err
	}
	return objectOf([]member{
		ofWord("action", f.Action),
		ofTerm("facts", facts),
		ofTerm("log", log),
		ofTerm("node", ast.NewTerm(objectOf(nodeMembers(nil, &f.Node)))),
		ofNumber("now_ns", f.Now),
		ofTerm("segment", ast.NewTerm(objectOf(segmentMembers(nil, f)))),
		ofTerm("table", table),
	}), nil
}

func tableTerm(f *gate.Facts) *ast.Term { return ast.NewTerm(objectOf(tableMembers(nil, f))) }

func logTerm(l *gate.LogFacts) *ast.Term { return ast.NewTerm(objectOf(logMembers(nil, l))) }

// constant is the term of a name or word of the schema, made once: half of what an input would
// otherwise be made of. Terms of inputs are only read.
func constant(s string) *ast.Term {
	if t := constants()[s]; t != nil {
		return t
	}
	return ast.StringTerm(s)
}

// constants are the terms of all names and words of the schema.
var constants = sync.OnceValue(func() map[string]*ast.Term {
	out := map[string]*ast.Term{}
	root, _ := inputSchema()
	var collect func(n *schemaNode)
	collect = func(n *schemaNode) {
		for name, sub := range n.Properties {
			out[name] = ast.StringTerm(name)
			collect(sub)
		}
		for _, word := range n.Enum {
			out[word] = ast.StringTerm(word)
		}
	}
	collect(root)
	return out
})

// checkWords compares the facts that are words with the schema.
func checkWords(f *gate.Facts) error {
	for _, w := range []struct{ path, word string }{
		{"action", string(f.Action)},
		{"table.disable_policy", string(f.Table.DisablePolicy)},
		{"table.local_delete", string(f.Safety.DropWay)},
		{"log.layout", string(f.Log.Layout)},
		{"log.tier_state", string(f.Log.State)},
	} {
		if known := words()[w.path]; !slices.Contains(known, w.word) {
			return fmt.Errorf("input.%s is %q%s", w.path, w.word, oneOf(w.word, known))
		}
	}
	return nil
}
