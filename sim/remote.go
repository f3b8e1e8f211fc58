package sim

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/tier"
)

// What the oracle says of remote data: when they may leave a log, and when their objects may go.

// leaves reports whether all remote data of the table are to go.
func leaves(t tier.TableState) bool {
	return t.Policy == tier.PolicyDelete && t.State != tier.Enabled
}

// counts reports whether the copy is still part of its log.
func (l *ledgerLog) counts(c *tier.Copy, t tier.TableState) bool {
	in := l.clip(c.Position, c.Content.Range)
	return c.Epoch >= l.state.Fresh && in.Next > l.state.LogStart && !in.Empty() && !leaves(t)
}

// started (S7, S16): the start of a log moves only over what was never copied, over what is older
// than the table's TTL by the oracle's own record, or where the table's tiering is turned off with
// the policy delete.
func (o *Oracle) started(l *ledgerLog, t tier.TableState) {
	id := l.state.Log
	before, seen := o.starts[id]
	o.starts[id] = l.state.LogStart
	if l.state.Fresh > o.fresh[id] {
		o.renew(id)
		o.leftBehind(l, t)
	}
	if seen && l.state.LogStart > before {
		o.goAway(id, tier.Range{Base: before, Next: l.state.LogStart})
		o.departsRemotely(l, t, before)
	}
	if !seen || l.state.LogStart <= before || leaves(t) || l.state.Fresh > o.fresh[id] {
		o.fresh[id] = l.state.Fresh
		return
	}
	if o.w.decided() && o.frozen(id.Table) {
		o.violate(Gated, "the start of %s moved to %d, and no entry of the configuration governs its "+
			"table", id, l.state.LogStart)
	}
	if o.longAstray() && !o.inTime { // else it may have moved before an effect that took its time
		o.violate(Gated, "the start of %s moved to %d while the store's clock was %s off", id,
			l.state.LogStart, o.w.Skew)
	}
	if why := o.leapt(); why != "" {
		o.violate(Gated, "the start of %s moved to %d, and %s", id, l.state.LogStart, why)
	}
	// Copies of earlier epochs have left the log with these; of that a table knows before its logs.
	fresh := max(l.state.Fresh, t.Fresh)
	table, governed := o.w.Config.Tables(id.Table)
	for _, s := range o.record(id).segments {
		if !s.closed || s.Next > l.state.LogStart || s.Base < before {
			continue
		}
		at, copied := o.copiedAt(l, s, fresh)
		// The configuration may be another one by now: that it moved is seen some operations later. What
		// was a hole is passed over, also where a copy of it came too late to be asked about.
		if copied && !o.said(tier.DeleteRemote, id, s.Base).leave && !l.hole(s.Range) {
			o.violateAt(Gated, id, s.Base, "the start of %s moved to %d over segment %d, and no policy "+
				"let it go", id, l.state.LogStart, s.Base)
		}
		if o.Policies {
			continue
		}
		old := governed && table.TTL > 0 && o.w.Now.Sub(at) > table.TTL
		if copied && !old && !l.fills(table.Bytes, s.Next) {
			o.violateAt(MinimumAge, id, s.Base, "the start of %s moved to %d over segment %d, "+
				"which is younger than table.log.ttl of %s, and not beyond table.log.bytes", id,
				l.state.LogStart, s.Base, table.TTL)
		}
	}
}

// hole reports whether some recorded hole has the range.
func (l *ledgerLog) hole(r tier.Range) bool {
	return slices.ContainsFunc(l.facts, func(f tier.Fact) bool {
		return f.Hole != nil && f.Hole.Range.Base <= r.Base && r.Next <= f.Hole.Range.Next
	})
}

// copiedAt is when the records were first written of which the log has a copy of that epoch or a
// later one; the newest, where it has several. What was never in the log's copies does not leave it
// by their expiry.
func (o *Oracle) copiedAt(l *ledgerLog, s *segmentRecord, since tier.TierEpoch) (at tier.Time,
	copied bool) {
	for _, f := range l.facts {
		if f.Add == nil || f.Add.Content.Range.Base != s.Base || !o.served[f.Add.Attempt] ||
			f.Add.Epoch < since {
			continue
		}
		for _, file := range s.files {
			if !file.records {
				continue
			}
			// A content is as old as its first writing.
			for _, v := range slices.Backward(file.versions) {
				if tier.SHA256(sha256.Sum256(v.data)) == f.Add.Content.Files[0].SHA256 {
					at, copied = max(at, o.firstWritten(&file, v.data)), true
					break
				}
			}
		}
	}
	return at, copied
}

// removes judges the removal of one object from the store: of a copy that left its log, in ledger
// and manifest, at least the grace ago; or of what nothing names.
func (o *Oracle) removes(key string) {
	ledger, err := o.w.ledgerNow()
	if err != nil {
		return // rest says so
	}
	store := o.w.storeNow(ledger.id)
	k, ok := o.w.parseKey(ledger.id, key)
	if !ok {
		o.violate(OrphanNeverLive, "%s is removed, and is no object of tierd's", key)
		return
	}
	if k.Kind == objstore.KeyProbe {
		return
	}
	o.announcedObject(key)
	l, t := ledger.log(k.Log), ledger.table(k.Log.Table)
	if l == nil {
		return
	}
	if o.w.Paused || t.Paused != nil {
		o.violate(Gated, "%s is removed while deletions are paused", key)
	}
	if t.Dropped == 0 && o.w.asks() && o.frozen(k.Log.Table) {
		o.violate(Gated, "%s is removed, and no entry of the configuration governs its table", key)
	}
	if k.Kind != objstore.KeyFile {
		return // a manifest's object, judged by what the manifest says without it
	}
	if why := o.leapt(); why != "" {
		o.violate(Gated, "%s is removed, and %s", key, why)
	}
	for _, a := range l.attempts {
		if a.ID == k.Attempt {
			o.violate(OrphanNeverLive, "%s is removed, and its attempt is under way", key)
		}
	}
	if !l.has(k.Attempt) {
		o.agedOrphan(key, l, k.Attempt)
	}
	for _, f := range l.facts {
		if f.Add == nil || f.Add.Attempt != k.Attempt {
			continue
		}
		if l.counts(f.Add, t) {
			o.violate(StartFirst, "%s is removed, and its copy is still part of the log", key)
		}
		o.afterGrace(key, l, f.Add, t, store)
		o.removedCopy(l, &f, t)
	}
}

// agedOrphan (S15): what no copy names waits for orphan_age, from when its attempt was abandoned,
// or by the store's own clock, with what clocks may differ by.
func (o *Oracle) agedOrphan(key string, l *ledgerLog, id tier.AttemptID) {
	a, err := o.w.Objects.Attributes(context.Background(), key)
	if err != nil {
		return // nothing is there to be removed
	}
	since := tier.TimeOf(a.LastModified).Add(-o.w.Config.Tolerance)
	for _, t := range l.tombstones {
		if t.ID == id {
			since = t.At
		}
	}
	if age := o.w.Now.Sub(since); age < o.w.Config.OrphanAge {
		o.violate(OrphanNeverLive, "%s is removed at an age of %s, and orphan_age is %s", key, age,
			o.w.Config.OrphanAge)
	}
}

// announcedObject (S4): the audit log durably says that the object is about to go.
func (o *Oracle) announcedObject(key string) {
	for _, in := range o.w.intents() {
		remote := in.action != tier.DeleteLocal && in.object != ""
		if remote && in.outcome == "" && strings.HasPrefix(key, in.object) {
			return
		}
	}
	o.violate(PersistBeforeAct, "%s is removed, and no durable audit record announced it", key)
}

// afterGrace (S7): the move that took the copy out of the log stands in the manifest, and readers
// had the grace to finish.
func (o *Oracle) afterGrace(key string, l *ledgerLog, c *tier.Copy, t tier.TableState,
	store *storeTruth) {
	if c.Epoch < l.state.Fresh || !o.served[c.Attempt] {
		return // no reader was ever sent there
	}
	if o.lostMark(l.state.Log) {
		return // that the ledger says it is for the next scrub to say again
	}
	grace := tier.Time(o.w.Config.Grace)
	in := l.clip(c.Position, c.Content.Range) // what is left of it once others lead the log
	cut := in == c.Content.Range
	for _, f := range store.manifest(l.state.Log).facts {
		cut = cut || f.Clip != nil && f.Position > c.Position && *f.Clip <= in.Next &&
			o.w.Now-f.At >= grace
	}
	if cut && in.Empty() {
		return
	}
	said := func(start tier.Offset) bool {
		return slices.ContainsFunc(store.manifest(l.state.Log).facts, func(f tier.Fact) bool {
			return f.Start != nil && *f.Start >= start
		})
	}
	for _, m := range l.state.Moves {
		covers := cut && in.Next <= m.Start || leaves(t) && m.Cause != tier.MoveExpired
		if covers && said(m.Start) && o.w.Now-m.At >= grace {
			return
		}
	}
	// The moves are forgotten by then where no other copy was left that they had passed.
	forgotten := in != c.Content.Range && len(l.state.Moves) == 0 && in.Next <= l.state.LogStart
	if forgotten && cut && said(l.state.LogStart) {
		return
	}
	o.violate(StartFirst, "%s is removed, and the start was not moved over it, in ledger and "+
		"manifest, at least %s ago", key, o.w.Config.Grace)
}

// stray notes an object that nobody of this ledger put into the store.
func (o *Oracle) stray(key string) { o.changed = true; o.strays = append(o.strays, key) }

func (o *Oracle) isStray(key string) bool {
	return slices.ContainsFunc(o.strays, func(s string) bool { return strings.HasPrefix(key, s) })
}
