package sim

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// doubt is by how much more than its limit something is overdue before the oracle asks why it is
// still there: longer than any wait of the engine's own.
const doubt = 100 * time.Hour

// remoteStays reports whether something speaks against any end of the log's remote data, or the
// oracle cannot tell.
func (o *Oracle) remoteStays(l *logRecord, t tier.TableState) bool {
	_, governed := o.w.Config.Tables(l.id.Table)
	return !governed || o.frozen(l.id.Table) || o.w.Paused || t.Paused != nil || t.Dropped != 0 ||
		o.Policies || o.denies(l.id) || o.w.astray() || o.old || o.w.zombie() ||
		o.lostSome(l.id) || o.braked(t.Window, 1)
}

// outlived (L2): of the remote segment that the log begins with, and those that overlap it, none is
// beyond table.log.ttl, nor all of them together beyond table.log.bytes, or something speaks
// against their end, or may.
func (o *Oracle) outlived(l *logRecord, files []file, known *ledgerLog, t tier.TableState) {
	table, _ := o.w.Config.Tables(l.id.Table)
	stays := table.TTL <= 0 && !table.Bytes.Set || t.State == tier.Disabling || leaves(t)
	if known == nil || stays || o.remoteStays(l, t) {
		return
	}
	copies := known.inLog(known.state.LogStart)
	slices.SortStableFunc(copies, func(a, b sized) int {
		return cmp.Compare(a.left.Base, b.left.Base)
	})
	if len(copies) == 0 {
		return
	}
	first, n := copies[0].left, 1
	for ; n < len(copies) && copies[n].left.Base < first.Next; n++ { // what overlaps it goes with it
		first.Next = max(first.Next, copies[n].left.Next)
	}
	if first.Next > known.state.Copied || o.mayBeCopied(files, copies, first, t) {
		return
	}
	all, _ := sizeOf(copies, first.Base)
	old := table.TTL > 0
	for _, c := range copies[:n] {
		all -= bytesOf(c.Copy)
		at, wrote := o.writtenAt(l.id, c.Copy)
		// A file that was written again may be taken for younger than its content.
		at = max(at, c.Content.Files[0].Stat.ModTime, c.Content.MaxTime)
		old = old && wrote && o.w.Now.Sub(at) > table.TTL+doubt
	}
	switch {
	case old:
		o.violateAt(ExpiredDeleted, l.id, first.Base, "remote segment %d of %s is older than "+
			"table.log.ttl of %s, and the log still begins with it", first.Base, l.id, table.TTL)
	case table.Bytes.Set && all >= table.Bytes.Value:
		o.violateAt(ExpiredDeleted, l.id, first.Base, "without its remote segment %d, with which it "+
			"still begins, %s has %d bytes, and table.log.bytes is %d", first.Base, l.id, all,
			table.Bytes.Value)
	}
}

// mayBeCopied reports whether a local segment is none that the log has a copy of, and may be about
// to be copied in the place of what is to leave. Of a table that does not tier it may be the only
// one that there is of something older.
func (o *Oracle) mayBeCopied(files []file, copies []sized, leaves tier.Range,
	t tier.TableState) bool {
	return slices.ContainsFunc(files, func(x file) bool {
		sum := tier.SHA256(sha256.Sum256(x.data))
		copied := t.State == tier.Enabled && slices.ContainsFunc(copies, func(c sized) bool {
			return c.Content.Range.Base == x.base && slices.ContainsFunc(c.Content.Files,
				func(f tier.SourceFile) bool { return f.Name == x.name && f.SHA256 == sum })
		})
		return x.base < leaves.Next && !copied && (x.base >= leaves.Base || t.State != tier.Enabled)
	})
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
