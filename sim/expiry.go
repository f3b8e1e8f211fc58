package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// doubt is by how much more than its limit something is overdue before the oracle asks why it is
// still there: longer than any wait of the engine's own.
const doubt = 100 * time.Hour

// counting are the copies that are part of the log, ascending by base. plain is false where one of
// them is cut short.
func (l *ledgerLog) counting(t tier.TableState) (out []*tier.Copy, plain bool) {
	plain = true
	for i := range l.facts {
		f := &l.facts[i]
		if f.Add == nil || !l.counts(f.Add, t) {
			continue
		}
		plain = plain && l.clip(f.Position, f.Add.Content.Range) == f.Add.Content.Range
		out = append(out, f.Add)
	}
	slices.SortStableFunc(out, func(a, b *tier.Copy) int {
		return cmp.Compare(a.Content.Range.Base, b.Content.Range.Base)
	})
	return out, plain
}

// remoteStays reports whether something speaks against any end of the log's remote data, or the
// oracle cannot tell.
func (o *Oracle) remoteStays(l *logRecord, t tier.TableState) bool {
	_, governed := o.w.Config.Tables(l.id.Table)
	return !governed || o.frozen(l.id.Table) || o.w.Paused || t.Paused != nil || t.Dropped != 0 ||
		o.Policies || o.denies(l.id) || o.w.astray() || o.old || o.w.zombie() ||
		o.lostSome(l.id) || o.braked(t.Window)
}

// outlived (L2): the remote segment that the log begins with is not older than the table's TTL, or
// something speaks against its end, or may.
func (o *Oracle) outlived(l *logRecord, files []file, known *ledgerLog, t tier.TableState) {
	table, _ := o.w.Config.Tables(l.id.Table)
	stays := table.TTL <= 0 || t.State == tier.Disabling || leaves(t)
	if known == nil || stays || o.remoteStays(l, t) {
		return
	}
	copies, plain := known.counting(t)
	if len(copies) == 0 || !plain {
		return
	}
	first := copies[0].Content.Range
	end := first.Next
	for _, c := range copies {
		if c.Content.Range.Base < end { // what overlaps it goes with it
			end = max(end, c.Content.Range.Next)
		}
	}
	local := slices.ContainsFunc(files, func(x file) bool { return x.base < end })
	if local || end > known.state.Copied {
		return // it may be about to be copied
	}
	for _, c := range copies {
		if c.Content.Range.Base >= end {
			break
		}
		s := l.segment(c.Content.Range.Base)
		if s == nil {
			return // others lead the log, and have no such segment
		}
		at, copied := o.copiedAt(known, s, max(known.state.Fresh, t.Fresh))
		// A file that was written again may be taken for younger than its content.
		at = max(at, c.Content.Files[0].Stat.ModTime, c.Content.MaxTime)
		if !copied || o.w.Now.Sub(at) <= table.TTL+doubt {
			return
		}
	}
	o.violateAt(ExpiredDeleted, l.id, first.Base, "remote segment %d of %s is older than "+
		"table.log.ttl of %s, and the log still begins with it", first.Base, l.id, table.TTL)
}

// outstays (L2): of a copy that left its log longer ago than readers have to finish, nothing is in
// the store any more, or something speaks against its removal, or may.
func (o *Oracle) outstays(l *logRecord, files []file, known *ledgerLog, t tier.TableState,
	store *storeTruth) {
	if known == nil || o.remoteStays(l, t) || leaves(t) {
		return
	}
	for i := range known.facts {
		c := known.facts[i].Add
		if c == nil || c.Epoch < known.state.Fresh || c.Content.Range.Next > known.state.LogStart {
			continue
		}
		r := c.Content.Range
		// A copy shows that a local file is the copied one, and stays until that is gone.
		local := slices.ContainsFunc(files, func(x file) bool { return x.base == r.Base })
		left := slices.ContainsFunc(known.state.Moves, func(m tier.StartMove) bool {
			return m.Start >= r.Next && o.w.Now.Sub(m.At) > o.w.Config.Grace+doubt
		})
		stored := slices.ContainsFunc(store.objects, func(x *object) bool {
			return x.Attempt == c.Attempt && x.Log == l.id
		})
		if !local && left && stored {
			o.violateAt(ExpiredDeleted, l.id, r.Base, "the copy of %s of %s left the log longer than "+
				"%s ago, and its objects are still there", r, l.id, o.w.Config.Grace)
		}
	}
}
