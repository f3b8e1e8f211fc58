package rego

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/lineage"
)

// eventsMax bounds a trace: what comes later is left out.
const eventsMax = 100_000

// Silent is a rule that gave no reason, and how far it came.
type Silent struct {
	Answer string // deny, expire, expire_remote or keep
	Rule   string // file:line
	Title  string // "" where no annotation has one
	// Builtin is set for the rules of tierd's own policy.
	Builtin bool
	// At is file:line of the last expression of its body that was reached, which was false or
	// undefined, and Expr its text. Both are "" where the rule was not evaluated.
	At   string
	Expr string
}

// Trace is how an answer came about.
type Trace struct {
	Silent []Silent
	// Cut is set where the evaluation had more events than are kept.
	Cut bool

	events []*topdown.Event
}

// TraceKinds are the kinds of events that Trace.Write can be limited to: all of them, those that
// lead to an expression which was false or undefined, or to a call of trace().
var TraceKinds = []string{"full", "fails", "notes"}

// Trace evaluates the rules anew, each of them, and keeps what happens. An evaluation that ends in
// an error has a trace too, up to there.
func (s *Set) Trace(ctx context.Context, in *Input) (*Trace, error) {
	asks := s.asks(in.action)
	for i := range asks {
		asks[i].ref = asks[i].plain // so that events show the rules as they are written
	}
	q, err := s.query(asks)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.action, err)
	}
	t := &tracer{}
	// Whether it ended well is for Evaluate to say.
	_ = s.evaluate(&evaluation{ctx: ctx, in: in, tracer: t, every: true,
		run: func(e *evaluation) error { return s.run(e, q) }})
	return &Trace{Silent: s.silent(asks, t.events), Cut: t.cut, events: t.events}, nil
}

// silent finds the rules without a result, and the last expression that each of them reached.
func (s *Set) silent(asks []ask, events []*topdown.Event) []Silent {
	type progress struct {
		fired  bool
		failed *ast.Expr
	}
	byRule := map[string]*progress{}
	open := map[uint64]*progress{} // by query
	for _, e := range events {
		switch node := e.Node.(type) {
		case *ast.Rule:
			where := place(node.Location)
			if byRule[where] == nil {
				byRule[where] = &progress{}
			}
			open[e.QueryID] = byRule[where]
			if e.Op == topdown.ExitOp {
				byRule[where].fired = true
			}
		case *ast.Expr:
			p := open[e.QueryID]
			if e.Op == topdown.FailOp && p != nil &&
				(p.failed == nil || node.Index >= p.failed.Index) {
				p.failed = node
			}
		}
	}
	var out []Silent
	for _, r := range s.rules {
		p := byRule[r.where]
		asked := slices.ContainsFunc(asks, func(a ask) bool { return a.number == r.answer })
		if !asked || p != nil && p.fired {
			continue
		}
		a := s.answers[r.answer]
		silent := Silent{Answer: a.kind, Rule: r.where, Title: r.title, Builtin: a.builtin}
		if p != nil && p.failed != nil {
			silent.At, silent.Expr = place(p.failed.Location), sourceText(p.failed)
		}
		out = append(out, silent)
	}
	return out
}

func place(l *ast.Location) string { return fmt.Sprintf("%s:%d", l.File, l.Row) }

// sourceText is the expression as its author wrote it, on one line.
func sourceText(e *ast.Expr) string {
	text := string(e.Location.Text)
	if text == "" {
		text = e.String()
	}
	return strings.Join(strings.Fields(text), " ")
}

// Write prints the events of one of TraceKinds, each with its place.
func (t *Trace) Write(w io.Writer, kind string) {
	events := t.events
	switch kind {
	case "fails":
		events = lineage.Fails(events)
	case "notes":
		events = lineage.Notes(events)
	}
	topdown.PrettyTraceWithLocation(w, events)
}

// tracer keeps events, up to eventsMax.
type tracer struct {
	events []*topdown.Event
	cut    bool
}

// Enabled implements topdown.QueryTracer.
func (t *tracer) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (t *tracer) Config() topdown.TraceConfig { return topdown.TraceConfig{PlugLocalVars: true} }

// TraceEvent implements topdown.QueryTracer.
func (t *tracer) TraceEvent(e topdown.Event) {
	if len(t.events) == eventsMax {
		t.cut = true
		return
	}
	t.events = append(t.events, &e)
}

// lastPlace is a tracer that keeps where the evaluation is.
type lastPlace struct{ at *ast.Location }

// Enabled implements topdown.QueryTracer.
func (t *lastPlace) Enabled() bool { return true }

// Config implements topdown.QueryTracer.
func (t *lastPlace) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent implements topdown.QueryTracer.
func (t *lastPlace) TraceEvent(e topdown.Event) {
	if e.Location != nil && e.Location.File != "" {
		t.at = e.Location
	}
}
