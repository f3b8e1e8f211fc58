package rego

import (
	"encoding/json"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// TestAppendJSON: a value becomes the same text as by encoding/json.
func TestAppendJSON(t *testing.T) {
	t.Parallel()
	for _, value := range []any{
		nil, true, false, 0, -1, 1.5, json.Number("1800000000000000000"), json.Number("1e30"),
		"", "orders", `a"b\c`, "a<b>&c", "é\u2028", "\x00\n\x7f", "\xff", "[", "{",
		[]any{}, []any{"["}, []any{"{", []any{}, map[string]any{}, nil}, map[string]any{},
		map[string]any{"b": 1, "a": "{", "é<": []any{1, 2}, "": map[string]any{"z": nil, "y": false}},
	} {
		v := ast.MustInterfaceToValue(value)
		plain, err := ast.JSON(v)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendJSON(nil, v)
		if err != nil || string(got) != string(want) {
			t.Errorf("%v: got %s, %v, want %s", v, got, err, want)
		}
	}
}

// TestAppendJSONRefuses what JSON has not.
func TestAppendJSONRefuses(t *testing.T) {
	t.Parallel()
	for _, v := range []ast.Value{
		ast.NewSet(ast.StringTerm("b")),
		ast.NewArray(ast.SetTerm()),
		ast.NewObject([2]*ast.Term{ast.IntNumberTerm(1), ast.StringTerm("of a number")}),
	} {
		if text, err := appendJSON(nil, v); err == nil {
			t.Errorf("%v became %s", v, text)
		}
	}
}
