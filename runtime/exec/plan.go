package exec

import (
	"context"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// Planned is what the gate would answer for one segment, or one object that nothing names.
type Planned struct {
	Action  tier.Action
	Range   tier.Range
	Bytes   int64
	Verdict gate.Verdict
	// Object is the key of an orphan; "" of a segment.
	Object string
	// Alone is set where it is asked about by itself: that it stays keeps nothing else.
	Alone bool
}

// Question is whom to ask about deletions, and as of when. The zero value asks the gate in force,
// now.
type Question struct {
	Gate *gate.Gate
	At   tier.Time
}

// inquiry is a question and the answers to it. It is over with the first segment that stays.
type inquiry struct {
	gate    *gate.Gate
	at      tier.Time
	answers []Planned
	window  tier.BrakeWindow
	over    bool
}

func (x *Executor) inquire(g *Generation, log tier.LogID, questions []Question) []inquiry {
	out := make([]inquiry, len(questions))
	now := x.c.Now()
	durable := x.c.Ledger.Table(log.Table).Window
	for i, q := range questions {
		out[i].gate, out[i].at = q.Gate, q.At
		if q.Gate == nil {
			out[i].gate = g.Gate
		}
		if q.At == 0 {
			out[i].at = now
		}
		out[i].window = durable.At(out[i].at, g.Brake.Per)
	}
	return out
}

// ask puts the questions that are not over to their gates. The facts are those of one look, so that
// two answers differ by policies and time alone. It reports whether some question goes on.
func ask(ctx context.Context, open []inquiry, facts *gate.Facts) (goesOn bool) {
	for i := range open {
		q := &open[i]
		if q.over {
			continue
		}
		own := *facts
		own.Now = max(own.Now, q.at)
		q.window = q.window.Plus(1, own.Seg.Bytes)
		own.Safety.Window = q.window
		v := q.gate.Explain(ctx, &own)
		q.answers = append(q.answers, Planned{Action: own.Action, Range: own.Seg.Range,
			Bytes: own.Seg.Bytes, Verdict: v})
		q.over = !v.Delete
		goesOn = goesOn || v.Delete
	}
	return goesOn
}

func answers(open []inquiry) [][]Planned {
	out := make([][]Planned, len(open))
	for i := range open {
		out[i] = open[i].answers
	}
	return out
}

// PlanLocal asks what a deletion of the candidates would be asked, in order, each as if those
// before it were gone, up to the first that stays. It deletes nothing, and makes no permit. There
// is a list of answers for each question.
func (x *Executor) PlanLocal(ctx context.Context, f engine.Delete, questions ...Question) (
	[][]Planned, error) {
	g := x.c.Generation()
	open := x.inquire(g, f.Log, questions)
	if len(f.Segments) == 0 {
		return answers(open), nil // and perhaps no source
	}
	src, err := x.source(f.Source)
	if err != nil {
		return nil, err
	}
	gone := map[tier.Offset]bool{}
	bytes := int64(0)
	for i, c := range f.Segments {
		facts, _, err := x.facts(ctx, g, src, f, c)
		if err != nil {
			return nil, err
		}
		facts.Log.LocalBytes -= bytes
		if i > 0 && facts.Safety.FirstLocal == tier.No {
			facts.Safety.FirstLocal = x.firstWithout(ctx, src, f.Log, gone, c.Segment.Base)
			if o := &facts.Safety.Owner; o.Asked == tier.Yes && o.Start < c.Segment.Base {
				o.Begins = facts.Safety.FirstLocal // what is before it would be given up, too
			}
		}
		if !ask(ctx, open, facts) {
			break
		}
		gone[facts.Seg.Range.Base] = true
		bytes += facts.Seg.Bytes
	}
	return answers(open), nil
}

// firstWithout reports whether the segment would be the oldest if those in gone were not there.
func (x *Executor) firstWithout(ctx context.Context, src Source, log tier.LogID,
	gone map[tier.Offset]bool, base tier.Offset) tier.Truth {
	scan, whole, err := src.Look(ctx, log)
	if err != nil || !whole {
		return tier.Unknown
	}
	for _, s := range scan.Segments {
		if !gone[s.Base] {
			return tier.TruthOf(s.Base == base)
		}
	}
	return tier.No
}

// PlanRemote asks what an expiry of the remote candidates would be asked, in order, up to the first
// that stays. It moves nothing, and makes no permit. There is a list of answers for each question.
func (x *Executor) PlanRemote(ctx context.Context, f engine.Expire, questions ...Question) (
	[][]Planned, error) {
	g := x.c.Generation()
	open := x.inquire(g, f.Log, questions)
	if len(f.Segments) == 0 {
		return answers(open), nil
	}
	state, _ := x.c.Ledger.Log(f.Log)
	knows, _ := x.ledgerKnows(ctx, f.Log, state)
	left := f.Remote
	for _, c := range f.Segments {
		facts, _, err := x.remoteFacts(ctx, g, f.Log, tier.DeleteRemote, c, left)
		if err != nil {
			return nil, err
		}
		r := &facts.Safety.Remote
		r.Logical, r.Oldest, r.LedgerKnows = true, tier.Yes, knows
		if !ask(ctx, open, facts) {
			break
		}
		left = without(left, c)
	}
	return answers(open), nil
}

// PlanRemove asks what the removal of copies would be asked that have left their log, each by
// itself. It removes nothing, and makes no permit. There is a list of answers for each question.
func (x *Executor) PlanRemove(ctx context.Context, f engine.Remove, questions ...Question) (
	[][]Planned, error) {
	g := x.c.Generation()
	open := x.inquire(g, f.Log, questions)
	if len(f.Copies) == 0 {
		return answers(open), nil
	}
	state, _ := x.c.Ledger.Log(f.Log)
	knows, _ := x.ledgerKnows(ctx, f.Log, state)
	for _, c := range f.Copies {
		facts, cp, err := x.remoteFacts(ctx, g, f.Log, f.Action, c, f.Remote)
		if err != nil {
			return nil, err
		}
		facts.Safety.Remote.LedgerKnows = knows
		if f.Action == tier.DeleteOrphan {
			cutOff(facts, &state, &cp)
		}
		askAlone(ctx, open, facts, "")
	}
	return answers(open), nil
}

// askAlone asks about what goes or stays by itself, and gives the answers.
func askAlone(ctx context.Context, open []inquiry, facts *gate.Facts, object string) []*Planned {
	ask(ctx, open, facts)
	last := make([]*Planned, len(open))
	for i := range open {
		last[i] = &open[i].answers[len(open[i].answers)-1]
		last[i].Alone, last[i].Object = true, object
		open[i].over = false
	}
	return last
}
