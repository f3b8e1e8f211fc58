package rego

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"

	"github.com/tierd/tierd/policies"
	"github.com/tierd/tierd/runtime/tier"
)

// builtinPath names the built-in policy in the reasons that it gives.
const builtinPath = "tierd/builtin.rego"

// The bounds of one question where Options do not say.
const (
	DefaultTimeout = time.Second
	DefaultSteps   = 1 << 18 // some tenths of a second
)

// NoTimeout leaves the bound to the steps, so that no clock is read.
const NoTimeout time.Duration = -1

// errorsMax bounds how many errors OPA collects.
const errorsMax = 50

// Module is one policy file.
type Module struct {
	Path   string // as errors and reasons shall name it
	Source []byte
}

// Options bound what is asked. A decision is one question, and where it would delete while facts
// are unknown one more for each set of answers; each has these bounds, and the first that passes
// one keeps.
type Options struct {
	Timeout time.Duration // 0: DefaultTimeout
	Steps   int64         // evaluated expressions; 0: DefaultSteps
	Watch   *Watch        // that looks at evaluations; nil where nobody does
	// Facts are the names of the user's facts: a reference to another one is an error. Nil leaves
	// them open.
	Facts []string
	// Fields are the fields of those facts of which they are known: another one is an error.
	Fields map[string][]string
}

// Set is the built-in policy and the user's, compiled and with their data: one generation. It is
// immutable, but for being hung, and safe for concurrent use. It implements gate.Policies.
type Set struct {
	opts     Options
	compiler *ast.Compiler
	store    storage.Store
	base     baseDocs // what store holds
	terms    terms
	rules    []rule   // by number
	answers  []answer // in a fixed order
	queries  map[tier.Action]*query
	digest   string
	data     string // digest of the data alone
	hung     atomic.Pointer[error]
}

// Load compiles user policies together with the built-in one. data is what policies see as data.*;
// it must be representable as JSON and have no key "tierd". The error is an Errors with everything
// that is wrong.
func Load(modules []Module, data map[string]any, opts Options) (*Set, error) {
	if opts.Timeout == 0 {
		opts.Timeout = DefaultTimeout
	}
	if opts.Steps == 0 {
		opts.Steps = DefaultSteps
	}
	var errs Errors
	parsed := parse(modules, &errs)
	base, canonical := normalize(data, &errs)
	if len(errs) > 0 {
		return nil, errs.sorted()
	}
	for path, m := range parsed {
		if path != builtinPath {
			checkModule(m, &errs)
		}
	}
	checkSplit(parsed, &errs)
	checkTestFiles(modules, parsed, &errs)
	checkOnlyLibrary(parsed, &errs)
	schema, schemas := schemaFor(opts.Facts, opts.Fields)
	compiler := compile(parsed, schemas)
	if !slices.ContainsFunc(compiler.Errors, notOfTypes) {
		// The types are checked last: by then the modules are resolved and rewritten.
		checkUse(compiler, schema, base, &errs)
	}
	if len(compiler.Errors) == 0 {
		checkNames(compiler, &errs)
	}
	errs.addOPA(compiler.Errors)
	if len(errs) > 0 {
		return nil, errs.sorted()
	}

	s := &Set{opts: opts, digest: digest(modules, canonical), data: dataDigest(canonical)}
	s.instrument(parsed)
	if err := s.compile(parsed, schemas, base); err != nil {
		return nil, err
	}
	return s, s.prepare()
}

// compile makes the set of modules that have been checked and instrumented, and of the data.
func (s *Set) compile(
	modules map[string]*ast.Module, schemas *ast.SchemaSet, data map[string]any,
) (err error) {
	if s.compiler = compile(modules, schemas); len(s.compiler.Errors) > 0 {
		return fmt.Errorf("compile the numbered rules: %w", s.compiler.Errors)
	}
	s.store = newStore(data)
	s.base, err = newBaseDocs(context.Background(), s.store)
	return err
}

// Digest identifies the policies and data: SHA-256 in hexadecimal over the sources and the data,
// whatever the files are called and in whatever order they come.
func (s *Set) Digest() string { return s.digest }

// Rule is a rule that may decide.
type Rule struct {
	Where   string // file:line
	Answer  string // deny, expire, expire_remote or keep
	Code    tier.Code
	Title   string // "" where no annotation has one
	Builtin bool
}

// Counts reports whether the rule is asked for the action.
func (r Rule) Counts(a tier.Action) bool {
	return answer{kind: r.Answer, builtin: r.Builtin}.counts(a)
}

// Rules lists the rules that may decide, the built-in ones first.
func (s *Set) Rules() []Rule {
	out := make([]Rule, len(s.rules))
	for i, r := range s.rules {
		a := s.answers[r.answer]
		out[i] = Rule{r.where, a.kind, r.code, r.title, a.builtin}
	}
	return out
}

// Expires reports whether some user policy may ask for a local deletion before a TTL is over.
func (s *Set) Expires() bool { return s.asksFor(answerExpire) }

// ExpiresRemote reports whether some user policy may ask for a remote deletion before a TTL is
// over.
func (s *Set) ExpiresRemote() bool { return s.asksFor(answerExpireRemote) }

func (s *Set) asksFor(kind string) bool {
	return slices.ContainsFunc(s.answers, func(a answer) bool {
		return a.kind == kind && !a.builtin
	})
}

// parse returns the modules by path, the built-in one included, without those that are not for
// decisions.
func parse(modules []Module, errs *Errors) map[string]*ast.Module {
	parsed := map[string]*ast.Module{}
	all := append([]Module{{Path: builtinPath, Source: policies.Builtin}}, modules...)
	for _, m := range all {
		if IsTest(m.Path) {
			continue
		}
		if parsed[m.Path] != nil {
			*errs = append(*errs, Error{Path: m.Path, Text: "the policy is given twice"})
			continue
		}
		module := parseModule(m, errs)
		switch {
		case module == nil:
		case IsProperties(module):
			checkNoAnswer(module, "which only tiersim asks, for violation", errs)
		default:
			parsed[m.Path] = module
		}
	}
	return parsed
}

// parseModule parses one file. It returns nil where that is no Rego.
func parseModule(m Module, errs *Errors) *ast.Module {
	module, err := ast.ParseModuleWithOpts(m.Path, string(m.Source), ast.ParserOptions{
		RegoVersion: ast.RegoV1, ProcessAnnotation: true, Capabilities: capabilities(),
	})
	if list, isList := err.(ast.Errors); isList {
		errs.addOPA(list)
		return nil
	} else if one, isOne := err.(*ast.Error); isOne { // of a file without a statement
		*errs = append(*errs, Error{Path: m.Path, Text: one.Message +
			": write `package tierd.NAME` and its rules"})
		return nil
	} else if err != nil {
		*errs = append(*errs, Error{Path: m.Path, Text: err.Error()})
		return nil
	}
	return module
}

// normalize gives the data as JSON decodes it, and its canonical bytes.
func normalize(data map[string]any, errs *Errors) (map[string]any, []byte) {
	if _, taken := data["tierd"]; taken {
		*errs = append(*errs, Error{
			Text: `the key "tierd" of the data belongs to the policies: rename it`})
	}
	canonical, err := json.Marshal(data) // with map keys ascending
	if err != nil {
		*errs = append(*errs, Error{Text: fmt.Sprintf("the data is no JSON: %v", err)})
		return nil, nil
	}
	base := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(canonical))
	decoder.UseNumber()
	if err := decoder.Decode(&base); err != nil {
		*errs = append(*errs, Error{Text: fmt.Sprintf("the data is no JSON object: %v", err)})
	}
	return base, canonical
}

func compile(modules map[string]*ast.Module, schemas *ast.SchemaSet) *ast.Compiler {
	c := withExpansion(ast.NewCompiler().WithCapabilities(capabilities()).WithSchemas(schemas))
	c.SetErrorLimit(errorsMax)
	c.Compile(modules)
	return c
}

// dataDigest hashes the data alone: JSON with ascending keys and no spaces.
func dataDigest(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// digest hashes the sources by content, so that neither names nor order matter.
func digest(modules []Module, data []byte) string {
	sums := [][sha256.Size]byte{sha256.Sum256(policies.Builtin)}
	for _, m := range modules {
		if !IsTest(m.Path) {
			sums = append(sums, sha256.Sum256(m.Source))
		}
	}
	slices.SortFunc(sums, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	h := sha256.New()
	h.Write([]byte("tierd policies v1\n"))
	var count [8]byte
	binary.LittleEndian.PutUint64(count[:], uint64(len(sums)))
	h.Write(count[:])
	for _, sum := range sums {
		h.Write(sum[:])
	}
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}
