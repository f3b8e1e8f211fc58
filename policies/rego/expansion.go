package rego

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// A value of Rego may stand in another any number of times, for the price of a pointer. But whoever
// hashes, compares or converts it goes through it as if it were written out, within one expression,
// which nothing bounds: [x, x], put into itself like that forty times, takes for ever. Rego has no
// recursion, so how often a value is put into others can be read off the text.

// partsMax is how many parts a value may have when it is written out, as far as the text says. To
// go through so many takes some tenths of a second.
const partsMax = 1e6

// parts is how many parts a value has at most: own, and arg times those of the largest argument of
// the function in which it is made. Elements that are iterated over count as one.
type parts struct{ own, arg float64 }

var onePart = parts{own: 1}

func (p parts) plus(q parts) parts { return parts{p.own + q.own, p.arg + q.arg} }
func (p parts) or(q parts) parts   { return parts{max(p.own, q.own), max(p.arg, q.arg)} }

// expansion computes the parts of values in a compiled set.
type expansion struct {
	compiler *ast.Compiler
	rules    map[*ast.Rule]parts
	err      *ast.Error // the first
}

// withExpansion has a compiler refuse values that are put into themselves, as it were, until nobody
// can go through them any more. It is asked once it is known that nothing recurs and each variable
// is bound before it is used, and before OPA works out the types, which grow in the same way.
func withExpansion(c *ast.Compiler) *ast.Compiler {
	return c.WithStageAfterID(ast.StageCheckRecursion, ast.CompilerStageDefinition{
		Name: "CheckExpansion", MetricName: "compile_stage_check_expansion", Stage: checkExpansion,
	})
}

func checkExpansion(c *ast.Compiler) *ast.Error {
	x := &expansion{compiler: c, rules: map[*ast.Rule]parts{}}
	for _, path := range paths(c.Modules) {
		for _, r := range c.Modules[path].Rules {
			if x.rule(r); x.err != nil {
				return x.err
			}
		}
	}
	return nil
}

// rule is the parts of what one rule, or one clause of a function, gives.
func (x *expansion) rule(r *ast.Rule) (out parts) {
	if p, known := x.rules[r]; known {
		return p
	}
	for part := r; part != nil; part = part.Else {
		v := values{x, map[ast.Var]parts{}}
		for _, a := range part.Head.Args {
			v.bind(a, parts{arg: 1})
		}
		v.body(part.Body)
		sum := parts{}
		for _, t := range append([]*ast.Term{part.Head.Key, part.Head.Value},
			part.Head.Reference[1:]...) {
			if t != nil {
				sum = sum.plus(v.term(t, part.Location))
			}
		}
		out = out.or(sum)
	}
	x.rules[r] = out
	return out
}

// rulesOf is the parts of what a reference to rules gives, or of a function's result. Of rules that
// give one value between them the largest counts; what others give comes together.
func (x *expansion) rulesOf(ref ast.Ref) (out parts, some bool) {
	largest := map[string]parts{}
	for _, r := range x.compiler.GetRulesDynamic(ref) {
		p, name := x.rule(r), r.Ref().String()
		counted := largest[name] // is in out already
		if r.Head.RuleKind() == ast.SingleValue && r.Ref().IsGround() {
			p = p.or(counted)
			largest[name] = p
		}
		out = parts{out.own + p.own - counted.own, out.arg + p.arg - counted.arg}
		some = true
	}
	return out, some
}

// values are the variables of a rule that are bound, with their parts.
type values struct {
	*expansion
	known map[ast.Var]parts
}

func (v values) body(b ast.Body) {
	for _, e := range b {
		switch terms := e.Terms.(type) {
		case *ast.Term:
			v.term(terms, e.Location)
		case *ast.Every:
			v.bind(terms.Value, v.term(terms.Domain, e.Location))
			v.body(terms.Body)
		case []*ast.Term:
			if e.IsEquality() {
				v.unify(e.Operand(0), e.Operand(1), e.Location)
				continue
			}
			args := e.Operands()
			if n := v.arity(e.Operator()); n < len(args) {
				v.bind(args[n], v.call(e.Operator(), args[:n], e.Location))
			} else {
				v.call(e.Operator(), args, e.Location)
			}
		}
	}
}

// unify binds the variables of two terms to the parts of what stands in their place.
func (v values) unify(a, b *ast.Term, at *ast.Location) {
	left, isArray := a.Value.(*ast.Array)
	right, both := b.Value.(*ast.Array)
	if isArray && both && left.Len() == right.Len() {
		for i := range left.Len() {
			v.unify(left.Elem(i), right.Elem(i), at)
		}
		return
	}
	ofA, ofB := v.term(a, at), v.term(b, at)
	v.bind(a, ofB)
	v.bind(b, ofA)
}

// bind gives parts to those variables of a term that have none yet.
func (v values) bind(t *ast.Term, p parts) {
	ast.WalkTerms(t, func(t *ast.Term) bool {
		switch name := t.Value.(type) {
		case ast.Var:
			if _, bound := v.known[name]; !bound {
				v.known[name] = p
			}
		case ast.Ref, ast.Call, *ast.ArrayComprehension, *ast.SetComprehension,
			*ast.ObjectComprehension:
			return true // which binds nothing outside
		}
		return false
	})
}

// term is the parts of a term, of which the first that has too many is told of.
func (v values) term(t *ast.Term, at *ast.Location) parts {
	at = placed(t.Location, at)
	sum := onePart
	add := func(t *ast.Term) { sum = sum.plus(v.term(t, at)) }
	switch value := t.Value.(type) {
	case ast.Var:
		if p, bound := v.known[value]; bound {
			return p
		}
		return onePart
	case ast.Ref:
		if value.HasPrefix(ast.DefaultRootRef) {
			if p, some := v.rulesOf(value); some {
				return p
			}
			return onePart
		}
		return v.term(value[0], at)
	case ast.Call:
		return v.call(value[0].Value.(ast.Ref), value[1:], at)
	case *ast.Array:
		value.Foreach(add)
	case ast.Set:
		value.Foreach(add)
	case ast.Object:
		value.Foreach(func(key, of *ast.Term) { add(key); add(of) })
	case *ast.ArrayComprehension:
		v.body(value.Body)
		add(value.Term)
	case *ast.SetComprehension:
		v.body(value.Body)
		add(value.Term)
	case *ast.ObjectComprehension:
		v.body(value.Body)
		add(value.Key)
		add(value.Value)
	}
	return v.bounded(sum, at)
}

// arity is how many arguments a function has; more operands than that is one for its result.
func (v values) arity(op ast.Ref) int {
	if b := ast.BuiltinMap[op.String()]; b != nil {
		return b.Decl.Arity()
	}
	for _, r := range v.compiler.GetRulesExact(op) {
		return len(r.Head.Args)
	}
	return 0
}

// call is the parts of a function's result. What a built-in one makes has all of its arguments in
// it, as far as is known here, where it is no single number.
func (v values) call(op ast.Ref, args []*ast.Term, at *ast.Location) parts {
	all, most := onePart, parts{}
	for _, a := range args {
		p := v.term(a, at)
		all, most = all.plus(p), most.or(p)
	}
	b := ast.BuiltinMap[op.String()]
	if b == nil {
		f, _ := v.rulesOf(op)
		return v.bounded(parts{f.own + f.arg*most.own, f.arg * most.arg}, at)
	}
	switch b.Decl.Result().(type) {
	case types.Number, types.Boolean, types.Null, nil:
		return onePart
	}
	return v.bounded(all, at)
}

// bounded tells of a value with too many parts, where it is made.
func (v values) bounded(p parts, at *ast.Location) parts {
	if v.err == nil && max(p.own, p.arg) > partsMax {
		v.err = ast.NewError(ast.CompileErr, at, "written out this value has more than %d parts, since "+
			"what it is made of stands in it again and again, and whatever reads it would take for "+
			"ever; use each value once in another, and refer to it elsewhere", int(partsMax))
	}
	return p
}
