package rego

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	"github.com/tierd/tierd/policies"
)

// WithTests parses modules with their tests, and the built-in policy, as OPA's own tools would. It
// is for the packages below this one, which hand the result to them. The error is an Errors.
func WithTests(modules []Module) (map[string]*ast.Module, error) {
	out := map[string]*ast.Module{}
	var errs Errors
	all := append([]Module{{Path: builtinPath, Source: policies.Builtin}}, modules...)
	for _, m := range all {
		module := parseModule(m, &errs)
		if module != nil {
			out[m.Path] = module
		}
	}
	if len(errs) > 0 {
		return nil, errs.sorted()
	}
	return out, nil
}

// IsTest reports whether a file is of tests: its name ends in _test.rego, as OPA has it.
func IsTest(path string) bool { return strings.HasSuffix(path, "_test.rego") }

// IsProperties reports whether a module has properties of tiersim, which decide nothing.
func IsProperties(m *ast.Module) bool { return m.Package.Path.Equal(simPackage) }

// IsBuiltin reports whether the path is that of the built-in policy.
func IsBuiltin(path string) bool { return path == builtinPath }

// NewCompiler returns a compiler that offers what policies may use, and print() besides. It is for
// the packages below this one.
func NewCompiler() *ast.Compiler {
	c := withExpansion(ast.NewCompiler()).WithCapabilities(capabilities()).
		WithEnablePrintStatements(true)
	c.SetErrorLimit(errorsMax)
	return c
}

// NewStore holds the data as policies see it. The error is an Errors.
func NewStore(data map[string]any) (storage.Store, error) {
	var errs Errors
	base, _ := normalize(data, &errs)
	if len(errs) > 0 {
		return nil, errs
	}
	return newStore(base), nil
}

// newStore holds a document that was decoded from JSON. It converts it to OPA's terms once.
func newStore(base map[string]any) storage.Store {
	return inmem.NewFromObjectWithOpts(base, inmem.OptRoundTripOnWrite(false),
		inmem.OptReturnASTValuesOnRead(true))
}

// ErrorsOf puts OPA's errors into our words, by place.
func ErrorsOf(list ast.Errors) Errors {
	var errs Errors
	errs.addOPA(list)
	return errs.sorted()
}
