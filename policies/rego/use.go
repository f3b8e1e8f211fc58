package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// checkUse checks, in a compiled set, what rules refer to: data and rules that are not there,
// fields of the input that object.get asks for, and constants that a field never equals. OPA's own
// type checker has seen to plain references into the input by then.
func checkUse(c *ast.Compiler, base map[string]any, errs *Errors) {
	schema, _ := inputSchema()
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
			ast.WalkRefs(r, func(ref ast.Ref) bool {
				u.checkData(ref)
				return false
			})
		}
	}
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
	for _, w := range e.With {
		path, ok := u.inputPath(w.Target)
		if _, missing := u.schema.at(path); ok && missing > 0 {
			parent, _ := u.schema.at(path[:missing-1])
			of := strings.Join(append([]string{"input"}, path[:missing-1]...), ".")
			u.errs.add(e.Location, "%s", unknownField(of, path[missing-1], parent.names()))
		}
	}
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
				u.checkConstant(e, path, c)
			}
		}
	case comparison(op):
		for i := range 2 {
			if path, ok := u.inputPath(e.Operand(i)); ok {
				u.checkConstant(e, path, u.resolve(e.Operand(1-i)))
			}
		}
	}
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
func (u *use) checkConstant(e *ast.Expr, path []string, constant *ast.Term) {
	field, _ := u.schema.at(path)
	if field == nil {
		return
	}
	name := "input." + strings.Join(path, ".")
	got := ""
	switch v := constant.Value.(type) {
	case ast.String:
		got = "string"
		if len(field.Enum) > 0 && !slices.Contains(field.Enum, string(v)) {
			u.errs.add(e.Location, "%s is never %s%s", name, v, oneOf(string(v), field.Enum))
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
		u.errs.add(e.Location, "%s is of type %s and never compares with %v",
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
func (u *use) checkData(r ast.Ref) {
	if !r.HasPrefix(ast.DefaultRootRef) || len(r) < 2 {
		return
	}
	fixed := r.ConstantPrefix()
	if fixed.HasPrefix(rootPackage) {
		if len(u.compiler.GetRulesForVirtualDocument(fixed)) == 0 &&
			len(u.compiler.GetRulesWithPrefix(fixed)) == 0 {
			u.errs.add(r[0].Location, "%s: no such rule or package is loaded", fixed)
		}
		return
	}
	var here any = u.base
	for i, step := range fixed[1:] {
		object, isObject := here.(map[string]any)
		name, isString := step.Value.(ast.String)
		if !isObject || !isString {
			return
		}
		next, has := object[string(name)]
		if !has {
			u.errs.add(r[0].Location, "%s is not in the data that was loaded, so the rule would "+
				"silently be undefined; where that is meant, use object.get with a default",
				fixed[:i+2])
			return
		}
		here = next
	}
}
