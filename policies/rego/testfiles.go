package rego

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// checkTestFiles refuses, in files of tests, what only a policy may hold: an answer, which would
// decide nothing while its own tests pass; and a rule of a package and name that a policy has too,
// which Rego would join in the tests alone. A file that is no Rego decides nothing either way, and
// is left to whoever runs the tests.
func checkTestFiles(modules []Module, policies map[string]*ast.Module, errs *Errors) {
	own := map[string]string{} // by package and rule, the place
	for _, path := range paths(policies) {
		for _, r := range policies[path].Rules {
			key := policies[path].Package.Path.Append(ast.StringTerm(ruleName(r))).String()
			if own[key] == "" {
				own[key] = place(r.Location)
			}
		}
	}
	for _, m := range modules {
		if !IsTest(m.Path) {
			continue
		}
		var unread Errors
		module := parseModule(m, &unread)
		if module == nil {
			continue
		}
		for _, r := range module.Rules {
			name := ruleName(r)
			key := module.Package.Path.Append(ast.StringTerm(name)).String()
			switch {
			case slices.Contains(answers, name):
				errs.add(r.Head.Location, "%s stands in a file of tests, which decides nothing: "+
					"move it to a file whose name does not end in _test.rego", name)
			case own[key] != "":
				errs.add(r.Head.Location, "%s stands in %s too, in the same package, and the tests "+
					"alone would see both: give it another name, or the tests another package",
					name, own[key])
			}
		}
	}
}

// Decides reports whether something of the modules may decide, or would if it were put right: all
// but tests and what only tiersim reads.
func Decides(modules []Module) bool {
	return slices.ContainsFunc(modules, func(m Module) bool {
		var unread Errors
		module := parseModule(m, &unread)
		return !IsTest(m.Path) && (module == nil || !IsProperties(module))
	})
}

// checkOnlyLibrary refuses policies that are helpers alone: nothing of theirs would decide, and
// their author takes them to be in force.
func checkOnlyLibrary(policies map[string]*ast.Module, errs *Errors) {
	var library *ast.Module
	for _, path := range paths(policies) {
		switch {
		case path == builtinPath:
		case policies[path].Package.Path.HasPrefix(libPackage):
			if library == nil {
				library = policies[path]
			}
		default:
			return
		}
	}
	if library != nil {
		errs.add(library.Package.Location, "there are only helpers (%s), and they decide nothing: "+
			"add a policy with a rule deny, expire or expire_remote", library.Package)
	}
}
