package rego

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// checkUse checks, in a compiled set, what rules refer to: data and rules that are not there,
// fields of the input that object.get asks for, and constants that a field never equals. OPA's own
// type checker has seen to plain references into the input by then.
func checkUse(c *ast.Compiler, schema *schemaNode, base map[string]any, errs *Errors) {
	for path, m := range c.Modules {
		if path == builtinPath {
			continue
		}
		u := &use{schema: schema, compiler: c, base: base, aliases: aliases(m), errs: errs}
		for _, r := range m.Rules {
			ast.WalkExprs(r, func(e *ast.Expr) bool {
				u.checkExpr(e)
				return false
			})
			ast.WalkBodies(r, func(b ast.Body) bool {
				u.checkNegations(b)
				return false
			})
			// The place is that of the whole term: the one of a reference's head may be of another
			// use of the same import. What OPA made of `some x in xs` has only its expression's.
			at := r.Location
			ast.NewGenericVisitor(func(x any) bool {
				switch x := x.(type) {
				case *ast.Expr:
					at = placed(x.Location, at)
				case *ast.Term:
					if ref, isRef := x.Value.(ast.Ref); isRef {
						u.checkData(placed(x.Location, at), ref)
					}
				}
				return false
			}).Walk(r)
		}
	}
}

// placed is the location, or another one where it names no file.
func placed(l, other *ast.Location) *ast.Location {
	if l == nil || l.File == "" {
		return other
	}
	return l
}

// CheckTests checks, in a set compiled with its tests, what these refer to: rules that are not
// there are undefined, so that `not` and `count` of them tell nothing; and inputs that no policy is
// ever given. It is for the packages below this one. The error is an Errors.
func CheckTests(c *ast.Compiler) error {
	var errs Errors
	schema, _ := inputSchema()
	for path, m := range c.Modules {
		if !IsTest(path) {
			continue
		}
		u := &use{schema: schema, compiler: c, aliases: aliases(m), errs: &errs}
		ast.WalkExprs(m, func(e *ast.Expr) bool {
			u.checkWith(e)
			return false
		})
		ast.WalkTerms(m, func(t *ast.Term) bool {
			if ref, isRef := t.Value.(ast.Ref); isRef && ref.HasPrefix(rootPackage) {
				u.checkData(t.Location, ref)
			}
			return false
		})
	}
	if len(errs) > 0 {
		return errs.sorted()
	}
	return nil
}

// use checks one compiled module.
type use struct {
	schema   *schemaNode
	compiler *ast.Compiler
	base     map[string]any
	aliases  map[ast.Var]*ast.Term
	errs     *Errors
}

// aliases collects the variables of a module that stand for a constant or a fixed reference. The
// compiler has given each local variable a name of its own.
func aliases(m *ast.Module) map[ast.Var]*ast.Term {
	out := map[ast.Var]*ast.Term{}
	ast.WalkExprs(m, func(e *ast.Expr) bool {
		if !e.IsEquality() || len(e.With) > 0 {
			return false
		}
		left, right := e.Operand(0), e.Operand(1)
		if _, isVar := left.Value.(ast.Var); !isVar {
			left, right = right, left
		}
		v, isVar := left.Value.(ast.Var)
		_, isAlias := right.Value.(ast.Var)
		if isVar && v.IsGenerated() && !isAlias {
			out[v] = right
		}
		return false
	})
	return out
}

// resolve follows an alias, if t is one.
func (u *use) resolve(t *ast.Term) *ast.Term {
	if v, isVar := t.Value.(ast.Var); isVar && u.aliases[v] != nil {
		return u.aliases[v]
	}
	return t
}

// inputPath returns the field names of a fixed reference into the input, or ok false.
func (u *use) inputPath(t *ast.Term) (path []string, ok bool) {
	ref, isRef := u.resolve(t).Value.(ast.Ref)
	if !isRef {
		return nil, false
	}
	switch head := ref[0].Value.(type) {
	case ast.Var:
		if !ref[0].Equal(ast.InputRootDocument) {
			alias := u.aliases[head]
			if alias == nil {
				return nil, false
			}
			if _, toVar := alias.Value.(ast.Var); toVar {
				return nil, false
			}
			if path, ok = u.inputPath(alias); !ok {
				return nil, false
			}
		}
	default:
		return nil, false
	}
	for _, step := range ref[1:] {
		name, isString := step.Value.(ast.String)
		if !isString {
			return nil, false
		}
		path = append(path, string(name))
	}
	return path, true
}

// checkExpr checks one expression for fields and constants that cannot be.
func (u *use) checkExpr(e *ast.Expr) {
	u.checkWith(e)
	if !e.IsCall() {
		return
	}
	op := e.Operator()
	switch {
	case op.Equal(ast.ObjectGet.Ref()):
		u.checkObjectGet(e)
	case op.Equal(ast.Member.Ref()):
		if path, ok := u.inputPath(e.Operand(0)); ok {
			for _, c := range elements(u.resolve(e.Operand(1)).Value) {
				u.checkConstant(e.Location, path, c)
			}
		}
		u.checkMembers(e, e.Operand(1))
	case op.Equal(ast.MemberWithKey.Ref()):
		u.checkMembers(e, e.Operand(2))
	case comparison(op):
		for i := range 2 {
			if path, ok := u.inputPath(e.Operand(i)); ok {
				u.checkConstant(e.Location, path, u.resolve(e.Operand(1-i)))
			}
		}
	}
}

// checkMembers checks that what an expression looks for something in has members, where it is data.
func (u *use) checkMembers(e *ast.Expr, in *ast.Term) {
	in = u.resolve(in)
	if ref, isRef := in.Value.(ast.Ref); isRef {
		u.checkData(placed(in.Location, e.Location), ref.Append(ast.VarTerm("member")))
	}
}

// checkNegations looks for `not f(input.x)`, where f may also be a comparison such as <, with a
// field that may be undefined. OPA fetches the arguments before it negates, so that the whole rule
// is undefined with them: a deny rule then denies nothing, which is the reverse of what is written.
// A body that asks for the field in another expression is taken to mean it.
func (u *use) checkNegations(b ast.Body) {
	fetched := fetches(b)
	for _, e := range b {
		if !e.Negated {
			continue
		}
		told := map[string]bool{}
		for _, field := range fetched.of(e) {
			text := fieldText(field)
			if u.mayBeUndefined(field) && !asksFor(b, field) && !told[text] {
				told[text] = true
				u.errs.add(e.Location, "where %s is undefined the whole rule is, and does nothing; "+
					"ask for it in a line before, or write `not` before a rule of your own that asks",
					text)
			}
		}
	}
}

// fetched is, for each variable that OPA made for an argument, the expression that it fetches the
// argument with.
type fetched map[ast.Var]*ast.Expr

func fetches(b ast.Body) fetched {
	out := fetched{}
	for _, e := range b {
		if !e.Generated || !e.IsCall() {
			continue
		}
		made := e.Operand(0)
		if operands := e.Operands(); !e.IsEquality() {
			made = operands[len(operands)-1] // the result of a call
		}
		if v, isVar := made.Value.(ast.Var); isVar {
			out[v] = e
		}
	}
	return out
}

// of lists the references that are fetched for an expression, also for the arguments of its
// arguments.
func (f fetched) of(e *ast.Expr) (refs []*ast.Term) {
	seen := map[*ast.Expr]bool{}
	var walk func(x *ast.Expr)
	walk = func(x *ast.Expr) {
		ast.WalkTerms(x, func(t *ast.Term) bool {
			switch v := t.Value.(type) {
			case ast.Ref:
				if x != e { // what stands in e itself is negated with it
					refs = append(refs, t)
				}
			case ast.Var:
				if from := f[v]; from != nil && !seen[from] {
					seen[from] = true
					walk(from)
				}
			case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension:
				return true // which is empty where its body is undefined
			}
			return false
		})
	}
	walk(e)
	return refs
}

// asksFor reports whether an expression of the body, as its author wrote it, is about the field.
func asksFor(b ast.Body, field *ast.Term) (found bool) {
	for _, e := range b {
		if e.Generated || e.Negated {
			continue
		}
		ast.WalkTerms(e, func(t *ast.Term) bool {
			found = found || t.Value.Compare(field.Value) == 0
			return found
		})
	}
	return found
}

// fieldText is the field as its author wrote it.
func fieldText(t *ast.Term) string {
	if t.Location != nil && len(t.Location.Text) > 0 {
		return string(t.Location.Text)
	}
	return t.String()
}

// mayBeUndefined reports whether a reference leads to a part of the input that is not always there.
func (u *use) mayBeUndefined(t *ast.Term) bool {
	ref, isRef := t.Value.(ast.Ref)
	if !isRef || !ref.HasPrefix(ast.InputRootRef) {
		return false
	}
	node := u.schema
	for _, step := range ref[1:] {
		name, isString := step.Value.(ast.String)
		next := node.Properties[string(name)]
		if !isString || next == nil || !slices.Contains(node.Required, string(name)) {
			return true
		}
		node = next
	}
	return false
}

// checkWith checks the inputs that an expression is evaluated with.
func (u *use) checkWith(e *ast.Expr) {
	for _, w := range e.With {
		path, ok := u.inputPath(w.Target)
		if !ok {
			continue
		}
		node, missing := u.schema.at(path)
		if missing > 0 {
			parent, _ := u.schema.at(path[:missing-1])
			of := strings.Join(append([]string{"input"}, path[:missing-1]...), ".")
			u.errs.add(w.Loc(), "%s", unknownField(of, path[missing-1], parent.names()))
			continue
		}
		u.checkGiven(w.Loc(), path, node, w.Value)
	}
}

// checkGiven checks a value that stands in for the node of the input at path, as far as it is
// constant.
func (u *use) checkGiven(at *ast.Location, path []string, node *schemaNode, value *ast.Term) {
	if node == nil {
		return
	}
	object, isObject := u.resolve(value).Value.(ast.Object)
	if !isObject {
		u.checkConstant(at, path, u.resolve(value))
		return
	}
	of := strings.Join(append([]string{"input"}, path...), ".")
	object.Foreach(func(k, v *ast.Term) {
		key, isString := k.Value.(ast.String)
		if !isString {
			return
		}
		field := node.Properties[string(key)]
		if field == nil && node.closed() {
			u.errs.add(at, "%s", unknownField(of, string(key), node.names()))
			return
		}
		u.checkGiven(at, slices.Concat(path, []string{string(key)}), field, v)
	})
}

func comparison(op ast.Ref) bool {
	for _, b := range []*ast.Builtin{ast.Equality, ast.Equal, ast.NotEqual, ast.LessThan,
		ast.LessThanEq, ast.GreaterThan, ast.GreaterThanEq} {
		if op.Equal(b.Ref()) {
			return true
		}
	}
	return false
}

// elements are the terms of a constant array or set.
func elements(v ast.Value) (out []*ast.Term) {
	collect := func(t *ast.Term) { out = append(out, t) }
	switch v := v.(type) {
	case *ast.Array:
		v.Foreach(collect)
	case ast.Set:
		v.Foreach(collect)
	}
	return out
}

// checkObjectGet checks object.get(input.x, "key" or ["a", "b"], default).
func (u *use) checkObjectGet(e *ast.Expr) {
	path, ok := u.inputPath(e.Operand(0))
	if !ok {
		return
	}
	keys := []*ast.Term{u.resolve(e.Operand(1))}
	if _, isArray := keys[0].Value.(*ast.Array); isArray {
		keys = elements(keys[0].Value)
	}
	for _, key := range keys {
		name, isString := key.Value.(ast.String)
		if !isString {
			return
		}
		parent, _ := u.schema.at(path)
		if parent == nil {
			return
		}
		of := strings.Join(append([]string{"input"}, path...), ".")
		path = append(path, string(name))
		if _, missing := u.schema.at(path); missing > 0 {
			u.errs.add(e.Location, "%s", unknownField(of, string(name), parent.names()))
			return
		}
	}
}

// checkConstant checks a comparison of the field at path with a constant.
func (u *use) checkConstant(at *ast.Location, path []string, constant *ast.Term) {
	field, _ := u.schema.at(path)
	if field == nil || field.Type == "" {
		return
	}
	name := "input." + strings.Join(path, ".")
	got := ""
	switch v := constant.Value.(type) {
	case ast.String:
		got = "string"
		if len(field.Enum) > 0 && !slices.Contains(field.Enum, string(v)) {
			u.errs.add(at, "%s is never %s%s", name, v, oneOf(string(v), field.Enum))
			return
		}
	case ast.Number:
		got = "integer"
	case ast.Boolean:
		got = "boolean"
	case ast.Null:
		got = "null"
	default:
		return
	}
	if got != field.Type {
		u.errs.add(at, "%s is of type %s and never compares with %v",
			name, field.Type, constant)
	}
}

func oneOf(wrong string, words []string) string {
	if near := nearest(wrong, words); near != "" {
		return "; did you mean \"" + near + "\"?"
	}
	return "; it is one of " + strings.Join(words, ", ")
}

// checkData checks that what a reference into data names with constants is there.
func (u *use) checkData(at *ast.Location, r ast.Ref) {
	if !r.HasPrefix(ast.DefaultRootRef) || len(r) < 2 {
		return
	}
	fixed := r.ConstantPrefix()
	if fixed.HasPrefix(rootPackage) {
		if len(u.compiler.GetRulesForVirtualDocument(fixed)) == 0 &&
			len(u.compiler.GetRulesWithPrefix(fixed)) == 0 {
			u.errs.add(at, "%s: no such rule or package is loaded", fixed)
		}
		return
	}
	u.checkShape(at, r[:1], r[1:], u.base, true)
}

// checkShape checks that steps lead on from the data that stands at path, and reports whether they
// do. A constant key must be there where all before it are constant, too, which always says. Behind
// one that is not, every value must be of a shape in which the next step finds something: a hold
// that somebody wrote as a text, and not as a list with it, would hold nothing.
func (u *use) checkShape(at *ast.Location, path, steps ast.Ref, here any, always bool) bool {
	if len(steps) == 0 {
		return true
	}
	step, rest := steps[0], steps[1:]
	name, byName := step.Value.(ast.String)
	if shape := wrongShape(here, step); shape != "" {
		want := "a list or an object"
		if byName {
			want = "an object"
		}
		u.errs.add(at, "%s is %s in the data that was loaded, where nothing is found by key, "+
			"so the rule would silently be undefined; make it %s", path, shape, want)
		return false
	}
	object, _ := here.(map[string]any)
	switch step.Value.(type) {
	case ast.String:
		next, has := object[string(name)]
		if !has && always {
			u.errs.add(at, "%s is not in the data that was loaded, so the rule would "+
				"silently be undefined; where that is meant, use object.get with a default",
				path.Append(step))
		}
		return !has || u.checkShape(at, path.Append(step), rest, next, always)
	case ast.Var, ast.Ref, ast.Call:
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if !u.checkShape(at, path.Append(ast.StringTerm(key)), rest, object[key], false) {
				return false
			}
		}
		list, _ := here.([]any)
		for i, next := range list {
			if !u.checkShape(at, path.Append(ast.InternedTerm(i)), rest, next, false) {
				return false
			}
		}
	}
	return true
}

// wrongShape says what data is in which a step of a reference never finds anything; "" if it may.
func wrongShape(data any, step *ast.Term) string {
	_, byName := step.Value.(ast.String)
	switch data.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case []any:
		if byName {
			return "an array"
		}
	}
	return ""
}
