package rego

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tierd/tierd/runtime/tier"
)

// The bounds of what policies may say in one decision.
const (
	reasonsMax  = 64   // of one kind
	msgBytesMax = 1024 // of one reason
)

// reasonShape begins every error about what a rule gave for a reason.
const reasonShape = `a reason is a string or {"msg": ..., "code": ...}`

// reasons reads one answer: a set of [number of the rule, reason].
func (s *Set) reasons(a ask, v ast.Value) ([]tier.Reason, error) {
	set, isSet := v.(ast.Set)
	if !isSet {
		return nil, fmt.Errorf("%s is undefined or no set", a.ref)
	}
	var out []tier.Reason
	err := set.Iter(func(t *ast.Term) error {
		pair, isArray := t.Value.(*ast.Array)
		if !isArray || pair.Len() != 2 {
			return fmt.Errorf("%s: unexpected element %v", a.ref, t)
		}
		number, isNumber := pair.Elem(0).Value.(ast.Number)
		n, ok := number.Int()
		if !isNumber || !ok || n < 0 || n >= len(s.rules) {
			return fmt.Errorf("%s: unexpected rule number %v", a.ref, pair.Elem(0))
		}
		r, err := s.reason(s.rules[n], a.builtin, pair.Elem(1).Value)
		if err != nil {
			return ruleError(s.rules[n], a.kind, err)
		}
		out = append(out, r)
		return nil
	})
	return out, err
}

// ruleError says which rule gave what is no reason.
func ruleError(by rule, kind string, err error) error {
	return fmt.Errorf("%s: %s: %w", by.where, kind, err)
}

// reason reads one reason: a string, or an object with msg and perhaps code, and of the built-in
// policy also due_ns.
func (s *Set) reason(by rule, builtin bool, v ast.Value) (tier.Reason, error) {
	r := tier.Reason{Code: by.code, Rule: by.where, Title: by.title}
	switch v := v.(type) {
	case ast.String:
		r.Text = string(v)
	case ast.Object:
		err := v.Iter(func(key, value *ast.Term) error {
			name, _ := key.Value.(ast.String)
			text, isString := value.Value.(ast.String)
			switch {
			case name == "msg" && isString:
				r.Text = string(text)
			case name == "code" && isString && validCode(string(text)):
				r.Code = tier.Code(text)
			case name == "code" && isString:
				return fmt.Errorf("the code %v: want a word such as legal-hold", value)
			case builtin && name == "due_ns":
				r.Until = instant(value.Value)
			default:
				return fmt.Errorf("%s of strings; %v is %v", reasonShape, key, value)
			}
			return nil
		})
		if err != nil {
			return r, err
		}
	default:
		return r, fmt.Errorf("%s, not %v", reasonShape, v)
	}
	switch {
	case strings.TrimSpace(r.Text) == "":
		return r, errors.New("the reason has no text")
	case len(r.Text) > msgBytesMax:
		return r, fmt.Errorf("the reason has %d bytes, more than %d", len(r.Text), msgBytesMax)
	}
	if r.Until != 0 {
		r.Text += "; due " + r.Until.Std().Format(time.RFC3339)
	}
	return r, nil
}

// instant reads nanoseconds; absent where they are beyond what a Time can hold.
func instant(v ast.Value) tier.Time {
	n, isNumber := v.(ast.Number)
	if !isNumber {
		return 0
	}
	ns, err := json.Number(n).Int64()
	if err != nil {
		return 0
	}
	return tier.Time(ns)
}

// capped bounds a list of reasons, and says how many it leaves out.
func capped(reasons []tier.Reason) []tier.Reason {
	if len(reasons) <= reasonsMax {
		return reasons
	}
	last := reasons[reasonsMax-1]
	last.Text = fmt.Sprintf("and %d more reasons", len(reasons)-reasonsMax+1)
	return append(reasons[:reasonsMax-1:reasonsMax-1], last)
}
