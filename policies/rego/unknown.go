package rego

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

// A fact that is not known is absent from the input, and a rule that reads it is undefined: a deny
// rule then denies nothing, and `not` of it may even expire. So before anything goes while facts
// are unknown, OPA evaluates the user's rules partially, with these open. What comes back with a
// condition depends on one of them: of a deny rule it keeps, and of an expire rule it does not
// count. Rules that come to their answer without the unknown facts decide as always.

// confirm finds out whether a deletion depends on facts that are not known, and keeps it if so.
func (s *Set) confirm(
	ctx context.Context, in *Input, d gate.Decision, said said,
) (gate.Decision, error) {
	var open, expired []tier.Reason
	for _, r := range slices.Concat(said[answerExpire], said[answerExpireRemote]) {
		if strings.HasPrefix(r.Rule, builtinPath+":") {
			expired = append(expired, r) // it reads no facts
		}
	}
	for _, a := range s.asks(in.action) {
		if a.builtin {
			continue
		}
		parts, err := s.partial(ctx, a, in)
		if err != nil {
			return s.undecided(), err
		}
		for _, part := range parts {
			by, reason := s.numberOf(part)
			if by != nil && len(part) == 1 && a.kind != answerDeny {
				r, err := s.reason(*by, false, reason)
				if err != nil {
					return s.undecided(), ruleError(*by, a.kind, err)
				}
				expired = append(expired, r)
				continue
			}
			open = append(open, unknownReason(part, a.kind, by, in.unknown))
		}
	}
	denied := slices.ContainsFunc(open, func(r tier.Reason) bool { return r.Code == denyOpen })
	for i := range open {
		open[i].Code = tier.CodeFactUnknown
	}
	if !denied && len(expired) > 0 {
		d.Reasons = capped(expired)
		return d, nil
	}
	d = s.undecided()
	d.Reasons = capped(open)
	return d, nil
}

// partial evaluates one answer with the unknown facts open. Each part is the condition under which
// the answer has one more reason.
func (s *Set) partial(ctx context.Context, a ask, in *Input) ([]ast.Body, error) {
	compiler := s.compiler.QueryCompiler()
	element := a.ref.Append(ast.NewTerm(reasonVar))
	body, err := compiler.Compile(ast.NewBody(ast.NewExpr(ast.NewTerm(element))))
	if err != nil {
		return nil, fmt.Errorf("compile the question about unknown facts: %w", err)
	}
	unknown := make([]*ast.Term, len(in.unknown))
	for i, f := range in.unknown {
		unknown[i] = ast.NewTerm(factRef(f.Name))
	}
	e, err := s.placed(ctx, in, func(e *evaluation) error {
		if err := s.begin(e, body, compiler); err != nil {
			return err
		}
		defer e.end()
		parts, _, err := e.query.WithUnknowns(unknown).PartialRun(e.limit.ctx)
		if err = s.failure(e, err); err == nil {
			e.parts = parts
		}
		return err
	})
	return e.parts, err
}

// reasonVar is the variable that stands for [number of the rule, reason].
const reasonVar = ast.Var("r")

func factRef(name string) ast.Ref {
	return ast.Ref{ast.InputRootDocument, ast.StringTerm("facts"), ast.StringTerm(name)}
}

// numberOf finds the rule and the reason in a part, which has r = [number, reason]; nil where the
// rule cannot be told.
func (s *Set) numberOf(part ast.Body) (*rule, ast.Value) {
	for _, e := range part {
		if !e.IsEquality() || len(e.With) > 0 {
			continue
		}
		for i := range 2 {
			name, _ := e.Operand(i).Value.(ast.Var)
			pair, isArray := e.Operand(1 - i).Value.(*ast.Array)
			if name != reasonVar || !isArray || pair.Len() != 2 {
				continue
			}
			number, isNumber := pair.Elem(0).Value.(ast.Number)
			n, ok := number.Int()
			if isNumber && ok && n >= 0 && n < len(s.rules) {
				return &s.rules[n], pair.Elem(1).Value
			}
		}
	}
	return nil, nil
}

// denyOpen marks, inside confirm, the reasons that keep by themselves.
const denyOpen tier.Code = "deny"

// unknownReason says which facts an answer waits for. by is nil where the rule cannot be told.
func unknownReason(part ast.Body, kind string, by *rule, unknown []tier.UnknownFact) tier.Reason {
	var names, why []string
	for _, f := range unknown {
		named := false
		ast.WalkRefs(part, func(r ast.Ref) bool {
			named = named || r.HasPrefix(factRef(f.Name))
			return named
		})
		if named {
			names, why = append(names, "input.facts."+f.Name), append(why, f.Name+" "+f.Why)
		}
	}
	if len(names) == 0 { // it reads them by another name, or all together
		names = []string{"input.facts"}
		for _, f := range unknown {
			why = append(why, f.Name+" "+f.Why)
		}
	}
	r := tier.Reason{Code: tier.CodeExpire, Text: fmt.Sprintf("a rule of %s needs %s: %s", kind,
		strings.Join(names, ", "), strings.Join(why, "; "))}
	if kind == answerDeny {
		r.Code = denyOpen
	}
	if by != nil {
		r.Rule, r.Title = by.where, by.title
	} else if l := part.Loc(); l != nil {
		r.Rule = place(l)
	}
	return r
}
