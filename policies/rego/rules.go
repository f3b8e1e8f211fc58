package rego

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tierd/tierd/runtime/tier"
)

// rule is one rule that can answer.
type rule struct {
	where  string    // file:line
	title  string    // of the annotations nearest to it; "" if none has one
	code   tier.Code // of its reasons that name none
	answer int       // index in Set.answers
}

// answer is one set to ask for: the numbered copy of a package's rules of one name.
type answer struct {
	kind    string
	builtin bool
	ref     ast.Ref
	plain   ast.Ref // of the rules as their author wrote them
}

// numberedPrefix begins the names of the rules that instrument adds.
const numberedPrefix = "__tierd_"

// FactsRead are the names of the facts that the user's rules read by name, ascending.
func (s *Set) FactsRead() []string {
	names := map[string]bool{}
	for path, m := range s.compiler.Modules {
		if path == builtinPath {
			continue
		}
		ast.WalkRefs(m, func(r ast.Ref) bool {
			if r.HasPrefix(factRef("")[:2]) && len(r) > 2 {
				if name, isString := r[2].Value.(ast.String); isString {
					names[string(name)] = true
				}
			}
			return false
		})
	}
	return slices.Sorted(maps.Keys(names))
}

// instrument adds to each module, for every rule that can answer, a copy which puts the rule's
// number before its reason: beside
//
//	deny contains reason if { ... }
//
// stands
//
//	__tierd_deny contains [7, reason] if { ... }
//
// The copies are what is asked. So each reason tells its rule, at the price of a plain evaluation;
// tracing would cost more, and the contract's own sets stay as they are for whoever refers to them.
func (s *Set) instrument(modules map[string]*ast.Module) {
	s.instrumentKinds(modules, func(path string) []string {
		if path == builtinPath {
			return builtinAnswers
		}
		return answers
	})
}

// instrumentKinds does so for the rules whose names are the kinds of their file.
func (s *Set) instrumentKinds(modules map[string]*ast.Module, kindsOf func(string) []string) {
	notes, _ := ast.BuildAnnotationSet(slices.Collect(maps.Values(modules)))
	for _, path := range paths(modules) {
		m := modules[path]
		kinds := kindsOf(path)
		if m.Package.Path.HasPrefix(libPackage) {
			continue
		}
		for _, r := range slices.Clone(m.Rules) {
			kind := ruleName(r)
			if !slices.Contains(kinds, kind) {
				continue
			}
			m.Rules = append(m.Rules, numbered(r, len(s.rules)))
			code, title := annotated(notes, r, kind)
			a := answer{kind: kind, builtin: path == builtinPath,
				ref:   m.Package.Path.Append(ast.StringTerm(numberedPrefix + kind)),
				plain: m.Package.Path.Append(ast.StringTerm(kind))}
			at := slices.IndexFunc(s.answers, func(b answer) bool { return b.ref.Equal(a.ref) })
			if at < 0 {
				at = len(s.answers)
				s.answers = append(s.answers, a)
			}
			s.rules = append(s.rules, rule{where: place(r.Location), title: title, code: code,
				answer: at})
		}
	}
}

// paths are the keys of modules, ascending, after the built-in one.
func paths(modules map[string]*ast.Module) []string {
	return slices.SortedFunc(maps.Keys(modules), func(a, b string) int {
		switch {
		case a == builtinPath && b != a:
			return -1
		case b == builtinPath && a != b:
			return 1
		}
		return strings.Compare(a, b)
	})
}

// numbered returns the copy of r that puts n before each reason.
func numbered(r *ast.Rule, n int) *ast.Rule {
	c := r.Copy()
	name := numberedPrefix + ruleName(r)
	key := ast.ArrayTerm(ast.InternedTerm(n), c.Head.Key)
	key.Location = c.Head.Key.Location
	c.Head.Key = key
	c.Head.Name = ast.Var(name)
	c.Head.SetRef(ast.Ref{ast.VarTerm(name).SetLocation(r.Head.Location)})
	c.Annotations = nil
	return c
}

// annotated gives the rule's code, which is custom.code of the annotations nearest to it that have
// one, or else what its kind says; and the nearest title.
func annotated(notes *ast.AnnotationSet, r *ast.Rule, kind string) (code tier.Code, title string) {
	if notes != nil {
		for _, ref := range notes.Chain(r) {
			if ref.Annotations == nil {
				continue
			}
			word, isString := ref.Annotations.Custom["code"].(string)
			if isString && code == "" {
				code = tier.Code(word)
			}
			if title == "" {
				title = strings.Join(strings.Fields(ref.Annotations.Title), " ")
			}
		}
	}
	switch {
	case code != "":
	case kind == answerDeny:
		code = tier.CodeDenied
	default:
		code = tier.CodeExpire
	}
	return code, title
}
