package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// inputBytesMax bounds a saved input; the audit record holds none that is larger.
const inputBytesMax = 64 << 20

// policyInput is what policies are asked about, and which.
type policyInput struct {
	askedPolicies
	Input   string   `arg:"" name:"input" help:"A saved input (a file, or - for stdin), or LOG@OFFSET for that of a segment now."`
	Action  string   `default:"" enum:",delete_local,delete_remote" placeholder:"ACTION" help:"With LOG@OFFSET: which deletion to ask about, delete_local or delete_remote. Without it the local one where there is a local segment."`
	Unknown []string `name:"unknown-fact" sep:"none" placeholder:"NAME" help:"A fact that is not known, whatever the input says."`
}

// load reads the policies, and what they are asked about.
func (c *policyInput) load(a *app) (*policySource, *asked, error) {
	s, err := c.read(a)
	if err != nil {
		return nil, nil, err
	}
	q, err := c.question(a)
	if err != nil {
		return nil, nil, err
	}
	q.input = q.input.Expecting(s.options.Facts)
	return s, q, q.forget(c.Unknown, s.options.Facts)
}

// asked is what policies are asked about.
type asked struct {
	input *rego.Input
	text  json.RawMessage
	guard []api.Reason // why the guard keeps a live segment now
}

// newAsked reads the text of an input; what names it in errors. Facts that the text itself shows
// not to be known are added to unknown.
func newAsked(what string, text []byte, unknown []tier.UnknownFact) (*asked, error) {
	in, err := rego.ParseInput(what, text)
	if err != nil {
		return nil, err
	}
	unknown = slices.Clone(unknown)
	for _, f := range in.Unknown() {
		if !lists(unknown, f.Name) {
			unknown = append(unknown, f)
		}
	}
	return &asked{input: in.WithUnknown(unknown), text: text}, nil
}

// lists reports whether the fact is one of those that are not known.
func lists(unknown []tier.UnknownFact, name string) bool {
	return slices.ContainsFunc(unknown, func(f tier.UnknownFact) bool { return f.Name == name })
}

// forget takes facts out of the input. Where facts are configured, or the input has some, each name
// must be one of theirs.
func (q *asked) forget(names, configured []string) error {
	if len(names) == 0 {
		return nil
	}
	var input map[string]any
	decoder := json.NewDecoder(bytes.NewReader(q.text))
	decoder.UseNumber()
	if err := decoder.Decode(&input); err != nil {
		return err
	}
	facts, _ := input["facts"].(map[string]any)
	unknown := slices.Clone(q.input.Unknown())
	known := slices.Concat(configured, slices.Collect(maps.Keys(facts)))
	for _, f := range unknown {
		known = append(known, f.Name)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, name := range names {
		if !slices.Contains(known, name) && (configured != nil || len(known) > 0) {
			return usagef("--unknown-fact %s", rego.NoFact(name, known))
		}
		delete(facts, name)
		if !lists(unknown, name) {
			unknown = append(unknown, tier.UnknownFact{Name: name, Why: "is not to be known"})
		}
	}
	text, err := json.Marshal(input)
	if err != nil {
		return err
	}
	without, err := newAsked("input", text, unknown)
	if err == nil {
		without.guard = q.guard
		*q = *without
	}
	return err
}

// question reads the input. What is no file and has the form LOG@OFFSET is asked of the daemon, or
// of a snapshot where none runs.
func (c *policyInput) question(a *app) (*asked, error) {
	var text []byte
	var err error
	id, offset, notLive := parsePosition(c.Input)
	_, notFile := os.Lstat(c.Input)
	switch {
	case c.Input == "-":
		text, err = io.ReadAll(io.LimitReader(a.stdin, inputBytesMax+1))
	case notFile != nil && notLive == nil:
		return askInput(a, id, offset, tier.Action(c.Action))
	case notFile != nil && strings.Contains(c.Input, "@"):
		return nil, fmt.Errorf("%w, and no file of that name", notLive)
	case notFile != nil:
		return nil, usagef("%s: no such file; want a saved input, or LOG@OFFSET such as orders/0@1042",
			c.Input)
	default:
		text, err = vfs.ReadRegular(c.Input, inputBytesMax)
	}
	if err != nil {
		return nil, usagef("%v", err)
	}
	if c.Action != "" {
		return nil, usagef("--action goes with LOG@OFFSET; a saved input has its own")
	}
	if len(text) > inputBytesMax {
		return nil, usagef("%s: an input of more than %s", c.Input, humanBytes(inputBytesMax))
	}
	return savedAsked(c.Input, text)
}

// savedAsked reads a saved input, alone or in a whole answer of policy eval, which also lists the
// facts that were not known.
func savedAsked(what string, text []byte) (*asked, error) {
	var answer struct {
		Input   json.RawMessage   `json:"input"`
		Unknown []api.UnknownFact `json:"unknown_facts"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Input) == 0 {
		return newAsked(what, text, nil) // which says what is wrong
	}
	var unknown []tier.UnknownFact
	for _, f := range answer.Unknown {
		unknown = append(unknown, tier.UnknownFact{Name: f.Name, Why: f.Text})
	}
	return newAsked(what, answer.Input, unknown)
}

func askInput(a *app, id tier.LogID, offset tier.Offset, action tier.Action) (*asked, error) {
	b, done, err := a.ask()
	if err != nil {
		return nil, err
	}
	defer done()
	live, err := b.PolicyInput(a.ctx, id, offset, action)
	if err != nil {
		return nil, err
	}
	var unknown []tier.UnknownFact
	for _, f := range live.UnknownFacts {
		unknown = append(unknown, tier.UnknownFact{Name: f.Name, Why: f.Text})
	}
	q, err := newAsked(id.String(), live.Input, unknown)
	if err == nil {
		q.guard = live.Guard
	}
	return q, err
}

// policyEvalCmd asks policies about one input.
type policyEvalCmd struct {
	output
	policyInput
	Explain string `default:"off" enum:"off,fails,notes,full" help:"Also print OPA's trace: of all events, of those that lead to what was not so, or to calls of trace(): ${enum}."`
}

// Help gives examples.
func (c *policyEvalCmd) Help() string {
	return `Says what the policies decide, which rules gave a reason, and of each other rule the
expression at which it ended. What the policies let go the guard may still keep: of a segment that
is live its objections are shown too. A saved input does not say what the guard would.

Exit code: 0 if there is an answer, 1 if the evaluation ended in an error, 2 if the policies or the
input are wrong.

Examples:

	tierd policy eval orders/0@1042
	tierd policy eval orders/0@1042 --action delete_remote
	tierd policy eval orders/0@1042 -p policies/ --explain fails
	tierd policy eval orders/0@1042 -o json | jq .input >input.json
	tierd policy eval input.json -p policies/`
}

// evaluated is what policy eval prints as JSON.
type evaluated struct {
	Action  tier.Action          `json:"action"`
	Verdict api.Verdict          `json:"verdict"`
	Due     api.Time             `json:"due"`
	Reasons api.List[api.Reason] `json:"reasons"`
	Error   *string              `json:"error"`
	Fired   api.List[fired]      `json:"fired"`
	Silent  api.List[silent]     `json:"silent"`
	Steps   int64                `json:"steps"`
	Digest  string               `json:"policy_digest"`
	Input   json.RawMessage      `json:"input"`
	// Unknown are the facts that should be in Input and are not known.
	Unknown api.List[api.UnknownFact] `json:"unknown_facts"`
	Trace   *string                   `json:"trace"`
	// Guard is why the guard keeps the segment now; empty for a saved input.
	Guard api.List[api.Reason] `json:"guard"`
}

// fired is a reason and the kind of rule that gave it.
type fired struct {
	Answer string `json:"answer"`
	api.Reason
}

// silent is a rule that gave no reason.
type silent struct {
	Answer string  `json:"answer"`
	Rule   string  `json:"rule"`
	Title  *string `json:"title"`
	At     *string `json:"at"`
	Expr   *string `json:"expression"`

	builtin bool
}

// Run asks and prints.
func (c *policyEvalCmd) Run(a *app) error {
	s, q, err := c.load(a)
	if err != nil {
		return err
	}
	var out *evaluated
	err = s.ask(a.ctx, func(ctx context.Context) error {
		set, err := rego.Load(s.modules, s.data, s.options)
		if err != nil {
			return err
		}
		if s.options.Facts == nil { // no configuration says which facts there are
			tellMissing(a, q.input, set.FactsRead())
		}
		out, err = evaluate(ctx, set, q, c.Explain)
		return err
	})
	if err != nil {
		return err
	}
	now := a.now()
	err = c.print(a, out, func(p *page) { printEvaluated(p, now, out, c.Explain != "off") })
	if err == nil && out.Error != nil {
		return errCheck
	}
	return err
}

// tellMissing tells of facts that rules read and the input has not. To the rules they are
// undefined, and so a deny that reads one says nothing.
func tellMissing(a *app, in *rego.Input, read []string) {
	for _, f := range in.Expecting(read).Unknown() {
		if !lists(in.Unknown(), f.Name) {
			a.complain("tierd: input.facts.%s is read by the policies and is not in the input: what "+
				"reads it is undefined; a daemon that has this fact keeps where it is not known, and so "+
				"does --unknown-fact %[1]s", f.Name)
		}
	}
}

func evaluate(ctx context.Context, set *rego.Set, q *asked, explain string) (*evaluated, error) {
	e, failed := set.Evaluate(ctx, q.input)
	out := &evaluated{Action: q.input.Action(), Verdict: api.Keep, Due: api.Time(e.Due),
		Steps: e.Steps, Digest: set.Digest(), Input: q.text, Guard: q.guard}
	if e.Delete {
		out.Verdict = api.Delete
	}
	for _, f := range q.input.Unknown() {
		out.Unknown = append(out.Unknown, api.UnknownFact{Name: f.Name, Text: f.Why})
	}
	if failed != nil {
		out.Error = orNull(failed.Error())
	}
	for _, r := range e.Reasons {
		out.Reasons = append(out.Reasons, api.ReasonOf(r, false))
	}
	for _, r := range e.Fired {
		out.Fired = append(out.Fired, fired{r.Answer, api.ReasonOf(r.Reason, false)})
	}
	trace, err := set.Trace(ctx, q.input)
	if err != nil {
		return nil, err
	}
	for _, r := range trace.Silent {
		out.Silent = append(out.Silent, silent{Answer: r.Answer, Rule: r.Rule,
			Title: orNull(r.Title), At: orNull(r.At), Expr: orNull(r.Expr), builtin: r.Builtin})
	}
	if explain != "off" {
		var text strings.Builder
		trace.Write(&text, explain)
		if trace.Cut {
			text.WriteString("(the trace is cut here)\n")
		}
		out.Trace = orNull(text.String())
	}
	return out, nil
}

// printEvaluated leaves the built-in rules that gave no reason to JSON, unless more is wanted.
func printEvaluated(p *page, now api.Time, e *evaluated, everything bool) {
	due := ""
	if e.Due != 0 {
		due = ", until " + tier.Time(e.Due).String() + " (" + humanUntil(now, e.Due) + ")"
	}
	p.line("%s: %s%s", e.Action, e.Verdict, due)
	for _, r := range e.Guard {
		p.line("  the guard keeps it now: %s", humanReason(now, r))
	}
	if e.Error != nil {
		p.alarm("! %s", *e.Error)
	}
	for _, r := range e.Reasons {
		if r.Code == tier.CodeFactUnknown {
			p.alarm("! %s", humanReason(now, r))
		}
	}
	for _, r := range e.Fired {
		p.line("  %-13s  %s", r.Answer, humanReason(now, r.Reason))
	}
	head := "no reason from:"
	for _, r := range e.Silent {
		if r.builtin && !everything {
			continue
		}
		if head != "" {
			p.line("%s", head)
			head = ""
		}
		name := r.Rule
		if r.Title != nil {
			name = *r.Title + ", " + r.Rule
		}
		if r.At != nil {
			p.line("  %-13s  %s: not so at %s: %s", r.Answer, name, *r.At, *r.Expr)
		} else {
			p.line("  %-13s  %s: not evaluated", r.Answer, name)
		}
	}
	if e.Trace != nil {
		p.line("trace:")
		p.indented(*e.Trace)
	}
}
