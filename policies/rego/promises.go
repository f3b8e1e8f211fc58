package rego

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/tierd/tierd/policies"
	"github.com/tierd/tierd/runtime/tier"
)

// answerViolation is the one rule of package tierd.sim.
const answerViolation = "violation"

// Promises are the user's own properties, for tiersim: the rules of package data.tierd.sim, each of
// which says of one deletion what is wrong with it:
//
//	package tierd.sim
//
//	violation contains msg if {
//		input.table.name == "payroll"
//		input.segment.age_ns < data.years * 31557600000000000
//		msg := sprintf("%s goes too early", [input.log.id])
//	}
//
// policies/schema/deletion.json has the input. They are immutable and safe for concurrent use.
type Promises struct {
	set   *Set
	query *query
}

// Broken is a property that a deletion broke.
type Broken struct {
	Rule string // file:line
	Text string
}

// LoadPromises compiles the modules of package tierd.sim, with those of tierd.lib; nil where there
// are none of the former. data is as in Load. The error is an Errors.
func LoadPromises(modules []Module, data map[string]any, opts Options) (*Promises, error) {
	if opts.Steps == 0 {
		opts.Steps = DefaultSteps
	}
	var errs Errors
	parsed := promiseModules(modules, &errs)
	base, _ := normalize(data, &errs)
	if len(errs) > 0 {
		return nil, errs.sorted()
	}
	some := false
	for _, m := range parsed {
		some = some || IsProperties(m)
	}
	if !some {
		return nil, nil
	}
	schema, schemas := deletionSchema()
	c := compile(parsed, schemas)
	if !slices.ContainsFunc(c.Errors, notOfTypes) {
		checkUse(c, schema, base, &errs)
	}
	if len(c.Errors) == 0 {
		checkPromiseNames(c, &errs)
	}
	errs.addOPA(c.Errors)
	if len(errs) > 0 {
		return nil, errs.sorted()
	}
	s := &Set{opts: opts}
	s.instrumentKinds(parsed, func(string) []string { return []string{answerViolation} })
	if err := s.compile(parsed, schemas, base); err != nil {
		return nil, err
	}
	var asks []ask
	for i, a := range s.answers {
		asks = append(asks, askOf(a, i, i))
	}
	q, err := s.query(asks)
	if err != nil {
		return nil, err
	}
	return &Promises{s, q}, nil
}

// promiseModules parses what belongs to properties.
func promiseModules(modules []Module, errs *Errors) map[string]*ast.Module {
	out := map[string]*ast.Module{}
	for _, m := range modules {
		if IsTest(m.Path) {
			continue
		}
		module := parseModule(m, errs)
		if module == nil {
			continue
		}
		path := module.Package.Path
		if IsProperties(module) {
			checkPromises(module, errs)
			out[m.Path] = module
		} else if path.HasPrefix(libPackage) {
			out[m.Path] = module
		}
	}
	return out
}

// checkPromises checks that each violation is a set of texts.
func checkPromises(m *ast.Module, errs *Errors) {
	for _, r := range m.Rules {
		if ruleName(r) == answerViolation && (r.Head.RuleKind() != ast.MultiValue || r.Default) {
			errs.add(r.Head.Location, "violation must be a set of messages: write "+
				"`violation contains msg if { ... }`")
		}
	}
}

// checkPromiseNames checks that package tierd.sim has a violation, and no rule that was meant to be
// one.
func checkPromiseNames(c *ast.Compiler, errs *Errors) {
	var last *ast.Location
	found := false
	for _, path := range paths(c.Modules) {
		m := c.Modules[path]
		if !IsProperties(m) {
			continue
		}
		last = m.Package.Location
		for _, r := range m.Rules {
			name := ruleName(r)
			found = found || name == answerViolation
			if name != answerViolation && len(c.Graph.Dependents(r)) == 0 {
				errs.add(r.Head.Location, "nothing asks for %s in package tierd.sim; did you mean "+
					"`violation contains msg if { ... }`?", name)
			}
		}
	}
	if !found && last != nil {
		errs.add(last, "package tierd.sim has no rule violation: it promises nothing")
	}
}

// deletionSchema is the schema of the properties' input.
func deletionSchema() (*schemaNode, *ast.SchemaSet) {
	var raw map[string]any
	if err := json.Unmarshal(policies.DeletionSchema, &raw); err != nil {
		panic(fmt.Sprintf("policies/schema/deletion.json: %v", err))
	}
	return schemaOf(raw)
}

// Rules are the places of the properties, in the order of their files.
func (p *Promises) Rules() []Rule { return p.set.Rules() }

// Hung is why these properties judge nothing any more; nil while they do.
func (p *Promises) Hung() error { return p.set.Hung() }

// Judge asks whether a deletion breaks a property. input is JSON as deletion.json has it. An error
// of the evaluation, or a message that is no text, is one too.
func (p *Promises) Judge(ctx context.Context, now tier.Time, input []byte) ([]Broken, error) {
	var document any
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return nil, fmt.Errorf("the deletion is no JSON: %w", err)
	}
	value, err := ast.InterfaceToValue(document)
	if err != nil {
		return nil, err
	}
	in := &Input{value: value, now: now}
	found, _, err := p.set.eval(ctx, p.query, in)
	if err != nil {
		return nil, err
	}
	var out []Broken
	for i, a := range p.query.asks {
		reasons, err := p.set.reasons(a, found[i])
		if err != nil {
			return nil, err
		}
		for _, r := range reasons {
			out = append(out, Broken{Rule: r.Rule, Text: r.Text})
		}
	}
	return out, nil
}
