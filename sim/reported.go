package sim

import (
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// The properties of liveness that are about tables, and about what is kept.
const (
	DisablementDrains Property = "L4 DisablementDrains"
	DeniedIsReported  Property = "L7 DeniedIsReported"
)

// drains (L4): a table whose tiering was turned off comes to rest, and so does one whose tiering
// was turned on again. What policies deny does not keep it: it stands as outstanding.
func (o *Oracle) drains(ledger *ledgerTruth) {
	// While a table is being disabled no reload turns tiering on, and the brake may hold that up by
	// limits that no reload can take back, either.
	held := o.refused && slices.ContainsFunc(ledger.tables, func(t tier.TableState) bool {
		return t.State == tier.Disabling && t.Paused != nil
	})
	for _, t := range ledger.tables {
		table, _ := o.w.Config.Tables(t.Table)
		want := tier.Disabled
		if table.Tiering && t.Dropped == 0 {
			want = tier.Enabled
		}
		// With the policy delete its objects go when readers had the grace, which begins when the starts
		// of its logs have moved: a brake may have held that up.
		since := t.Since
		for _, l := range ledger.logs {
			if s := &l.state; s.Log.Table == t.Table && len(s.Moves) > 0 {
				since = max(since, s.Moves[len(s.Moves)-1].At)
			}
		}
		early := o.w.Now.Sub(since) <= 2*o.w.Config.Grace
		frozen := t.Dropped == 0 && o.frozen(t.Table)
		stopped := early || o.w.Paused || t.Paused != nil || frozen || held
		if t.State != want && !stopped {
			o.violate(DisablementDrains, "the table %s is %s since %s, and nothing fails any more: want %s",
				t.Table, t.State, t.Since, want)
		}
	}
}

// reported (L7): where a limit is over for the oldest segment of a log and it stays all the same,
// for ever perhaps, the log says why.
func (o *Oracle) reported(l *logRecord, files []file, ledger *ledgerTruth) {
	records := liveRecords(files)
	table, governed := o.w.Config.Tables(l.id.Table)
	if len(records) < 2 || !governed || ledger.log(l.id) == nil {
		return
	}
	oldest := records[0]
	table = o.limits(table)
	table.LocalTTL = max(table.LocalTTL, 0)
	// A file that was written again may be taken for younger than its content.
	young := table.LocalTTL > 0 && o.w.Now.Sub(oldest.stat.ModTime) <= table.LocalTTL
	if young || !o.over(table, oldest.fileName, files) {
		return
	}
	if v, _ := o.w.process.engine.Log(l.id); v.Blocked != nil && o.frozen(l.id.Table) {
		return
	}
	segments, _ := o.w.process.engine.Segments(l.id)
	for _, v := range segments {
		why := slices.ContainsFunc(v.Reasons, func(r tier.Reason) bool {
			return !slices.Contains(notDue, r.Code)
		})
		if v.Local && v.Base == oldest.base && why {
			return
		}
	}
	o.violateAt(DeniedIsReported, l.id, oldest.base, "segment %d of %s may go by its limits and "+
		"stays, and nothing says why", oldest.base, l.id)
}

// notDue are the reasons of what may not go yet.
var notDue = []tier.Code{tier.CodeLocalTTL, tier.CodeTTL, tier.CodeRetainForever}
