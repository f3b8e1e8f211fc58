package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim/choose"
)

// A damaged segment blocks its own log until its owner repairs it, or an operator accepts its loss:
// then it is a hole, and copying goes on behind it. The file stays.

// AcceptLoss plays "tierd accept-loss" for the segment at base, as the daemon does it. refused says
// why it is not accepted; the error is why the process ended.
func (w *World) AcceptLoss(id tier.LogID, base tier.Offset) (refused, err error) {
	err = w.act(func() error {
		p := w.process
		list, _ := p.engine.Segments(id)
		i := slices.IndexFunc(list, func(v engine.SegmentView) bool {
			return v.Base == base && v.Local && !v.Remote && v.Segment.Closed()
		})
		if i < 0 {
			refused = fmt.Errorf("%s@%d: no closed segment that is not copied", id, base)
			return nil
		}
		v := list[i]
		judge := func() {}
		if w.oracle != nil {
			judge = w.oracle.gaveUp(id, v.Range)
		}
		ev, why, err := p.exec.AcceptLoss(context.Background(), SourceName, id, v.Segment)
		judge()
		if refused = why; ev != nil {
			w.step(*ev)
		}
		return err
	})
	return refused, err
}

// loss is a damaged segment that an operator gave up, as it was then.
type loss struct {
	log tier.LogID
	tier.Range
	data []byte
}

// gaveUp notes that an operator is about to accept the loss of a segment, and returns what takes
// that back where nothing of it became durable, whatever the process was told. Only what is damaged
// can be lost: as it was before, or as it is then, where it rots meanwhile.
func (o *Oracle) gaveUp(id tier.LogID, r tier.Range) (judge func()) {
	before := len(o.losses)
	was := false // the hole is of an acceptance before, maybe of other bytes
	if ledger, err := o.w.ledgerNow(); err == nil {
		l := ledger.log(id)
		was = l != nil && l.lossHole(r)
	}
	note := func() {
		for _, x := range liveRecords(o.w.files(id)) {
			v := o.knows(x.fileName, x.data)
			noted := slices.ContainsFunc(o.losses[before:], func(l loss) bool {
				return bytes.Equal(l.data, x.data)
			})
			if x.base == r.Base && v != nil && v.rotten && !noted {
				o.losses = append(o.losses, loss{id, r, bytes.Clone(x.data)})
			}
		}
	}
	note()
	return func() {
		note()
		var l *ledgerLog
		if ledger, err := o.w.ledgerNow(); err == nil {
			l = ledger.log(id)
		}
		kept := o.losses[:before]
		for _, x := range o.losses[before:] {
			if l != nil && (l.hasLoss(x) || !was && l.lossHole(r)) {
				kept = append(kept, x)
			}
		}
		o.losses = kept
	}
}

// hasLoss reports whether the loss is on record.
func (l *ledgerLog) hasLoss(x loss) bool {
	return slices.ContainsFunc(l.state.Accepted, func(a tier.LossAccepted) bool {
		return a.Range == x.Range && a.SHA256 == sha256.Sum256(x.data)
	})
}

// lossHole reports whether the range is a hole on record since its loss was accepted.
func (l *ledgerLog) lossHole(r tier.Range) bool {
	return slices.ContainsFunc(l.facts, func(f tier.Fact) bool {
		return f.Hole != nil && f.Hole.Cause == tier.HoleLossAccepted && endOf(f.Hole.Range, r)
	})
}

// endOf reports whether the hole is what was lost, or the end of it: what was copied is no hole.
func endOf(hole, lost tier.Range) bool { return lost.Covers(hole) && hole.Next == lost.Next }

// givenUp reports whether the file with records is one that an operator gave up, and the same
// still.
func (o *Oracle) givenUp(x *file) bool {
	return slices.ContainsFunc(o.losses, func(l loss) bool {
		return l.log == x.log && l.Base == x.base && bytes.Equal(l.data, x.data)
	})
}

// passes reports whether copying passes over the file: its loss is durable, and of a tier epoch
// that counts.
func (o *Oracle) passes(x *file) bool {
	ledger, err := o.w.ledgerNow()
	if err != nil || !o.givenUp(x) {
		return false
	}
	l := ledger.log(x.log)
	return l != nil && slices.ContainsFunc(l.state.Accepted, func(a tier.LossAccepted) bool {
		return a.Range.Base == x.base && a.SHA256 == sha256.Sum256(x.data)
	})
}

// givenUpAll (S6, S4): nothing is recorded as lost that no operator gave up, or that was not
// damaged; what was given up is known by what was there then, and is a hole where its offsets were
// not passed before; and of each the audit log says so.
func (o *Oracle) givenUpAll(l *ledgerLog) {
	id := l.state.Log
	for _, a := range l.state.Accepted {
		if a.Range.Next > l.state.Copied && !l.hole(tier.Range{
			Base: max(a.Range.Base, l.state.Copied), Next: a.Range.Next}) {
			o.violateAt(NoGap, id, a.Range.Base, "the loss of %s of %s is on record, and it is no hole",
				a.Range, id)
		}
		if o.given[a] {
			continue
		}
		o.given[a] = true
		if !slices.ContainsFunc(o.losses, func(x loss) bool {
			return x.log == id && x.Range == a.Range && sha256.Sum256(x.data) == a.SHA256
		}) {
			o.violateAt(NoGap, id, a.Range.Base, "the loss of %s of %s is on record, and no operator "+
				"accepted that of a damaged file with this hash", a.Range, id)
		}
		o.lossAnnounced(id, a.Range, &a.SHA256)
	}
	for _, f := range l.facts {
		if f.Hole == nil || f.Hole.Cause != tier.HoleLossAccepted {
			continue
		}
		i := slices.IndexFunc(o.losses, func(x loss) bool {
			return x.log == l.state.Log && endOf(f.Hole.Range, x.Range)
		})
		if i < 0 {
			o.violateAt(NoGap, l.state.Log, f.Hole.Range.Base, "%s of %s is recorded as lost, and no "+
				"operator accepted that", f.Hole.Range, l.state.Log)
			continue
		}
		o.lossAnnounced(id, o.losses[i].Range, nil)
	}
}

// lossAnnounced (S4): the audit log durably says that the loss was accepted, by the hash if there
// is one, and that the file stays.
func (o *Oracle) lossAnnounced(id tier.LogID, r tier.Range, sum *tier.SHA256) {
	for _, in := range o.w.intents() {
		same := in.is(id, r.Base) && (sum == nil || in.sum == *sum)
		if same && in.action == tier.AcceptLoss && in.outcome == tier.OutcomeKept {
			return
		}
	}
	o.violateAt(PersistBeforeAct, id, r.Base, "the loss of %s of %s is on record, and no audit "+
		"record with an outcome says that it was accepted", r, id)
}

// lossActs accept the loss of a segment that rotted.
func (h *play) lossActs() []act {
	if h.broker == nil {
		return nil
	}
	return []act{{kindOperator, "accepts a loss", 12, func() {
		var damaged []file
		var names []string
		for _, id := range h.p.Logs {
			for _, x := range liveRecords(h.w.files(id)) {
				if v := h.o.knows(x.fileName, x.data); v != nil && v.rotten {
					damaged = append(damaged, x)
					names = append(names, fmt.Sprintf("%s@%d", id, x.base))
				}
			}
		}
		if len(damaged) == 0 {
			return
		}
		pick := choose.Pick(h.c, "segment that rotted", names, nil)
		x := damaged[pick]
		refused, err := h.w.AcceptLoss(x.log, x.base)
		if refused != nil {
			h.line(LaneLedger, "the loss of %s is not accepted: %v", names[pick], refused)
		} else if err == nil {
			h.met(LossAccepted)
			h.line(LaneLedger, "an operator accepts the loss of %s", names[pick])
		}
		h.alive(err)
	}}}
}
