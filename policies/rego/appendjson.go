package rego

import (
	"encoding/json"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
)

// appendJSON writes a value as encoding/json writes what it stands for, keys in order, without
// making that first.
func appendJSON(b []byte, v ast.Value) ([]byte, error) {
	switch v := v.(type) {
	case ast.String:
		return appendString(b, string(v))
	case ast.Number:
		return append(b, v...), nil
	case ast.Boolean, ast.Null:
		return append(b, v.String()...), nil
	case *ast.Array:
		return appendArray(b, v)
	case ast.Object:
		return appendObject(b, v)
	}
	return b, fmt.Errorf("%v is no JSON", v)
}

func appendArray(b []byte, v *ast.Array) ([]byte, error) {
	b = append(b, '[')
	err := v.Iter(func(e *ast.Term) (err error) {
		b, err = appendJSON(comma(b, '['), e.Value)
		return err
	})
	return append(b, ']'), err
}

func appendObject(b []byte, v ast.Object) ([]byte, error) {
	b = append(b, '{')
	err := v.Iter(func(key, e *ast.Term) (err error) {
		name, ok := key.Value.(ast.String)
		if !ok {
			return fmt.Errorf("%v is no name in an object", key)
		}
		if b, err = appendString(comma(b, '{'), string(name)); err == nil {
			b, err = appendJSON(append(b, ':'), e.Value)
		}
		return err
	})
	return append(b, '}'), err
}

// comma parts an element from the one before it.
func comma(b []byte, open byte) []byte {
	if b[len(b)-1] == open {
		return b
	}
	return append(b, ',')
}

// appendString escapes what encoding/json does, HTML's signs included.
func appendString(b []byte, s string) ([]byte, error) {
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '<', '>', '&':
			return appendEscaped(b, s)
		default:
			if c < ' ' || c > '~' {
				return appendEscaped(b, s)
			}
		}
	}
	return append(append(append(b, '"'), s...), '"'), nil
}

func appendEscaped(b []byte, s string) ([]byte, error) {
	text, err := json.Marshal(s)
	return append(b, text...), err
}
