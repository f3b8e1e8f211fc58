package sim

import (
	"context"
	"errors"
	"slices"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/audit"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/rebuild"
	"github.com/tierd/tierd/runtime/tier"
)

// Remember keeps the ledger as it is now, as a backup would, and returns what puts it back. The
// process must have ended by then.
func (w *World) Remember() (putBack func()) {
	backup := w.Medium.Clone()
	return func() {
		if w.oracle != nil {
			w.oracle.bury()
		}
		w.Medium = backup
		w.boltKnown = false
		w.wire()
		if w.oracle != nil {
			w.oracle.forget()
			w.oracle.old = true
		}
	}
}

// Rebuild plays "tierd rebuild" after the process has ended: whatever the ledger was, the new one
// is made of what store and source have. Where it fails the old one stays.
func (w *World) Rebuild() (*rebuild.Report, error) {
	if w.process != nil && w.process.err == nil {
		return nil, errors.New("the process still runs")
	}
	old, oldErr := w.ledgerNow()
	report, medium, err := w.rebuild(context.Background())
	if err != nil {
		return nil, err
	}
	w.Medium = medium
	w.boltKnown = false
	w.wire()
	if w.oracle != nil {
		if oldErr == nil {
			w.oracle.rebuilt(old)
		}
		w.oracle.resurrected()
		w.oracle.forget()
		w.oracle.old = false
		w.oracle.rest()
	}
	return report, nil
}

func (w *World) rebuild(ctx context.Context) (*rebuild.Report, *offsets.Memory, error) {
	id := [16]byte{1} // as NewWorld made it; the owner object tells it
	medium := offsets.NewMemory(id)
	builder, err := offsets.NewBuilder(medium, w.Now, w.Now)
	if err != nil {
		return nil, nil, err
	}
	l, err := offsets.Open(medium.Clone())
	if err != nil {
		return nil, nil, err
	}
	store, err := objstore.New(deaf{w.Bucket}, l.ID())
	if err != nil {
		return nil, nil, err
	}
	source, err := w.openSource()
	if err != nil {
		return nil, nil, err
	}
	defer func() { must(source.Close()) }()
	found, err := source.Scan(ctx, w.Now)
	if err != nil {
		return nil, nil, err
	}
	if found.Trouble != nil {
		return nil, nil, errors.New(found.Trouble.Text)
	}
	local := map[tier.LogID]tier.Scan{}
	for _, s := range found.Scans {
		local[s.Log] = s
	}
	if w.oracle != nil && w.Config.Delete == tier.LocalDeleteNever {
		w.oracle.cannotTell(func(*intent) bool { return true })
	}
	if err := w.conclude(ctx, source, local); err != nil {
		return nil, nil, err
	}
	report, err := rebuild.Run(ctx, rebuild.Config{Store: store, Now: w.Now, Each: oneByOne,
		Mode: tier.VerifyFull, Table: w.Config.Tables,
		Local: func(id tier.LogID) (tier.Scan, bool) { s, ok := local[id]; return s, ok }}, builder)
	return report, medium, err
}

func oneByOne(ctx context.Context, n int, do func(context.Context, int) error) error {
	for i := range n {
		if err := do(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// conclude writes how deletions ended that the old ledger left open.
func (w *World) conclude(ctx context.Context, source *logdir.Source,
	local map[tier.LogID]tier.Scan) error {
	dir, err := w.Disk.Sub(auditDir)
	if err != nil {
		return err
	}
	a, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return err
	}
	err = rebuild.Conclude(ctx, a, func(id tier.LogID) rebuild.Source {
		if _, ok := local[id]; ok {
			return source
		}
		return nil
	}, w.Now)
	return errors.Join(err, a.Close())
}

// Rebuilt is a property of what a rebuild makes: it finds every copy that was part of its log.
const Rebuilt Property = "S18 RebuiltWhole"

// rebuilt judges a rebuilt ledger by the lost one: what counted, and is whole in the store, counts
// again, and no log begins later than it did.
func (o *Oracle) rebuilt(old *ledgerTruth) {
	now, err := o.w.ledgerNow()
	if err != nil {
		o.violate(Recovered, "the rebuilt ledger cannot be opened: %v", err)
		return
	}
	store := o.w.storeNow(now.id)
	for _, was := range old.logs {
		id, t := was.state.Log, old.table(was.state.Log.Table)
		is := now.log(id)
		for _, f := range was.facts {
			if f.Add != nil {
				o.onRecord[f.Add.Attempt] = true // what of it does not count any more is an orphan
			}
			// Of what an old one counts some has expired since: resurrected judges.
			if f.Add == nil || o.old || !was.counts(f.Add, t) || o.lostSome(id) ||
				o.unsound(id, f.Add, f.Add.Content.Files[0].FileDigest, store) != "" {
				continue
			}
			if is == nil || !is.knows(objstore.Key{Kind: objstore.KeyFile, Attempt: f.Add.Attempt}) ||
				!is.counts(f.Add, now.table(id.Table)) {
				o.violate(Rebuilt, "%s: the copy of %s was part of the log, and is whole in the store; "+
					"the rebuilt ledger does not have it", id, f.Add.Content.Range)
			}
		}
	}
}

// buried is a ledger that an older one replaced.
type buried struct {
	*ledgerTruth
	left map[string]bool // tables all of whose remote data were let go since, as was allowed
}

// bury keeps what a ledger says that is about to be replaced by an older one.
func (o *Oracle) bury() {
	truth, err := o.w.ledgerNow()
	if err != nil {
		return
	}
	for _, l := range truth.logs {
		for _, f := range l.facts {
			if f.Add != nil {
				o.onRecord[f.Add.Attempt] = true
			}
		}
		for _, a := range l.attempts { // of the effect that was under way, too
			o.onRecord[a.ID] = true
		}
	}
	o.buried = append(o.buried, buried{truth, map[string]bool{}})
}

// resurrected judges a rebuilt ledger by those that were replaced by older ones: of what they had
// copied, and what is whole in the store, every offset is covered again, but for that of a tier
// epoch that was let go meanwhile.
func (o *Oracle) resurrected() {
	now, err := o.w.ledgerNow()
	if err != nil {
		return
	}
	store := o.w.storeNow(now.id)
	for _, was := range o.buried {
		for _, l := range was.logs {
			id, t := l.state.Log, was.table(l.state.Log.Table)
			is := now.log(id)
			for _, f := range l.facts {
				if f.Add == nil || !l.counts(f.Add, t) || o.lostSome(id) ||
					o.unsound(id, f.Add, f.Add.Content.Files[0].FileDigest, store) != "" {
					continue
				}
				over := is != nil && was.left[id.Table] && f.Add.Epoch < is.state.Fresh
				if is == nil || !over && !is.copied().Covers(f.Add.Content.Range) {
					o.violate(Rebuilt, "%s: %s was copied before the ledger went back, and the rebuilt one "+
						"does not have it", id, f.Add.Content.Range)
				}
			}
		}
	}
	o.buried = nil
}

// copied are the offsets that are in a copy, or were and expired.
func (l *ledgerLog) copied() tier.RangeSet {
	out := slices.Clone(l.state.Expired)
	for _, f := range l.facts {
		if f.Add != nil && f.Add.Epoch >= l.state.Fresh {
			out = out.Add(f.Add.Content.Range)
		}
	}
	return out
}

// forget lets a new ledger begin: what the oracle held the old one to counts no more, but for what
// became of data. A rebuilt one has every copy that the store has, also those whose process ended
// before it could record them, and is in an epoch of its own.
func (o *Oracle) forget() {
	if now, err := o.w.ledgerNow(); err == nil {
		o.fence.begin(now)
		o.inherited(now)
	}
	o.vouched = vouched{} // it says itself up to when the clock was right
	o.floor, o.starts = map[tier.LogID]tier.Offset{}, map[tier.LogID]tier.Offset{}
	o.fresh, o.epochs = map[tier.LogID]tier.TierEpoch{}, map[tier.LogID]tier.TierEpoch{}
	clear(o.windows)
	for i := range o.deletions {
		o.deletions[i].forgiven = true
	}
	o.changed = true
}
