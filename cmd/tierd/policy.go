package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tierd/tierd/policies"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/policies/rego/suite"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/daemon"
	"github.com/tierd/tierd/runtime/tier"
)

// policyCmd holds the commands about policies.
type policyCmd struct {
	Check  policyCheckCmd  `cmd:"" help:"Say everything that is wrong with policies, their data and their tests."`
	Test   policyTestCmd   `cmd:"" help:"Run the tests of policies."`
	Eval   policyEvalCmd   `cmd:"" help:"Ask policies about one segment, and say which rules decide."`
	Bench  policyBenchCmd  `cmd:"" help:"Measure what a decision costs."`
	Schema policySchemaCmd `cmd:"" help:"Print the JSON schema of the policies' input."`
	Fmt    policyFmtCmd    `cmd:"" help:"Find, show or write policies that are not formatted."`
}

// policyFiles are the policies that a command is about.
type policyFiles struct {
	Paths []string `arg:"" optional:"" name:"path" help:"Policies: files, or directories of them with their data. Without any, those of the configuration."`
	Data  []string `sep:"none" placeholder:"PATH" help:"More data: .yaml, .yml and .json files, or directories of them."`
}

// policySource is policies, their tests and their data, as they were read.
type policySource struct {
	modules []rego.Module
	data    map[string]any
	options rego.Options
}

// ask asks the policies. Where an evaluation does not end, the error says so, and ask is left
// behind.
func (s *policySource) ask(ctx context.Context, ask func(context.Context) error) error {
	return daemon.AskPolicies(ctx, func(ctx context.Context, w *rego.Watch) error {
		s.options.Watch = w
		return ask(ctx)
	})
}

// load reads the policies. That there are none is an error: nothing would be checked, and all would
// seem well.
func (f *policyFiles) load(a *app) (*policySource, error) {
	s, err := readPolicies(a, f.Paths, f.Data)
	if err != nil {
		return nil, err
	}
	if len(s.modules) == 0 {
		return nil, usagef("no policies: name *.rego files or directories of them, "+
			"or list them in policies.paths of %s", a.cli.Config)
	}
	return s, nil
}

// askedPolicies are the policies that a command asks something.
type askedPolicies struct {
	Policies []string `name:"policy" short:"p" sep:"none" placeholder:"PATH" help:"Policies to ask: files, or directories of them with their data. Without any, those of the configuration."`
	Data     []string `sep:"none" placeholder:"PATH" help:"More data: .yaml, .yml and .json files, or directories of them."`
}

// read reads them. Those that are named must be able to decide.
func (f *askedPolicies) read(a *app) (*policySource, error) {
	s, err := readPolicies(a, f.Policies, f.Data)
	if err == nil && len(f.Policies) > 0 {
		err = s.mustDecide("--policy")
	}
	return s, err
}

// readPolicies reads the named policies and data, or without any name those of the configuration.
func readPolicies(a *app, paths, data []string) (*policySource, error) {
	if slices.Contains(slices.Concat(paths, data), "") {
		return nil, usagef("the path \"\" names no file and no directory")
	}
	var g *config.Generation
	var err error
	if len(paths) > 0 {
		g, err = config.LoadPolicies(paths, data, a.host)
		if err == nil {
			g.Config, err = configIfAny(a)
		}
	} else {
		g, err = config.LoadGeneration(a.cli.Config, a.host)
		if err == nil && len(data) > 0 {
			err = usagef("--data goes with PATHs; the configuration's data stands in policies.data")
		}
	}
	if err != nil {
		return nil, err
	}
	s := &policySource{data: g.Document}
	if g.Config != nil {
		s.options = daemon.PolicyOptions(g.Config)
	}
	for _, p := range g.Policies {
		s.modules = append(s.modules, rego.Module{Path: nearPath(p.Path), Source: p.Content})
	}
	return s, nil
}

// configIfAny reads the configuration for what it says of facts; nil where there is no file, and
// policies may then read any fact.
func configIfAny(a *app) (*config.Config, error) {
	if _, err := a.host.ReadFile(a.cli.Config); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return config.Load(a.cli.Config, a.host)
}

// mustDecide is an error where no policy is among the modules; what names them.
func (s *policySource) mustDecide(what string) error {
	policy := func(m rego.Module) bool { return !rego.IsTest(m.Path) }
	switch {
	case rego.Decides(s.modules):
		return nil
	case len(s.modules) == 0:
		return usagef("%s: no policies there: name *.rego files or directories of them", what)
	case !slices.ContainsFunc(s.modules, policy):
		return usagef("%s: only tests there (*_test.rego), which decide nothing", what)
	}
	return usagef("%s: only properties there (package tierd.sim), which tiersim asks and which "+
		"decide nothing", what)
}

// nearPath is the path as seen from the working directory, where it lies below that.
func nearPath(path string) string {
	here, err := os.Getwd()
	if err != nil || !filepath.IsAbs(path) {
		return path
	}
	near, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(near) {
		return path
	}
	return near
}

// policyCheckCmd compiles policies and tests.
type policyCheckCmd struct {
	output
	policyFiles
}

// Help gives examples.
func (c *policyCheckCmd) Help() string {
	return `Compiles policies and tests as the daemon and the tests would, and prints everything
that is wrong with its place; else the rules that may decide.

Exit code: 0 if all is well, 2 if something is wrong or there is no policy.

Examples:

	tierd policy check
	tierd policy check policies/ --data holds.yaml`
}

// policyChecked is what policy check prints as JSON.
type policyChecked struct {
	Digest string               `json:"digest"` // of policies and data
	Files  api.List[string]     `json:"files"`
	Tests  int                  `json:"tests"`
	Rules  api.List[policyRule] `json:"rules"`
}

// policyRule is a rule that may decide.
type policyRule struct {
	Rule   string  `json:"rule"` // file:line
	Answer string  `json:"answer"`
	Code   string  `json:"code"`
	Title  *string `json:"title"`
}

// Run checks.
func (c *policyCheckCmd) Run(a *app) error {
	s, err := c.load(a)
	if err != nil {
		return err
	}
	if err := s.mustDecide("policies"); err != nil {
		return err
	}
	set, tests, err := suite.Check(s.modules, s.data, s.options)
	if err != nil {
		return err
	}
	out := policyChecked{Digest: set.Digest(), Tests: tests}
	for _, m := range s.modules {
		out.Files = append(out.Files, m.Path)
	}
	for _, r := range set.Rules() {
		if !r.Builtin {
			out.Rules = append(out.Rules, policyRule{Rule: r.Where, Answer: r.Answer,
				Code: string(r.Code), Title: orNull(r.Title)})
		}
	}
	return c.print(a, out, func(p *page) {
		rows := make([]string, len(out.Rules))
		for i, r := range out.Rules {
			rows[i] = row(r.Rule, r.Answer, r.Code, orDash(r.Title))
		}
		p.table("RULE\tANSWER\tCODE\tTITLE", rows)
		p.line("ok: %s and %s in %s", tier.Count(len(out.Rules), "rule"), tier.Count(tests, "test"),
			tier.Count(len(out.Files), "file"))
	})
}

// orNull is the text, or null where there is none.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// policySchemaCmd prints the schema.
type policySchemaCmd struct{}

// Help gives examples.
func (c *policySchemaCmd) Help() string {
	return `Example:

	tierd policy schema >input.schema.json`
}

// Run prints it.
func (c *policySchemaCmd) Run(a *app) error {
	_, err := a.stdout.Write(policies.InputSchema)
	return err
}
