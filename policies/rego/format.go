package rego

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
)

// Format gives the source as `opa fmt` leaves it. The error is an Errors.
func Format(m Module) ([]byte, error) {
	var errs Errors
	if parseModule(m, &errs); len(errs) > 0 {
		return nil, errs.sorted()
	}
	out, err := format.SourceWithOpts(m.Path, m.Source, format.Opts{RegoVersion: ast.RegoV1})
	if err != nil {
		return nil, Errors{{Path: m.Path, Text: err.Error()}}
	}
	return out, nil
}
