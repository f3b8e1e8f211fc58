package sim

import (
	"path"
	"slices"
	"strings"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// seeDisk judges what is about to happen to the source's directory. The only things that tierd does
// there are to move files of segments into the trash, to remove them from it, or to put them back.
func (o *Oracle) seeDisk(p Point) {
	from, ok := o.w.parsePath(p.Name)
	trash := path.Base(p.Name) == trashDir
	switch kind := vfs.OpKind(p.Kind); {
	case kind == vfs.OpSyncDir, trash && (kind == vfs.OpMkdir || kind == vfs.OpRemoveDir):
		return
	case kind == vfs.OpRename && ok:
		to, ok := o.w.parsePath(p.To)
		switch moved := [2]filePlace{from.place, to.place}; {
		case !ok || from.log != to.log || from.name != to.name: // it would be another file
		case moved == [2]filePlace{live, pending}:
			o.takes(from, p)
			return
		case moved == [2]filePlace{pending, dead}:
			o.dooms(from, p)
			return
		case moved == [2]filePlace{pending, live}:
			return
		}
	case kind == vfs.OpRemove && ok:
		o.unlinks(from, p)
		return
	}
	o.touches(p)
}

// touches: whatever else happens in the source's directory is none of tierd's business.
func (o *Oracle) touches(p Point) {
	o.violate(ActiveUntouched, "tierd changes its source: %s", p)
}

// takes judges the first step of a deletion: a file leaves its name. Whether it is the one that is
// meant shows only then, and it may go back; so what speaks against its deletion now is noted, and
// counts when the deletion is decided.
func (o *Oracle) takes(f fileName, p Point) {
	files := o.w.files(f.log)
	for _, x := range files {
		if x.at == p.Name { // else it is gone, and the operation will say so
			o.untouched(f, files)
			o.objections[x.stat.Inode] = o.objection(f, files)
		}
	}
}

// dooms judges the step that decides the deletion: from here on a crash does not undo it.
func (o *Oracle) dooms(f fileName, p Point) {
	files := o.w.files(f.log)
	o.gated(f, files, p.Name)
	o.announced(f, files, p.Name, true)
	o.proved(f, files, p.Name)
	o.provedNow(f, files, p.Name)
	i := slices.IndexFunc(files, func(x file) bool { return x.at == p.Name })
	if i < 0 || slices.ContainsFunc(o.deletions, func(d deletion) bool {
		return d.inode == files[i].stat.Inode // a crash undid the step, and it is taken again
	}) {
		return
	}
	o.departsLocally(f, files)
	o.deletions = append(o.deletions, deletion{fileName: f, inode: files[i].stat.Inode,
		at: o.w.Now, bytes: files[i].stat.Size, untiered: o.untiered(f.log)})
}

// untiered reports whether the log's table does not tier now: then its TTL alone governs what is
// local.
func (o *Oracle) untiered(id tier.LogID) bool {
	ledger, err := o.w.ledgerNow()
	return err == nil && ledger.table(id.Table).State != tier.Enabled
}

// unlinks judges the removal of one name.
func (o *Oracle) unlinks(f fileName, p Point) {
	files := o.w.files(f.log)
	i := slices.IndexFunc(files, func(x file) bool { return x.at == p.Name })
	if i < 0 {
		return // there is nothing: the operation will say so
	}
	inode := files[i].stat.Inode
	other := slices.ContainsFunc(files, func(x file) bool {
		return x.stat.Inode == inode && x.at != p.Name && x.place == live
	})
	if f.place == pending && other {
		return // a crash left the file two names, and it keeps its own
	}
	o.decided(f, inode)
	o.announced(f, files, p.Name, false)
	o.proved(f, files, p.Name)
}

// decided (S4): nothing is unlinked whose deletion was not decided before, and of what belongs to a
// segment nothing before that decision is durable.
func (o *Oracle) decided(f fileName, inode uint64) {
	ok := slices.ContainsFunc(o.deletions, func(d deletion) bool {
		return d.log == f.log && d.base == f.base && (d.inode == inode || !f.records)
	})
	if f.records {
		ok = ok && f.place == dead
	} else {
		bin := path.Join(sourceDir, o.w.logDir(f.log), trashDir)
		dead := segmentName(f.base) + deadSuffix
		is := false
		o.w.Disk.LookSynced(bin, func(i vfs.Info, _ []byte) { is = is || i.Name == dead })
		ok = ok && is
	}
	if !ok {
		o.violateAt(PersistBeforeAct, f.log, f.base,
			"%s of %s is unlinked, and was not shown to be the one meant",
			f.name, f.log)
	}
}

// untouched (S10): only the oldest segment goes, and only when another follows it.
func (o *Oracle) untouched(f fileName, files []file) {
	records := liveRecords(files)
	first := len(records) > 0 && records[0].base == f.base
	followed := len(records) > 0 && records[len(records)-1].base > f.base
	if !first || !followed {
		o.violateAt(ActiveUntouched, f.log, f.base,
			"segment %d of %s is deleted; oldest: %t, another follows: %t",
			f.base, f.log, first, followed)
	}
}

// gated (S5): when the file was taken, the settings in force asked for its deletion, and nothing
// stopped it.
func (o *Oracle) gated(f fileName, files []file, at string) {
	for _, x := range files {
		if x.at != at {
			continue
		}
		why, taken := o.objections[x.stat.Inode]
		if !taken {
			why = "it never left its name"
		}
		if why != "" {
			o.violateAt(Gated, f.log, f.base,
				"segment %d of %s is deleted, but %s", f.base, f.log, why)
		}
	}
}

// objection says what speaks against the deletion of a segment now; "" if nothing does.
func (o *Oracle) objection(f fileName, files []file) string {
	ledger, err := o.w.ledgerNow()
	table, _ := o.w.Config.Tables(f.log.Table)
	switch {
	case err != nil:
		return err.Error()
	case ledger.table(f.log.Table).Dropped != 0:
		return "the table was dropped"
	case o.frozen(f.log.Table):
		return "no entry governs the table any more"
	case !table.Tiering && ledger.table(f.log.Table).State == tier.Enabled:
		return "the table is not tiered, and not disabled yet"
	case o.w.zombie():
		return "whoever wanted it has given it up"
	case o.w.Paused:
		return "the pause file is there"
	case ledger.table(f.log.Table).Paused != nil:
		return "the table is paused"
	case o.braked(ledger.table(f.log.Table).Window, sizeOfRecords(f, files)):
		return "the brake's limit is reached"
	case o.w.Config.Delete != tier.LocalDeleteUnlink:
		return "local_delete is " + string(o.w.Config.Delete)
	case o.untiered(f.log) && o.leapt() != "":
		return o.leapt()
	case o.denies(f.log):
		return "a policy denies it"
	case o.said(tier.DeleteLocal, f.log, f.base) != (answer{true, o.w.generation}):
		return "no policy that is in force let it go"
	case o.ofOne(f) != "":
		return o.ofOne(f)
	case !o.Policies && !o.over(o.limits(table), f, files):
		return "no limit of the table is over"
	}
	return ""
}

// braked reports whether a window has no room for one deletion more, of so many bytes. That it has
// all before is for counted to judge.
func (o *Oracle) braked(w tier.BrakeWindow, bytes int64) bool {
	in, b := o.w.Now.Sub(w.Since), o.w.Config.Brake
	if w.Since == 0 || in < 0 || in >= b.Per {
		w = tier.BrakeWindow{} // it is over, and another one begins
	}
	return w.Segments >= b.MaxSegments || w.Bytes+bytes > b.MaxBytes
}

// sizeOfRecords is the size of the file with the records of a segment: of what belongs to that
// besides some may have come since it was looked at.
func sizeOfRecords(f fileName, files []file) (bytes int64) {
	for _, x := range files {
		if x.base == f.base && x.records && x.place == live {
			bytes = x.stat.Size
		}
	}
	return bytes
}

// ofOne says why the segment is of this one replica alone.
func (o *Oracle) ofOne(f fileName) string {
	l := o.record(f.log)
	if s := l.segment(f.base); s != nil {
		return o.unreplicated(s, l)
	}
	return ""
}

func (o *Oracle) denies(id tier.LogID) bool { return o.Denied != nil && o.Denied(id) }

// limits are those that govern local segments: with tiering off, those of the whole log.
func (o *Oracle) limits(t tier.Table) tier.Table {
	if o.untiered(tier.LogID{Table: t.Name}) {
		t.LocalTTL, t.LocalBytes, t.LocalSegments = t.TTL, t.Bytes, tier.Limit{}
	}
	return t
}

// over says in words of its own what the built-in policy says in Rego: a copied local segment may
// go once it is strictly older than the local TTL, or beyond the newest N, or while what is left
// without it still fills the limit of bytes. A content that the log has a copy of is as old as its
// first writing; of any other only the file tells.
func (o *Oracle) over(t tier.Table, f fileName, files []file) bool {
	records := liveRecords(files)
	i := slices.IndexFunc(records, func(x file) bool { return x.base == f.base })
	if i < 0 {
		return false
	}
	if t.LocalSegments.Set && int64(len(records)-1-i) >= t.LocalSegments.Value {
		return true
	}
	var all, own int64
	for _, x := range files {
		if x.place == live {
			all += x.stat.Size
			if x.base == f.base {
				own += x.stat.Size
			}
		}
	}
	if t.LocalBytes.Set && all-own >= t.LocalBytes.Value {
		return true
	}
	v := o.knows(records[i].fileName, records[i].data)
	if t.LocalTTL <= 0 || v == nil {
		return false
	}
	at := v.at
	if o.w.Config.Layout != tier.LayoutKafka && !o.hasCopy(records[i], v) {
		at = max(at, records[i].stat.ModTime)
	}
	return o.w.Now.Sub(at) > t.LocalTTL
}

// hasCopy reports whether the log has a copy of just this content of the file.
func (o *Oracle) hasCopy(x file, v *version) bool {
	ledger, err := o.w.ledgerNow()
	if err != nil {
		return false
	}
	l := ledger.log(x.log)
	return l != nil && slices.ContainsFunc(l.facts, func(f tier.Fact) bool {
		return f.Add != nil && f.Add.Content.Range.Base == x.base &&
			v.has(f.Add.Content.Files[0].SHA256)
	})
}

// announced (S4): the audit log durably says that this very file is about to go. At the first step
// the announcement is still open; a step that finishes after a crash may come when it is not.
func (o *Oracle) announced(f fileName, files []file, at string, first bool) {
	var v *version
	for _, x := range files {
		if x.at == at {
			v = o.knows(f, x.data)
		}
	}
	log := f.log.String()
	for _, in := range o.w.intents() {
		counts := in.log == log && in.base == f.base && (in.outcome == "" || !first)
		if counts && (!f.records || v.has(in.sum)) {
			return
		}
	}
	o.violateAt(PersistBeforeAct, f.log, f.base,
		"%s of %s goes, and no durable audit record announced it",
		f.name, f.log)
}

// proved (S1): every byte that goes was written by the owner, and is in the store, named by the
// manifest.
func (o *Oracle) proved(f fileName, files []file, at string) {
	i := slices.IndexFunc(files, func(x file) bool { return x.at == at })
	if i < 0 {
		return // there is nothing: the operation will say so
	}
	why := ""
	decided := slices.ContainsFunc(o.deletions, func(d deletion) bool {
		same := d.inode == files[i].stat.Inode || !f.records
		return d.untiered && d.log == f.log && d.base == f.base && same
	})
	v := o.knows(f, files[i].data)
	if v == nil {
		why = "nobody ever wrote it like that"
	} else if decided || o.untiered(f.log) {
		return // gated has judged whether its time had come
	} else if ledger, err := o.w.ledgerNow(); err != nil {
		why = err.Error()
	} else {
		why = o.w.storeNow(ledger.id).missing(f, v)
	}
	if why != "" && !o.hidden(f) {
		o.violateAt(NoUncopiedDelete, f.log, f.base,
			"%s of %s goes (%s): %s", f.name, f.log, at, why)
	}
}

// seeStore judges what is about to happen in the store.
func (o *Oracle) seeStore(p Point) {
	if p.Kind == string(fault.OpDelete) {
		o.removes(p.Name)
		return
	}
	ledger, err := o.w.ledgerNow()
	if err != nil {
		return // rest says so
	}
	k, ok := o.w.parseKey(ledger.id, p.Name)
	l, t := ledger.log(k.Log), ledger.table(k.Log.Table)
	late := o.w.zombie() && l != nil && l.knows(k)
	if why := unannounced(l, t, k, ok); why != "" && !late {
		o.violate(PersistBeforeAct, "%s is uploaded: %s", p.Name, why)
	}
	if k.Kind == objstore.KeyEntry || k.Kind == objstore.KeyCheckpoint {
		o.saying = append(o.saying, p.Name)
	}
}

// unannounced says why an object must not be uploaded now; "" if it may.
func unannounced(l *ledgerLog, t tier.TableState, k objstore.Key, ok bool) string {
	if !ok {
		return "it is no key of tierd's"
	}
	if k.Kind == objstore.KeyProbe {
		return "" // of the clock: it names nothing, and goes at once
	}
	if l == nil {
		return "the ledger does not know the log"
	}
	underWay := slices.ContainsFunc(l.attempts, func(a tier.Attempt) bool {
		if k.Kind == objstore.KeyEntry {
			return a.ID == k.Attempt && a.Position == k.Position
		}
		return a.ID == k.Attempt && a.Epoch == k.Epoch && a.Range.Base == k.Base &&
			slices.Contains(a.Names, k.Name)
	})
	switch k.Kind {
	case objstore.KeyFile, objstore.KeyEntry:
		isHole := func(f tier.Fact) bool { return f.Add == nil && f.Position == k.Position }
		none := k.Attempt == tier.AttemptID{}
		said := l.entry(k)
		again := k.Kind == objstore.KeyEntry && said != nil && said.Add != nil && l.tells(said.Add, t)
		if !underWay && !again && !(none && slices.ContainsFunc(l.facts, isHole)) {
			return "the ledger has no attempt under way that names it"
		}
	case objstore.KeyCheckpoint:
		span := tier.CheckpointSpan(k.Level)
		from, to := tier.Position(k.Block*span), tier.Position((k.Block+1)*span)
		inside := func(p tier.Position) bool { return from <= p && p < to }
		open := slices.ContainsFunc(l.attempts, func(a tier.Attempt) bool {
			return inside(a.Position)
		})
		if to > l.state.Next || open || slices.ContainsFunc(l.state.Unpublished, inside) {
			return "not everything that it stands for is settled"
		}
	default:
		return "no record names it"
	}
	return ""
}

// named (S4): every object in the store is one that the ledger knows by name: of an attempt under
// way, of a finished copy, or of a tombstone. So everything can be found without a listing.
func (o *Oracle) named(ledger *ledgerTruth, store *storeTruth) {
	for _, x := range slices.Concat(store.objects, store.others) {
		if x.Kind == objstore.KeyProbe {
			continue
		}
		if o.onRecord[x.Attempt] {
			continue // if its record is gone, it came after all; the next sweep finds it
		}
		l := ledger.log(x.Log)
		if l != nil && (x.Kind == objstore.KeyCheckpoint || l.knows(x.Key)) || o.isStray(x.key) {
			continue
		}
		if l != nil && x.Kind == objstore.KeyEntry && x.Position < l.state.Next {
			continue // of a copy that was removed; the next sweep finds it
		}
		o.violate(PersistBeforeAct, "%s is in the store, and the ledger does not know it", x.key)
	}
}

// note remembers the attempts that are on record, and those whose copies count.
func (o *Oracle) note(l *ledgerLog, t tier.TableState) {
	for _, f := range l.facts {
		if f.Add != nil {
			o.onRecord[f.Add.Attempt] = true
			o.served[f.Add.Attempt] = o.served[f.Add.Attempt] || l.counts(f.Add, t)
		}
	}
	for _, a := range l.attempts {
		o.onRecord[a.ID] = true
	}
	for _, t := range l.tombstones {
		o.onRecord[t.ID] = true
	}
}

func (l *ledgerLog) knows(k objstore.Key) bool {
	for _, a := range l.attempts {
		if a.ID == k.Attempt {
			return true
		}
	}
	for _, t := range l.tombstones {
		if t.ID == k.Attempt {
			return true
		}
	}
	for _, f := range l.facts {
		if f.Add != nil && f.Add.Attempt == k.Attempt {
			return true
		}
		if f.Add == nil && k.Kind == objstore.KeyEntry && f.Position == k.Position {
			return true
		}
	}
	return false
}

// behind (S4): the process believes nothing about a log that is not durable. That a new tier epoch
// or lineage takes back what was, by a call that was given up, it learns when it asks again.
func (o *Oracle) behind(ledger *ledgerTruth) {
	p := o.w.process
	if p == nil || p.err != nil {
		return
	}
	for _, id := range p.engine.Logs() {
		copied, opened := p.engine.Copied(id)
		l := ledger.log(id)
		ahead := opened && (l == nil || copied > l.state.Copied)
		if !ahead {
			delete(p.unheard, id.String())
		} else if !p.unheard[id.String()] {
			o.violate(PersistBeforeAct, "the engine takes %s for copied up to %d, and that is not "+
				"durable", id, copied)
		}
	}
}

// monotone (S3): the copied offset of a log never goes back, whatever crashes, but to where its
// source has written anew.
func (o *Oracle) monotone(l *ledgerLog) {
	id, copied := l.state.Log, l.state.Copied
	if l.state.Fresh > o.epochs[id] {
		o.epochs[id], o.floor[id] = l.state.Fresh, copied // nothing of the old epoch counts
	}
	if n := len(l.state.Clips); n > 0 && l.state.Clips[n-1].Position >= o.clipped[id] {
		o.clipped[id], o.floor[id] = l.state.Clips[n-1].Position+1, copied
		if at := l.state.Clips[n-1].Offset; at < o.record(id).cutAt {
			o.violate(CopiedMonotone, "%s is clipped at %d, and its owner kept what lies below %d", id,
				at, o.record(id).cutAt)
		}
	}
	if copied < o.floor[id] {
		o.violate(CopiedMonotone, "the copied offset of %s went from %d back to %d", id,
			o.floor[id], copied)
	}
	o.floor[id] = max(o.floor[id], copied)
}

// sound (S2): every offset of the log below the copied offset is in a recorded hole or in a
// recorded copy (what left the log was judged by started), and what is recorded as a copy is in the
// store with bytes that the owner wrote.
func (o *Oracle) sound(l *ledgerLog, t tier.TableState, store *storeTruth) {
	id := l.state.Log
	why := ""
	below := tier.Range{Base: max(l.state.Start, l.state.LogStart), Next: l.state.Copied}
	if !leaves(t) && l.state.Epoch >= t.Fresh && !l.covered().Covers(below) {
		why = "of what lies below it something was never copied"
	}
	if w := o.above(l); w != "" {
		why = w
	}
	for _, fact := range l.facts {
		if fact.Add == nil || !l.counts(fact.Add, t) {
			continue
		}
		for _, f := range fact.Add.Content.Files {
			if o.lostSome(id) || o.leftUnsaid(id, fact.Add) {
				break
			}
			cut := l.clip(fact.Position, fact.Add.Content.Range) != fact.Add.Content.Range
			if w := o.unsound(id, fact.Add, f.FileDigest, store); w != "" && !cut {
				why = w
			}
		}
	}
	if why != "" {
		o.violate(CopiedSound, "the copied offset of %s is %d, but %s", id, l.state.Copied, why)
	}
}

// unsound says what is wrong with one file of a recorded copy.
func (o *Oracle) unsound(id tier.LogID, c *tier.Copy, d tier.FileDigest, store *storeTruth) string {
	name := fileName{log: id, base: c.Content.Range.Base, name: d.Name}
	key, x := store.file(tier.ObjectKey{Log: id, Epoch: c.Epoch, Base: name.base,
		Attempt: c.Attempt, Name: d.Name})
	switch {
	case x == nil:
		return key + " is not in the store"
	case x.sum != d.SHA256:
		return key + " has other bytes than its record"
	}
	switch v := o.knows(name, x.data); {
	case v == nil:
		return key + " has bytes that the owner never wrote"
	case v.rotten && o.w.Config.Layout == tier.LayoutKafka:
		return key + " has bytes that rotted before they were copied, and their checksums say so"
	}
	if store.names(x) == "" {
		return ""
	}
	return store.proves(name, x.data) // there may be another object with its bytes
}

// kept (S1): of each segment that was closed and that its owner did not remove, the bytes that the
// owner wrote last are on disk or in the store, always, and after every crash.
func (o *Oracle) kept(l *logRecord, files []file, store *storeTruth) {
	for _, s := range l.segments {
		if s.removed || o.wentAway(l.id, s) {
			continue // by its owner's hand, or as it should
		}
		for _, f := range s.files {
			if f.gone {
				continue
			}
			last := &f.versions[len(f.versions)-1]
			name := fileName{log: l.id, base: s.Base, name: f.name, records: f.records}
			local := slices.ContainsFunc(files, func(x file) bool {
				return x.base == s.Base && x.name == f.name && x.place != dead &&
					last.before(x.data)
			})
			gone := o.wentUntiered(l.id, s.Base)
			if local || gone || o.lostSegment(l.id, s.Base) {
				continue
			}
			if missing := store.missing(name, last); missing != "" {
				o.violateAt(NoUncopiedDelete, l.id, s.Base, "%s of %s is not on disk, and %s", f.name, l.id,
					missing)
			}
		}
	}
}

// begun (S6): a log is opened where its first segment begins.
func (o *Oracle) begun(l *logRecord, files []file, ledger *ledgerLog) {
	if l.opened || ledger == nil {
		return
	}
	l.opened = true
	records := liveRecords(files)
	if len(records) > 0 && ledger.state.Start > records[0].base {
		o.violate(NoGap, "%s was opened above its first segment", l.id)
	}
}

// hasRecords reports whether the records of the segment are on disk, wherever that is.
func hasRecords(files []file, base tier.Offset) bool {
	return slices.ContainsFunc(files, func(x file) bool { return x.records && x.base == base })
}

// noGap (S6): every offset from the log's beginning to the end of its last closed segment is on
// disk, in the store, or in a recorded hole. What its owner removed, or what went away as it
// should, and tierd has not noticed yet is excused until due.
func (o *Oracle) noGap(l *logRecord, files []file, ledger *ledgerLog, due bool) {
	if ledger == nil {
		return
	}
	why := ""
	covered := ledger.covered()
	var last tier.Offset
	for _, x := range files { // ascending
		if x.place == live && x.records {
			last = x.base // nothing tells what is missing above it
		}
	}
	for _, s := range l.segments {
		inside := s.Base >= ledger.state.Start && s.Next > ledger.state.LogStart
		if !s.closed || !inside || covered.Covers(s.Range) || hasRecords(files, s.Base) {
			continue
		}
		went := s.removed || o.wentUntiered(l.id, s.Base) || o.wentAway(l.id, s) ||
			o.lostSegment(l.id, s.Base) // which a rebuild finds out
		if !went || due && s.Base < last {
			why = "offsets of " + s.Range.String() + " are in neither tier, and in no hole"
		}
	}
	if why != "" {
		o.violate(NoGap, "%s: %s", l.id, why)
	}
}
