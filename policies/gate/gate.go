// Package gate decides whether a deletion may happen, and is the only maker of permits.
//
// A deletion passes two judges, at one moment and on the same fresh facts. The guard is Go, stands
// under every policy and cannot be configured away: it keeps whatever is not closed, not proved,
// not first of its log, paused, of a wrong state or not known. Then the policies are asked. Only if
// the guard has no objection and the policies say "delete" does Ask return a permit; the droppers
// in logdir and objstore refuse to work without one.
package gate

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// Policies answers for one set of facts. An error means that no answer could be had: undefined, a
// time-out, a wrong type. It keeps.
type Policies interface {
	Decide(ctx context.Context, f *Facts) (Decision, error)
}

// Decision is what the policies say of one deletion.
type Decision struct {
	// A TTL, a size or an expire rule asks for it, and no deny rule speaks against it
	Delete  bool
	Reasons []tier.Reason // the rules that decided, each with file:line
	Due     tier.Time     // when the answer may change by time alone; absent if it will not
	Digest  string        // of the policies and data that decided, hexadecimal
	Data    string        // digest of the data alone, hexadecimal
}

// Verdict is the gate's answer. Exactly one of Delete and Reasons-to-keep holds: where Delete is
// false, at least one reason says why.
type Verdict struct {
	Delete  bool
	Guard   []tier.Reason // objections of the guard; empty if it passes
	Reasons []tier.Reason // all reasons, the guard's first
	Due     tier.Time     // when it is worth asking again; absent if only a change of facts can help
	Digest  string        // of the policies that were asked; empty if the guard kept it alone
	Data    string        // digest of their data; likewise
}

// Gate joins guard and policies.
type Gate struct{ policies Policies }

// New returns a gate that asks p after the guard. p must not be nil.
func New(p Policies) *Gate {
	if p == nil {
		panic("gate: policies must not be nil")
	}
	return &Gate{policies: p}
}

// Ask judges the facts. The permit is the zero Permit, which permits nothing, unless
// Verdict.Delete is true.
func (g *Gate) Ask(ctx context.Context, f *Facts) (Permit, Verdict) {
	v := g.Judge(ctx, f)
	if !v.Delete {
		return Permit{}, v
	}
	return Permit{grant: &grant{target: f.Target()}}, v
}

// Judge answers as Ask does, for those who only want to know: nothing is permitted by it.
func (g *Gate) Judge(ctx context.Context, f *Facts) Verdict {
	if objections := Guard(f); len(objections) > 0 {
		v := Verdict{Guard: objections, Reasons: objections}
		for _, o := range objections {
			if o.Until != 0 && (v.Due == 0 || o.Until < v.Due) {
				v.Due = o.Until
			}
		}
		return v
	}
	d, err := g.policies.Decide(ctx, f)
	if err != nil && planted.Is(planted.ErrorIsAllow) {
		d.Delete, err = true, nil
	}
	if err != nil {
		r := tier.Reason{Code: tier.CodePolicyError, Text: fmt.Sprintf("kept: %v", err)}
		return Verdict{Reasons: append(d.Reasons, r), Digest: d.Digest, Data: d.Data}
	}
	v := Verdict{Delete: d.Delete, Reasons: d.Reasons, Due: d.Due, Digest: d.Digest, Data: d.Data}
	if !d.Delete && len(v.Reasons) == 0 {
		v.Reasons = []tier.Reason{{Code: tier.CodePolicyError,
			Text: "kept: the policies gave no reason and no answer"}}
	}
	return v
}

// Explain judges the facts for people and permits nothing. Where the guard objects, policies are
// asked as well, so that a pause or a brake does not hide what will keep the segment after it.
func (g *Gate) Explain(ctx context.Context, f *Facts) Verdict {
	v := g.Judge(ctx, f)
	if len(v.Guard) == 0 {
		return v
	}
	d, err := g.policies.Decide(ctx, f)
	if err != nil {
		d.Delete, d.Reasons = false, append(d.Reasons, tier.Reason{Code: tier.CodePolicyError,
			Text: fmt.Sprintf("kept: %v", err)})
	}
	if !d.Delete {
		v.Reasons = append(slices.Clip(v.Reasons), d.Reasons...)
		v.Digest, v.Data = d.Digest, d.Data
		v.Due = max(v.Due, d.Due)
	}
	return v
}

// Target is exactly what a permit allows to be deleted.
type Target struct {
	Action tier.Action
	Log    tier.LogID
	Range  tier.Range
	Object string    // key or key prefix in the store; empty for local deletions
	File   tier.Stat // identity of the local log file; zero for remote deletions
	Bytes  int64     // of all files of the local segment; zero for remote deletions
	Rest   tier.Mark // of its files beside that one; likewise
	// Term is the leader epoch of the node that was asked about a local segment of its log; zero
	// where none was.
	Term tier.LeaderEpoch
}

// Permit is leave to delete one target, once. Only Gate.Ask makes one that permits anything.
type Permit struct{ grant *grant }

type grant struct {
	target Target
	spent  atomic.Bool
}

// Spend uses the permit up for want. It is refused for the zero permit, for one that was spent,
// and for any other target than the one that was asked for.
func (p Permit) Spend(want Target) error {
	switch {
	case p.grant == nil:
		return fmt.Errorf("%s of %s %s: no permit", want.Action, want.Log, want.Range)
	case p.grant.target != want:
		return fmt.Errorf("%s of %s %s: the permit is for %+v",
			want.Action, want.Log, want.Range, p.grant.target)
	case !p.grant.spent.CompareAndSwap(false, true):
		return fmt.Errorf("%s of %s %s: the permit is spent", want.Action, want.Log, want.Range)
	}
	return nil
}
