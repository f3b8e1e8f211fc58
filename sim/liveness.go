package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/audit"
	"github.com/tierd/tierd/runtime/tier"
)

// Quiet judges what must have come about once nothing fails any more, enough time has passed and a
// Run has come to its end: everything that is closed is copied, everything that is over is gone,
// and nothing is left of what was interrupted.
func (o *Oracle) Quiet() {
	o.changed = true
	o.rest()
	ledger, err := o.w.ledgerNow()
	if err != nil || o.w.process.err != nil {
		o.violate(Recovered, "the process does not run: %v, %v", err, o.w.process.err)
		return
	}
	store := o.w.storeNow(ledger.id)
	for _, l := range o.logs {
		files := o.w.files(l.id)
		known, t := ledger.log(l.id), ledger.table(l.id.Table)
		o.readable(l)
		o.reported(l, files, ledger)
		if (t.Dropped == 0 || known == nil) && o.frozen(l.id.Table) {
			continue // whatever is left is left, and what was never opened stays so
		}
		if t.State == tier.Enabled {
			o.noGap(l, files, known, true)
			o.eligible(l, files, known, store)
		}
		o.expired(l, files, ledger)
		o.outlived(l, files, known, t)
		o.outstays(l, files, known, t, store)
		o.settled(l, files, known, t, store)
		o.current(l, known, t)
	}
	o.spelled(ledger)
	o.probes(store)
	o.drains(ledger)
	if at := o.w.process.engine.RetryAt(); at != 0 {
		o.violate(NoLivelock, "nothing fails any more, and something is to be tried again at %s", at)
	}
	o.concluded()
}

// eligible (L1): every closed segment that is on disk is in the store as it is on disk. A file that
// is left without the one with the records belongs to no segment.
func (o *Oracle) eligible(l *logRecord, files []file, known *ledgerLog,
	store *storeTruth) {
	records := liveRecords(files)
	for _, x := range files {
		if o.passes(&x) {
			continue
		}
		if o.givenUp(&x) {
			return // in a tier epoch that is over: it blocks its log once more
		}
		closed := x.place == live && len(records) > 0 && x.base < records[len(records)-1].base
		segment := slices.ContainsFunc(records, func(r file) bool { return r.base == x.base })
		if !closed || !segment || known.wasExpired(l, x.base) || known.expiredBelow(l, x.base) {
			continue
		}
		v := o.knows(x.fileName, x.data)
		if v == nil {
			v = &version{data: x.data}
		}
		if missing := store.missing(x.fileName, v); missing != "" {
			o.violateAt(EligibleCopied, l.id, x.base, "%s of %s is closed and was not copied: %s",
				x.name, l.id, missing)
		}
	}
}

// wasExpired reports whether the segment left the log by its TTL, and its copy the store, before
// the file was seen again, as after a mount that was lost for so long. Such a file is neither
// copied anew nor deleted.
func (l *ledgerLog) wasExpired(r *logRecord, base tier.Offset) bool {
	s := r.segment(base)
	if l == nil || s == nil || !l.state.Expired.Covers(s.Range) {
		return false
	}
	return !slices.ContainsFunc(l.facts, func(f tier.Fact) bool {
		return f.Add != nil && f.Add.Content.Range.Base == base
	})
}

// expiredBelow reports whether the segment is no part of the log any more, since its copy expired.
// What is kept of the copy, to show that the file is the copied one, may be lost.
func (l *ledgerLog) expiredBelow(r *logRecord, base tier.Offset) bool {
	s := r.segment(base)
	return l != nil && s != nil && s.Next <= l.state.LogStart && l.state.Expired.Covers(s.Range)
}

// expired (L2): no limit of the table is over for the oldest segment, or something speaks against
// its deletion.
func (o *Oracle) expired(l *logRecord, files []file, ledger *ledgerTruth) {
	records := liveRecords(files)
	table, governed := o.w.Config.Tables(l.id.Table)
	t := ledger.table(l.id.Table)
	stopped := o.w.Paused || t.Paused != nil || o.Policies || !governed || t.Dropped != 0 ||
		o.denies(l.id) || o.w.Config.Delete != tier.LocalDeleteUnlink
	if stopped || len(records) < 2 {
		return
	}
	oldest := records[0]
	if o.givenUp(&oldest) {
		return // only its owner's hand removes what was never copied
	}
	table = o.limits(table)
	// A file that was written again may be taken for younger than its content.
	young := o.w.Now.Sub(oldest.stat.ModTime) <= table.LocalTTL
	table.LocalTTL = max(table.LocalTTL, 0)
	if young && table.LocalTTL > 0 && !table.LocalSegments.Set && !table.LocalBytes.Set {
		return
	}
	known := ledger.log(l.id)
	if known.wasExpired(l, oldest.base) {
		return // nothing shows any more that it is the file that was copied
	}
	if known != nil && oldest.base < known.state.Start {
		return // it came after the log was first seen: an operator is told to move it away
	}
	if o.over(table, oldest.fileName, files) {
		o.violateAt(ExpiredDeleted, l.id, oldest.base,
			"segment %d of %s may go and is still on disk", oldest.base, l.id)
	}
}

// settled (L3): no attempt is open, no fact is unpublished, nothing lies in the trash, and the
// manifest says what the ledger says, to whoever decodes it.
func (o *Oracle) settled(l *logRecord, files []file, known *ledgerLog, t tier.TableState,
	store *storeTruth) {
	why := ""
	listed := store.listed(l.id)
	says, read := summary(store.manifest(l.id).facts), summary(listed)
	switch {
	case says != read:
		why = fmt.Sprintf("its manifest says %sand is read as %s", says, read)
	case slices.ContainsFunc(files, func(x file) bool { return x.place != live }):
		why = "something lies in the trash"
	case known == nil && len(liveRecords(files)) > 0:
		why = "the ledger does not know it"
	case known == nil:
		return
	case len(known.attempts) > 0:
		why = "an attempt is still under way"
	case len(known.state.Unpublished) > 0:
		why = "a fact is not in the manifest"
	case !o.lostSome(l.id):
		denied := o.Policies || o.denies(l.id)
		// An orphan that is denied stands, too: one of an attempt whose objects the store did not
		// show when they were looked for.
		listed = slices.DeleteFunc(listed, func(f tier.Fact) bool {
			return f.Add != nil && (known.past(f.Add, store) || o.leftUnsaid(l.id, f.Add) ||
				denied && !known.has(f.Add.Attempt))
		})
		// Of a removal that had its effect, and was denied when it was tried again, or waits for the
		// local file of the copy to go first, nothing but its record stands: as outstanding.
		recorded := slices.DeleteFunc(slices.Clone(known.facts), func(f tier.Fact) bool {
			if f.Add != nil && o.leftUnsaid(l.id, f.Add) {
				return true
			}
			if f.Add == nil || known.counts(f.Add, t) || !known.past(f.Add, store) {
				return false
			}
			return denied || slices.ContainsFunc(files, func(x file) bool {
				return x.base == f.Add.Content.Range.Base
			})
		})
		if a, b := summary(recorded), summary(listed); a != b ||
			!known.sameHoles(listed, t) {
			why = fmt.Sprintf("the ledger says %sand the manifest %s", a, b)
		}
	}
	if why != "" {
		o.violate(Settled, "%s: %s", l.id, why)
	}
}

// probes (L3): no object of a probe outlives its time.
func (o *Oracle) probes(store *storeTruth) {
	age := 2 * o.w.Config.OrphanAge // the sweep that finds it comes once in that time
	for _, x := range store.others {
		if x.Kind != objstore.KeyProbe || age == 0 {
			continue
		}
		a, err := o.w.Objects.Attributes(context.Background(), x.key)
		must(err)
		if o.w.Now.Sub(tier.TimeOf(a.LastModified)) > age {
			o.violate(Settled, "%s is of %s, and still there", x.key, a.LastModified)
		}
	}
}

// has reports whether a copy of the attempt is on record.
func (l *ledgerLog) has(id tier.AttemptID) bool {
	return slices.ContainsFunc(l.facts, func(f tier.Fact) bool {
		return f.Add != nil && f.Add.Attempt == id
	})
}

// past reports whether an entry of the manifest proves nothing any more: its attempt was abandoned,
// or its copy was removed.
func (l *ledgerLog) past(c *tier.Copy, store *storeTruth) bool {
	abandoned := slices.ContainsFunc(l.tombstones, func(t offsets.Tombstone) bool {
		return t.ID == c.Attempt
	})
	stored := slices.ContainsFunc(store.objects, func(o *object) bool {
		return o.Attempt == c.Attempt
	})
	return abandoned || !stored
}

// summary writes down facts but holes, in one line, without what depends on this machine's files.
func summary(facts []tier.Fact) string {
	var b bytes.Buffer
	for _, f := range facts {
		if f.Hole != nil {
			continue
		}
		if f.Add == nil {
			fmt.Fprintf(&b, "%d mark of epoch %d; ", f.Position, f.Epoch)
			continue
		}
		fmt.Fprintf(&b, "%d copy %s of attempt %s:", f.Position, f.Add.Content.Range, f.Add.Attempt)
		for _, file := range f.Add.Content.Files {
			fmt.Fprintf(&b, " %s %s", file.Name, file.SHA256)
		}
		b.WriteString("; ")
	}
	return b.String()
}

// sameHoles reports whether ledger and manifest know of the same holes. A ledger that was made anew
// takes no offset for one that a copy has or had, and may name it at another position; of epochs
// before the fresh one, of which nothing counts, it need not know any, and neither of a table whose
// copies were all told to leave: that over the hole is gone, and nothing says any more that it was.
func (l *ledgerLog) sameHoles(manifest []tier.Fact, t tier.TableState) bool {
	of := func(facts []tier.Fact) (holes, copies tier.RangeSet) {
		for _, f := range facts {
			switch {
			case f.Epoch < l.state.Fresh:
			case f.Hole != nil:
				holes = holes.Add(f.Hole.Range)
			case f.Add != nil:
				copies = copies.Add(f.Add.Content.Range)
			}
		}
		return holes, copies
	}
	known, either := of(l.facts)
	told, _ := of(manifest)
	for _, r := range known {
		if !told.Covers(r) {
			return false
		}
		either = either.Add(r)
	}
	for _, r := range l.state.Expired {
		either = either.Add(r)
	}
	return leaves(t) ||
		!slices.ContainsFunc(told, func(r tier.Range) bool { return !either.Covers(r) })
}

// gone are the deletions whose file is really no longer there.
func (o *Oracle) gone() []deletion {
	left := map[uint64]bool{}
	for _, l := range o.logs {
		for _, x := range o.w.files(l.id) {
			left[x.stat.Inode] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(o.deletions), func(d deletion) bool {
		return left[d.inode]
	})
}

// counted (S14): the brake's window of a table has every deletion since it began, and its bytes:
// also those that a crash interrupted, and those of which a failing disk hid how they ended. It
// ends when its time is over, and not before.
func (o *Oracle) counted(ledger *ledgerTruth) {
	p := o.w.process
	if p == nil || p.err != nil || len(o.deletions) == 0 {
		return
	}
	// Most looks end here: all that ever went are no more than what is counted.
	exceeded := func(t *tier.TableState, list []deletion) (in tier.BrakeWindow, more bool) {
		for _, d := range list {
			if d.log.Table == t.Table && d.at >= t.Window.Since && !d.forgiven {
				in = in.Plus(1, d.bytes)
			}
		}
		return in, in.Segments > t.Window.Segments || in.Bytes > t.Window.Bytes
	}
	for i := range ledger.tables {
		t := &ledger.tables[i]
		o.windowEnded(t)
		if _, more := exceeded(t, o.deletions); !more {
			continue
		}
		n, more := exceeded(t, o.gone())
		if more && o.allConcluded() {
			o.violate(CountedOnce, "%d segments and %d bytes of %s went since %s, and the brake counts %d "+
				"and %d", n.Segments, n.Bytes, t.Table, t.Window.Since, t.Window.Segments, t.Window.Bytes)
		}
	}
}

// concluded (S17): the audit log is whole, each deletion that was announced has an outcome, and the
// outcome "deleted" was written once for each segment that went, and for no other.
func (o *Oracle) concluded() {
	why := ""
	dir, err := o.w.Disk.Sub(auditDir)
	must(err)
	if report, err := audit.Verify(dir); err != nil {
		why = err.Error()
	} else if len(report.Open) > 0 {
		why = fmt.Sprintf("%d deletions have no outcome", len(report.Open))
	}
	var went, said []string
	for _, d := range o.gone() {
		went = append(went, fmt.Sprintf("%s %d", d.log, d.base))
	}
	for _, in := range o.w.intents() {
		if in.outcome == tier.OutcomeDeleted && in.action == tier.DeleteLocal && !o.untold[in.seq] {
			said = append(said, fmt.Sprintf("%s %d", in.log, in.base))
		}
	}
	for _, in := range o.w.intents() { // they may tell of what no other one does
		name := fmt.Sprintf("%s %d", in.log, in.base)
		if in.outcome != tier.OutcomeKept && o.untold[in.seq] && slices.Contains(went, name) &&
			!slices.Contains(said, name) {
			said = append(said, name)
		}
	}
	slices.Sort(went)
	slices.Sort(said)
	if why == "" && !slices.Equal(went, said) {
		why = fmt.Sprintf("deleted were [%s], and the audit log says [%s]",
			strings.Join(went, ", "), strings.Join(said, ", "))
	}
	if why != "" {
		o.violate(AuditTrue, "%s", why)
	}
}
