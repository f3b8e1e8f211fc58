package rego

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tierd/tierd/policies/gate"
)

// recordedBytesMax bounds the facts that an audit record holds. A record is a line of at most a
// mebibyte, and a deletion that cannot be recorded does not happen.
const recordedBytesMax = 256 << 10

// omittedKey stands in a recorded input for the facts that are too large for the record. No fact
// has this name.
const omittedKey = "$omitted"

// Fact is a document of the user's in OPA's terms, made once and used in many decisions.
type Fact struct {
	value  ast.Value
	bytes  int    // of its JSON
	sha256 string // of its JSON with ascending keys and no spaces, hexadecimal
}

// NewFact makes a Fact of what a decoder of JSON or YAML gave. A null anywhere in it is an error:
// whoever writes null does not know, and to Rego it is a value that is less than every number, and
// not equal to any word.
func NewFact(document any) (*Fact, error) {
	text, err := json.Marshal(document) // with map keys ascending
	if err != nil {
		return nil, fmt.Errorf("it is not representable as JSON: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var plain any
	if err := decoder.Decode(&plain); err != nil {
		return nil, fmt.Errorf("it is not representable as JSON: %w", err)
	}
	if path, found := nullIn(plain); found {
		return nil, errNull(path)
	}
	value, err := ast.InterfaceToValue(plain)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return &Fact{value, len(text), hex.EncodeToString(sum[:])}, nil
}

// errNull says where a fact is null.
func errNull(path string) error {
	return fmt.Errorf("it has null%s, which is what a program writes that knows nothing: write "+
		"what is, or leave it out", path)
}

// nullIn finds the first null in a JSON value, by keys ascending. path is "" for the value itself,
// and else " at .key[index]".
func nullIn(v any) (path string, found bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case []any:
		for i, x := range v {
			if path, found = nullIn(x); found {
				return below(fmt.Sprintf("[%d]", i), path), true
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if path, found = nullIn(v[key]); found {
				step := "." + key
				if !plainKey.MatchString(key) {
					step = fmt.Sprintf("[%q]", key)
				}
				return below(step, path), true
			}
		}
	}
	return "", false
}

// plainKey is a key that stands behind a dot as it is.
var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// below puts a step before the path to what was found behind it.
func below(step, path string) string { return " at " + step + strings.TrimPrefix(path, " at ") }

// factsTerm gives the facts as input.facts.
func factsTerm(facts map[string]any) (*ast.Term, error) {
	if len(facts) == 0 {
		return ast.InternedEmptyObject, nil
	}
	o := ast.NewObject()
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		var value ast.Value
		if f, made := facts[name].(*Fact); made {
			value = f.value
		} else {
			v, err := ast.InterfaceToValue(facts[name])
			if err != nil {
				return nil, fmt.Errorf("input.facts.%s: %w", name, err)
			}
			value = v
		}
		o.Insert(ast.StringTerm(name), ast.NewTerm(value))
	}
	return ast.NewTerm(o), nil
}

// RecordJSON is InputJSON for the audit record of a deletion that the policies were just asked
// about. Facts that together have more than 256 KiB are left out, in the order of their names;
// "$omitted" then has their sizes and hashes.
func (*Set) RecordJSON(f *gate.Facts) ([]byte, error) {
	kept, omitted := map[string]any{}, map[string]any{}
	left := recordedBytesMax
	for _, name := range slices.Sorted(maps.Keys(f.Extern)) {
		fact, made := f.Extern[name].(*Fact)
		if made && fact.bytes > left {
			omitted[name] = map[string]any{"bytes": fact.bytes, "sha256": fact.sha256}
			continue
		}
		if made {
			left -= fact.bytes
		}
		kept[name] = f.Extern[name]
	}
	if len(omitted) == 0 {
		return InputJSON(f)
	}
	kept[omittedKey] = omitted
	recorded := *f
	recorded.Extern = kept
	return InputJSON(&recorded)
}
