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
type parts struct {
	own, arg float64
	of       *parts // what each of its elements has; nil: no less than itself, as far as is known
}

var onePart = parts{own: 1}

// with is p with one more element.
func (p parts) with(e parts) parts {
	of := e
	if p.of != nil {
		of = p.of.or(e)
	}
	return parts{p.own + e.own, p.arg + e.arg, &of}
}

// beside is a value with the elements of both.
func (p parts) beside(q parts) parts {
	of := p.below(1).or(q.below(1))
	return parts{p.own + q.own, p.arg + q.arg, &of}
}

func (p parts) or(q parts) parts {
	out := parts{own: max(p.own, q.own), arg: max(p.arg, q.arg)}
	if p.of != nil || q.of != nil {
		of := p.below(1).or(q.below(1))
		out.of = &of
	}
	return out
}

// below is what stands in p that many levels down.
func (p parts) below(levels int) parts {
	for ; levels > 0 && p.of != nil; levels-- {
		p = *p.of
	}
	return p
}

// given is what a function gives whose largest argument has that many parts.
func (p parts) given(largest parts) parts {
	out := parts{own: p.own + p.arg*largest.own, arg: p.arg * largest.arg}
	if p.of != nil {
		of := p.of.given(largest)
		out.of = &of
	}
	return out
}

// expansion computes the parts of values in a compiled set.
type expansion struct {
	compiler *ast.Compiler
	rules    map[*ast.Rule]ruleParts
	err      *ast.Error // the first
}

// ruleParts are those of what one rule, or one clause of a function, gives.
type ruleParts struct {
	value parts // of the rule, or of an element of the set to which it adds one
	all   parts // with the keys under which it stands
	depth int   // how long a reference is that gives the value
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
	x := &expansion{compiler: c, rules: map[*ast.Rule]ruleParts{}}
	for _, path := range paths(c.Modules) {
		for _, r := range c.Modules[path].Rules {
			if x.rule(r); x.err != nil {
				return x.err
			}
		}
	}
	return nil
}

// rule computes the parts of a rule, once.
func (x *expansion) rule(r *ast.Rule) ruleParts {
	if p, known := x.rules[r]; known {
		return p
	}
	out := ruleParts{depth: len(r.Ref())}
	if r.Head.RuleKind() == ast.MultiValue {
		out.depth++
	}
	for part := r; part != nil; part = part.Else {
		v := values{x, map[ast.Var]parts{}}
		for _, a := range part.Head.Args {
			v.bind(a, parts{arg: 1})
		}
		v.body(part.Body)
		value, all := part.Head.Value, parts{}
		if value == nil {
			value = part.Head.Key
		}
		for _, t := range append([]*ast.Term{part.Head.Key, part.Head.Value},
			part.Head.Reference[1:]...) {
			if t == nil {
				continue
			}
			p := v.term(t, part.Location)
			if all = all.with(p); t == value {
				out.value = out.value.or(p)
			}
		}
		out.all = out.all.or(all)
	}
	x.rules[r] = out
	return out
}

// at is what a reference of that length to the rule gives.
func (r ruleParts) at(length int) parts {
	p := r.value.below(length - r.depth)
	for range r.depth - length {
		p = parts{r.all.own, r.all.arg, new(p)}
	}
	return p
}

// rulesOf is the parts of what a reference to rules gives, or of a function's result. Where that is
// what one of them gives, the largest counts, as it does of rules that have one value between them;
// what others give comes together.
func (x *expansion) rulesOf(ref ast.Ref) (out parts, some bool) {
	var one parts
	largest := map[string]parts{}
	for _, r := range x.compiler.GetRulesDynamicWithOpts(ref, ast.RulesOptions{}) {
		some = true
		p := x.rule(r)
		at := p.at(len(ref))
		if len(ref) >= p.depth {
			one = one.or(at)
			continue
		}
		name := r.Ref().String()
		counted := largest[name] // is in out already
		if r.Head.RuleKind() == ast.SingleValue && r.Ref().IsGround() {
			at = at.or(counted)
			largest[name] = at
		}
		out = out.beside(at)
		out.own, out.arg = out.own-counted.own, out.arg-counted.arg
	}
	return out.beside(one), some
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
			v.bind(terms.Value, v.term(terms.Domain, e.Location).below(1))
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
	add := func(t *ast.Term) { sum = sum.with(v.term(t, at)) }
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
		return v.term(value[0], at).below(len(value) - 1)
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
	all, largest, of := onePart, parts{}, make([]parts, len(args))
	for i, a := range args {
		of[i] = v.term(a, at)
		all, largest = all.with(of[i]), largest.or(of[i])
	}
	b := ast.BuiltinMap[op.String()]
	if b == nil {
		f, _ := v.rulesOf(op)
		return v.bounded(f.given(largest), at)
	}
	if b.Name == ast.ObjectGet.Name && len(args) == b.Decl.Arity() { // at a key, or a path of them
		levels := 1
		if path, isArray := args[1].Value.(*ast.Array); isArray {
			levels = path.Len()
		}
		return of[0].below(levels).or(of[2])
	}
	switch b.Decl.Result().(type) {
	case types.Number, types.Boolean, types.Null, nil:
		return onePart
	}
	all.of = nil
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
