package rego

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tierd/tierd/runtime/tier"
)

// Input is what policies are asked about, in OPA's terms.
type Input struct {
	value   ast.Value
	action  tier.Action
	now     tier.Time
	unknown []tier.UnknownFact
}

// WithUnknown is the input with these as the facts that should be in it and are not known.
func (in *Input) WithUnknown(facts []tier.UnknownFact) *Input {
	out := *in
	out.unknown = facts
	return &out
}

// Expecting is the input where the facts of these names that it has not are not known either: the
// daemon leaves a fact out for no other reason, and a rule that reads one would be undefined.
func (in *Input) Expecting(names []string) *Input {
	unknown := slices.Clone(in.unknown)
	for _, name := range names {
		listed := slices.ContainsFunc(unknown, func(f tier.UnknownFact) bool { return f.Name == name })
		if _, err := in.value.Find(factRef(name)[1:]); err != nil && !listed {
			unknown = append(unknown, tier.UnknownFact{Name: name, Why: "is not in the input"})
		}
	}
	return in.WithUnknown(unknown)
}

// Unknown are the facts that should be in the input and are not known.
func (in *Input) Unknown() []tier.UnknownFact { return in.unknown }

// Action is the kind of deletion that is asked for.
func (in *Input) Action() tier.Action { return in.action }

// Value is the input as OPA takes it. It is for the packages below this one.
func (in *Input) Value() ast.Value { return in.value }

// ParseInput reads an input that was saved, as InputJSON writes it. path names it in errors. The
// error is an Errors with everything in which it differs from the schema: a rule that reads a field
// which is not there is undefined, and would answer as if the field said no. A fact that has null
// in it is not known, as it would not be today.
func ParseInput(path string, text []byte) (*Input, error) {
	var errs Errors
	add := func(format string, args ...any) {
		errs = append(errs, Error{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var document any
	err := decoder.Decode(&document)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			add("more than one JSON value: want one input, as the audit record has it")
			return nil, errs
		}
	}
	if err != nil {
		add("no JSON: %v", err)
		return nil, errs
	}
	schema, _ := inputSchema()
	schema.check("input", document, add)
	if len(errs) > 0 {
		return nil, errs
	}
	object := document.(map[string]any) // the check saw to it, and to what follows
	if omitted, some := object["facts"].(map[string]any)[omittedKey]; some {
		add("the record was too small for some facts, and has only their hashes: %s",
			jsonText(omitted))
		return nil, errs
	}
	unknown := withoutNull(object["facts"].(map[string]any))
	value, err := ast.InterfaceToValue(document)
	if err != nil {
		add("%v", err)
		return nil, errs
	}
	now, _ := object["now_ns"].(json.Number).Int64()
	return &Input{value: value, action: tier.Action(object["action"].(string)),
		now: tier.Time(now), unknown: unknown}, nil
}

// withoutNull takes the facts with null in them out, and gives them, by name.
func withoutNull(facts map[string]any) (unknown []tier.UnknownFact) {
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if path, found := nullIn(facts[name]); found {
			delete(facts, name)
			unknown = append(unknown, tier.UnknownFact{Name: name, Why: errNull(path).Error()})
		}
	}
	return unknown
}

// check compares a JSON value, with numbers as json.Number, with the schema, and adds what differs.
func (n *schemaNode) check(path string, v any, add func(format string, args ...any)) {
	switch n.Type {
	case "object":
		object, isObject := v.(map[string]any)
		if !isObject {
			add("%s: want an object, got %s", path, jsonText(v))
			return
		}
		n.checkFields(path, object, add)
	case "string":
		s, isString := v.(string)
		if !isString {
			add("%s: want a string, got %s", path, jsonText(v))
		} else if len(n.Enum) > 0 && !slices.Contains(n.Enum, s) {
			add("%s is %q%s", path, s, oneOf(s, n.Enum))
		}
	case "integer":
		number, isNumber := v.(json.Number)
		i, err := number.Int64()
		switch {
		case !isNumber || err != nil:
			add("%s: want a whole number of 64 bits, got %s", path, jsonText(v))
		case n.Minimum != nil && i < *n.Minimum:
			add("%s: want at least %d, got %d", path, *n.Minimum, i)
		}
	case "boolean":
		if _, isBool := v.(bool); !isBool {
			add("%s: want true or false, got %s", path, jsonText(v))
		}
	}
}

func (n *schemaNode) checkFields(
	path string, object map[string]any, add func(format string, args ...any),
) {
	others := n.values()
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch field := n.Properties[name]; {
		case field != nil:
			field.check(path+"."+name, object[name], add)
		case n.closed():
			add("%s", unknownField(path, name, n.names()))
		case others != nil:
			others.check(path+"."+name, object[name], add)
		}
	}
	for _, name := range n.Required {
		if _, has := object[name]; !has {
			add("%s.%s is missing", path, name)
		}
	}
}

// jsonText shows a value in an error, cut where it is long.
func jsonText(v any) string {
	const most = 40
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	if text := string(b); len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(string(b[:most]), "") + "..."
}
