package rego

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The answers that a package can give. keep is for the built-in policy alone.
const (
	answerDeny         = "deny"
	answerExpire       = "expire"
	answerExpireRemote = "expire_remote"
	answerKeep         = "keep"
)

// answers are those of the contract with users.
var answers = []string{answerDeny, answerExpire, answerExpireRemote}

// builtinAnswers are those of the built-in policy.
var builtinAnswers = []string{answerExpire, answerExpireRemote, answerKeep}

// likelyMistakes are names of rules that other systems use, or that one may think of; a rule of
// such a name that nothing refers to was meant as an answer.
var likelyMistakes = map[string]string{
	"allow": "expire", "permit": "expire", "delete": "expire", "expire_local": "expire",
	"expired": "expire", "remove": "expire", "evict": "expire", "ttl": "expire",
	"keep": "deny", "retain": "deny", "hold": "deny", "block": "deny", "forbid": "deny",
	"warn": "deny", "violation": "deny", "denied": "deny", "denies": "deny", "denials": "deny",
	"deny_delete": "deny",
}

var (
	rootPackage    = ast.MustParseRef("data.tierd")
	builtinPackage = ast.MustParseRef("data.tierd.builtin")
	libPackage     = ast.MustParseRef("data.tierd.lib")
	simPackage     = ast.MustParseRef("data.tierd.sim")
)

// codePattern is what a reason's code looks like.
var codePattern = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// codeBytesMax bounds a code: it becomes a label of metrics.
const codeBytesMax = 64

func validCode(s string) bool { return len(s) <= codeBytesMax && codePattern.MatchString(s) }

// checkModule checks what can be seen in one parsed module: its package and the shape of its rules.
func checkModule(m *ast.Module, errs *Errors) {
	path := m.Package.Path
	switch {
	case !path.HasPrefix(rootPackage) || len(path) == len(rootPackage):
		errs.add(m.Package.Location,
			"policies are packages below tierd: write `package tierd.NAME`, not %s", m.Package)
	case path.HasPrefix(builtinPackage):
		errs.add(m.Package.Location, "package tierd.builtin is tierd's own: choose another name")
	}
	for _, r := range m.Rules {
		if name := ruleName(r); strings.HasPrefix(name, numberedPrefix) {
			errs.add(r.Head.Location, "names that begin with %s are tierd's own: choose another than %s",
				numberedPrefix, name)
		}
	}
	switch {
	case path.HasPrefix(libPackage):
		checkNoAnswer(m, "where only helpers are, and nothing asks for it", errs)
	default:
		for _, r := range m.Rules {
			if slices.Contains(answers, ruleName(r)) {
				checkAnswer(r, errs)
			}
		}
	}
	for _, a := range m.Annotations {
		if code, has := a.Custom["code"]; has {
			if s, isString := code.(string); !isString || !validCode(s) {
				errs.add(a.Location, "custom.code is %v; want a word such as legal-hold: "+
					"lower case, digits and dashes, at most %d bytes", code, codeBytesMax)
			}
		}
	}
}

// checkNoAnswer refuses answers in a package where nothing asks for them: a deny there would hold
// nothing, while its author takes it to be in force.
func checkNoAnswer(m *ast.Module, why string, errs *Errors) {
	for _, r := range m.Rules {
		if name := ruleName(r); slices.Contains(answers, name) {
			errs.add(r.Head.Location, "%s stands in %s, %s: move it to a policy (`package "+
				"tierd.NAME`), or give it another name", name, m.Package, why)
		}
	}
}

// checkAnswer checks that a rule of the contract is a set, of what can be reasons.
func checkAnswer(r *ast.Rule, errs *Errors) {
	name := ruleName(r)
	if r.Head.RuleKind() != ast.MultiValue || len(r.Head.Ref()) != 1 || r.Default {
		errs.add(r.Head.Location,
			"%s must be a set of reasons: write `%s contains reason if { ... }`", name, name)
		return
	}
	if text := wrongReason(r.Head.Key.Value); text != "" {
		errs.add(r.Head.Key.Location, "%s: %s", name, text)
	}
}

// wrongReason says why a term can never be a reason; "" if it can.
func wrongReason(v ast.Value) string {
	switch v := v.(type) {
	case ast.Boolean, ast.Number, ast.Null, *ast.Array, ast.Set:
		return fmt.Sprintf("%s, not %v", reasonShape, v)
	case ast.Object:
		for _, key := range v.Keys() {
			if s, isString := key.Value.(ast.String); isString && s != "msg" && s != "code" {
				return fmt.Sprintf(`a reason has only "msg" and "code", not %v`, key)
			}
		}
		if code := v.Get(ast.InternedTerm("code")); code != nil {
			if s, isString := code.Value.(ast.String); isString && !validCode(string(s)) {
				return fmt.Sprintf("the code %v: want a word such as legal-hold", code)
			}
		}
	}
	return ""
}

// ruleName is the first word of a rule's name.
func ruleName(r *ast.Rule) string {
	if name, isVar := r.Head.Ref()[0].Value.(ast.Var); isVar {
		return string(name)
	}
	return ""
}

// checkNames checks, in a compiled set, that each package answers something, and that no rule was
// meant to answer under a wrong name.
func checkNames(c *ast.Compiler, errs *Errors) {
	answering := map[string]bool{}
	for _, m := range c.Modules {
		for _, r := range m.Rules {
			if slices.Contains(answers, ruleName(r)) {
				answering[m.Package.Path.String()] = true
			}
		}
	}
	for _, m := range c.Modules {
		path := m.Package.Path
		if path.HasPrefix(builtinPackage) || path.HasPrefix(libPackage) {
			continue
		}
		near := false
		for _, r := range m.Rules {
			if meant := meantAnswer(ruleName(r)); meant != "" && len(c.Graph.Dependents(r)) == 0 {
				near = true
				errs.add(r.Head.Location, "nothing asks for %s, and it decides nothing; "+
					"did you mean `%s contains reason if { ... }`?", ruleName(r), meant)
			}
		}
		if !near && !answering[path.String()] {
			errs.add(m.Package.Location, "the package has no rule deny, expire or expire_remote: "+
				"it decides nothing (helpers belong into tierd.lib)")
		}
	}
}

// checkSplit checks that no rule but an answer stands in two files of one package. Rego would join
// them: two people who happened upon the same name for a package, and for a helper such as exempt,
// would each exempt what the other does.
func checkSplit(modules map[string]*ast.Module, errs *Errors) {
	type where struct {
		path string
		line int
	}
	first := map[string]where{} // by package and rule
	for _, path := range paths(modules) {
		for _, r := range modules[path].Rules {
			name := ruleName(r)
			if slices.Contains(answers, name) {
				continue
			}
			key := modules[path].Package.Path.Append(ast.StringTerm(name)).String()
			if w, taken := first[key]; !taken {
				first[key] = where{path, r.Location.Row}
			} else if w.path != path {
				errs.add(r.Head.Location, "%s stands in %s:%d too, in the same package, and both "+
					"would count: give one package another name, or the rule one place", name,
					w.path, w.line)
			}
		}
	}
}

// meantAnswer is the answer that a rule of this name was likely meant to be; "" if none.
func meantAnswer(name string) string {
	if name == "" || slices.Contains(answers, name) {
		return ""
	}
	name = strings.ToLower(strings.Trim(name, "_"))
	if meant := likelyMistakes[name]; meant != "" {
		return meant
	}
	switch {
	case strings.HasPrefix(name, "deny_"), strings.HasSuffix(name, "_deny"):
		return answerDeny
	case name == "remote_expire", strings.HasPrefix(name, answerExpireRemote):
		return answerExpireRemote
	case strings.HasPrefix(name, "expire_"), strings.HasSuffix(name, "_expire"):
		return answerExpire
	}
	return nearest(name, answers)
}
