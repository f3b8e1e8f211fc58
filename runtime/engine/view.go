package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// Extent is what one tier holds of a log. An empty range has Base == Next.
type Extent struct {
	tier.Range
	Segments int64
	Bytes    int64
}

// LogView is what the engine knows of a log, for people. Alarms want an operator; Waiting says what
// is not done yet and, in Until, when it will be tried.
type LogView struct {
	ID          tier.LogID
	Source      string
	Layout      tier.Layout
	Incarnation string
	State       tier.TierState
	Epoch       tier.TierEpoch
	Opened      bool
	Present     bool
	Start       tier.Offset
	LogStart    tier.Offset
	Copied      tier.Offset
	LocalEnd    tier.Offset
	Local       Extent
	Remote      Extent
	Uncopied    Extent // closed segments that are not copied: the lag
	OldestLag   tier.Time
	Holes       []tier.Hole
	Alarms      []tier.Reason
	Waiting     []tier.Reason
	Blocked     *tier.Reason // why nothing is decided that concerns the source; nil if it is
	Frozen      *tier.Reason // why nothing is decided in the store either; nil if it is
}

// SegmentView is one segment of a log, in whatever tier it lies.
type SegmentView struct {
	tier.Range
	Bytes    int64
	MaxTime  tier.Time
	ModTime  tier.Time // of the log file
	Local    bool
	Remote   bool
	State    string        // active, closed, copying, copied, lost, dropping, quarantined, hole
	Position tier.Position // of the copy, where Remote
	First    bool          // the oldest local segment
	Segment  tier.LocalSegment
	Ordinal  int64 // from the newest local segment, which is 0
	Reasons  []tier.Reason
	Kept     *tier.Reason // a plugin keeps it on local disk
	Quiet    bool         // the Reasons want no operator: a loss is accepted, or not on record yet
}

// Alarming reports whether one of the Reasons wants an operator.
func (v *SegmentView) Alarming(r tier.Reason) bool {
	return !v.Quiet &&
		(r.Code == tier.CodeQuarantined || r.Code == tier.CodeHole || alarming(r.Code))
}

// TableView is what the engine knows of a table.
type TableView struct {
	State       tier.TableState
	Config      tier.Table
	Known       bool   // an entry of the configuration governs it
	Opened      bool   // the ledger has it
	Outstanding Extent // copies that have left their logs and are not removed yet
}

// Logs returns the ids of all logs, ascending.
func (e *Engine) Logs() []tier.LogID {
	ids := make([]tier.LogID, len(e.order))
	for i, l := range e.order {
		ids[i] = l.id
	}
	return ids
}

// Table returns what is known of a table.
func (e *Engine) Table(name string) TableView {
	t := e.table(name)
	cfg, ok := e.config(t)
	v := TableView{State: t.state, Config: cfg, Known: ok, Opened: t.known}
	for _, l := range t.logs {
		left, _ := e.Leaving(l.id)
		v.Outstanding.count(left)
	}
	return v
}

// Copied returns the copied offset of a log; false where it is not opened.
func (e *Engine) Copied(id tier.LogID) (tier.Offset, bool) {
	l := e.logs[id]
	if l == nil || !l.opened {
		return 0, false
	}
	return l.state.Copied, true
}

// Log returns what is known of a log.
func (e *Engine) Log(id tier.LogID) (LogView, bool) {
	l := e.logs[id]
	if l == nil {
		return LogView{}, false
	}
	t := e.table(id.Table)
	v := LogView{ID: id, Source: l.source, Layout: l.layout, Incarnation: l.incarnation,
		State: t.state.State, Epoch: t.state.Epoch, Opened: l.opened, Present: l.present,
		Start: l.state.Start, LogStart: l.state.LogStart, Copied: l.state.Copied, LocalEnd: l.localEnd,
		Holes: l.openHoles()}
	v.Local, v.Uncopied, v.OldestLag = l.localExtent()
	if !l.tiers(t) {
		v.Uncopied, v.OldestLag = Extent{}, 0
	}
	v.Remote = e.remoteOf(l)
	if _, governed := e.config(t); !governed && t.state.Dropped == 0 {
		v.Frozen = e.frozen(t)
	}
	v.Blocked = l.block
	v.Alarms = l.alarms()
	v.Waiting = e.waiting(l)
	return v, true
}

func (l *logIndex) localExtent() (all, lag Extent, oldest tier.Time) {
	for i := range l.local {
		s := &l.local[i]
		all.add(s.Range, s.Bytes)
		over := l.states[i] == copied || l.states[i] == expired || l.states[i] == accepted
		if s.Closed() && !over && !l.needless(s) {
			lag.add(s.Range, s.Bytes)
			if oldest == 0 || s.Log.ModTime < oldest {
				oldest = s.Log.ModTime
			}
		}
	}
	if len(l.local) > 0 {
		all.Next = max(all.Next, l.localEnd)
	}
	return all, lag, oldest
}

// tiers reports whether the log is one that is to be copied at all, also while trouble keeps it
// from being so.
func (l *logIndex) tiers(t *tableIndex) bool {
	return t.state.State == tier.Enabled && (l.block == nil || !resting(l.block.Code))
}

// resting reports whether a blocked log is as it should be, so that nobody has to be alarmed.
func resting(c tier.Code) bool {
	return c == tier.CodeCompacted || c == tier.CodeTieringDisabled || c == tier.CodeFrozen ||
		c == tier.CodeEmptied
}

// remoteOf is what of the log is in the store.
func (e *Engine) remoteOf(l *logIndex) Extent {
	if e.leftAll(l) {
		return Extent{Range: tier.Range{Base: l.state.Copied, Next: l.state.Copied}}
	}
	return l.remoteExtent()
}

// leftAll reports whether no copy is part of the log any more, wherever its start is: tiering is
// turned off with the policy delete, or the table dropped, and that the start moved is on record.
func (e *Engine) leftAll(l *logIndex) bool {
	t := e.table(l.id.Table)
	return t.state.Leaves() && l.startMovedFor(t)
}

// remoteExtent is what the copies come to that neither a start nor a clip has taken out of the log.
func (l *logIndex) remoteExtent() Extent {
	x := l.summed().inLog
	if x.Segments == 0 && l.opened {
		x.Range = tier.Range{Base: l.state.Copied, Next: l.state.Copied}
	}
	return x
}

func (x *Extent) add(r tier.Range, bytes int64) {
	if x.Segments == 0 {
		x.Range = r
	}
	x.Base, x.Next = min(x.Base, r.Base), max(x.Next, r.Next)
	x.Segments++
	x.Bytes += bytes
}

// alarms lists what wants an operator.
func (l *logIndex) alarms() []tier.Reason {
	var out []tier.Reason
	if l.block != nil && !resting(l.block.Code) {
		out = append(out, *l.block)
	}
	if l.failure != nil {
		r := *l.failure
		r.Until = l.retryAt
		out = append(out, r)
	}
	if l.disputed != nil {
		out = append(out, l.inDispute())
	}
	for _, q := range l.quarantine {
		if q.accepted {
			continue
		}
		out = append(out, Quarantine(l.id, q.segment.Base, q.reason))
	}
	out = append(out, l.losses()...)
	for _, h := range l.openHoles() {
		out = append(out, tier.Reason{Code: tier.CodeHole,
			Text: fmt.Sprintf("offsets %s are in neither tier (%s, recorded %s)", h.Range, h.Cause, h.At)})
	}
	for _, p := range l.problems {
		r := p.Reason
		if p.Path != "" {
			r.Text = p.Path + ": " + r.Text
		}
		out = append(out, r)
	}
	for _, r := range l.keptReasons() {
		if alarming(r.Code) {
			out = append(out, r)
		}
	}
	return out
}

// keptReasons are why the segment that was asked about last stays, until it is asked about again.
func (l *logIndex) keptReasons() []tier.Reason {
	if l.kept == nil {
		return nil
	}
	out := slices.Clone(l.kept.Reasons)
	for i := range out {
		out[i].Until = l.kept.askAt
		out[i].Text = fmt.Sprintf("segment %s: %s", l.kept.Segment.Range, out[i].Text)
	}
	return out
}

// Quarantine says of a damaged segment what it keeps from being done, and what to do about it. why
// is how its files could not be read.
func Quarantine(log tier.LogID, base tier.Offset, why tier.Reason) tier.Reason {
	why.Code = tier.CodeQuarantined
	why.Text = fmt.Sprintf("%s; it blocks the log until another file is renamed to its place (a "+
		"change in place is seen within ten minutes) or you run: tierd accept-loss %s@%d", why.Text, log,
		base)
	return why
}

// alarming reports whether a segment that stays for this reason wants an operator.
func alarming(c tier.Code) bool {
	switch c {
	case tier.CodePolicyError, tier.CodeStoreLost, tier.CodeStoreError, tier.CodeNotProved,
		tier.CodeUnreadable, tier.CodeSourceUnread, tier.CodeUnknownOutcome, tier.CodeRetry,
		tier.CodeAudit, tier.CodeBelowStart, tier.CodeLineage, tier.CodeBroker, tier.CodeOtherLog:
		return true
	}
	return false
}

// waiting lists what is not done yet and why, for the oldest segment of each kind.
func (e *Engine) waiting(l *logIndex) []tier.Reason {
	var out []tier.Reason
	if b := l.block; b != nil {
		if resting(b.Code) {
			return append(append(out, *b), e.inGrace(l)...)
		}
		return e.inGrace(l)
	}
	if len(l.dropping) > 0 {
		out = append(out, l.droppingReason())
	}
	if len(l.local) == 0 {
		return append(out, e.inGrace(l)...)
	}
	if r := e.passedBy(l); !r.Empty() {
		out = append(out, e.passedByReason(r))
	}
	stays := e.whyLocal(l, 0)
	for i := range l.local {
		s := &l.local[i]
		if s.Closed() {
			continue
		}
		r := tier.Reason{Code: s.Waits.Code(),
			Text: fmt.Sprintf("segment %s is not closed: %s", s.Range, waitText[s.Waits])}
		said := i == 0 && slices.ContainsFunc(stays,
			func(x tier.Reason) bool { return x.Code == r.Code })
		if i < len(l.local)-1 && !said { // an active last segment is the normal case
			out = append(out, r)
		}
		break
	}
	if next := l.nextCopy(); next > 0 { // why the first one stays is said below
		if r := e.heldReason(l, next); r != nil {
			out = append(out, *r)
		}
	}
	kept := l.keptReasons()
	for _, r := range append(stays, e.whyRemote(l)...) {
		alarmed := alarming(r.Code) && slices.Contains(kept, r)
		if !alarmed && !slices.Contains(out, r) { // a pause is said once, though it stops both
			out = append(out, r)
		}
	}
	return append(out, e.inGrace(l)...)
}

// inGrace says until when the last of the copies that left the log stays in the store for its
// readers. It looks at no more of a long log than what is at its old end.
func (e *Engine) inGrace(l *logIndex) []tier.Reason {
	t := l.table
	var x leaving
	for i := range l.remote {
		r := &l.remote[i]
		if r.Base >= l.state.LogStart && !t.state.Leaves() && !l.summed().past {
			break
		}
		if e.goes(l, t, r) {
			x.addAfter(r, e.removeAt(l, t, r), e.now)
		}
	}
	if x.Segments == 0 {
		return nil
	}
	return []tier.Reason{x.reason()}
}

// leaving sums up copies out of the log whose objects are still in the store.
type leaving struct {
	Extent
	due tier.Time // when the grace of the last of them is over
}

// addAfter adds a copy whose grace is over at that time if that is later than now, or else tells
// that it is not.
func (x *leaving) addAfter(r *tier.Remote, at, now tier.Time) bool {
	if at <= now {
		return false
	}
	x.add(r.Range, r.Bytes)
	x.due = max(x.due, at)
	return true
}

// reason is why they are.
func (x *leaving) reason() tier.Reason {
	return tier.Reason{Code: tier.CodeGrace, Until: x.due,
		Text: copiesText(x.Extent, "out of the log; the objects go after the grace")}
}

// copiesText counts copies. Of one that was cut off whole no byte is the log's, and how many its
// objects have is not said.
func copiesText(x Extent, text string) string {
	if x.Bytes == 0 {
		return fmt.Sprintf("%s %s", tier.Count(x.Segments, "copy"), text)
	}
	return fmt.Sprintf("%s (%s) %s", tier.Count(x.Segments, "copy"), tier.Count(x.Bytes, "byte"), text)
}

// remoteWaits reports whether anything of the log in the store would go now if it might.
func (e *Engine) remoteWaits(l *logIndex, t *tableIndex) bool {
	if leaving, _ := e.Leaving(l.id); leaving.Segments > 0 || t.state.Leaves() {
		return true
	}
	i := l.oldestRemote()
	return i >= 0 && e.remoteDue(l, t, i, l.remoteExtent().Bytes) <= e.now
}

// passedBy are the offsets that passed by while tiering was off and the source had its own way:
// they are in neither tier. They grow with each segment that the source drops, so they are put on
// record as one hole when tiering is turned on again, and until then only shown.
func (e *Engine) passedBy(l *logIndex) tier.Range {
	t := l.table
	if t.state.State != tier.Disabled || t.state.Leaves() || !l.whole || len(l.local) == 0 ||
		l.remoteExtent().Segments == 0 {
		return tier.Range{}
	}
	return tier.Range{Base: max(l.state.Copied, l.remoteExtent().Next), Next: l.local[0].Base}
}

func (e *Engine) passedByReason(r tier.Range) tier.Reason {
	return tier.Reason{Code: tier.CodeHole, Text: fmt.Sprintf("offsets %s are in neither tier: they "+
		"passed by while tiering was off; that is put on record when it is turned on again", r)}
}

// whyRemote says what the remote segments wait for, where that is no limit of theirs.
func (e *Engine) whyRemote(l *logIndex) []tier.Reason {
	var out []tier.Reason
	if len(l.uncleared) > 0 {
		for _, r := range l.keptOrphan {
			r.Text = fmt.Sprintf("what %s left stays: %s",
				tier.Count(len(l.uncleared), "abandoned attempt"), r.Text)
			out = append(out, r)
		}
	}
	t := l.table
	if why := e.finalStopped(t); why != nil && why != e.paused && e.remoteWaits(l, t) {
		out = append(out, *why)
	}
	if r := e.expiryWaits(l, t); r != nil {
		out = append(out, *r)
	}
	if k := l.remoteKept; k != nil {
		for _, r := range k.Reasons {
			r.Until = k.askAt
			r.Text = fmt.Sprintf("remote segment %s: %s", k.Range, r.Text)
			out = append(out, r)
		}
	}
	for i := range l.remote {
		d, denied := l.denied[l.remote[i].Position]
		if !denied {
			continue
		}
		for _, r := range d.reasons {
			r.Until = d.askAt
			r.Text = fmt.Sprintf("kept outside the log, %s: %s", tier.Count(len(l.denied), "copy"),
				r.Text)
			out = append(out, r)
		}
		break // the oldest speaks for all
	}
	return out
}

// expiryWaits says what below it the oldest remote segment waits for, though a limit lets it go. It
// may be that for ever, as a file that came back into a hole and that nobody lets tierd read.
func (e *Engine) expiryWaits(l *logIndex, t *tableIndex) *tier.Reason {
	i := l.oldestRemote()
	if i < 0 || t.state.Leaves() || e.remoteDue(l, t, i, l.remoteExtent().Bytes) > e.now {
		return nil
	}
	r := &l.remote[i]
	why := tier.Reason{Code: tier.CodePrefixBlocked}
	switch first, waits := e.copiesBelow(l, t, r.Next); {
	case waits:
		why.Text = fmt.Sprintf("remote segment %s stays until the one at %d is copied", r.Range, first)
	case l.toLook && r.Base > l.state.LogStart:
		why.Text = fmt.Sprintf("remote segment %s stays until it was looked whether anything came back "+
			"below it", r.Range)
	default:
		return nil
	}
	return &why
}

var waitText = map[tier.WaitReason]string{
	tier.WaitsForRoll:          "nothing follows it yet",
	tier.WaitsForHighWatermark: "it ends above the high watermark",
	tier.WaitsForRecoveryPoint: "it ends above the recovery point: the source has not synced it",
	tier.WaitsForNothing:       "it is closed",
}

// whyLocal says why local segment i is still on disk, as the engine sees it without asking.
func (e *Engine) whyLocal(l *logIndex, i int) []tier.Reason {
	out := e.whyStays(l, i)
	if r := e.heldReason(l, i); r != nil && l.states[i] != copied && l.states[i] != copying {
		out = append(out, *r)
	}
	if r := e.keptReason(l, i); r != nil {
		out = append(out, *r)
	}
	return out
}

// whyStays is why local segment i stays but for what plugins say.
func (e *Engine) whyStays(l *logIndex, i int) []tier.Reason {
	s := &l.local[i]
	one := func(code tier.Code, until tier.Time, format string, args ...any) []tier.Reason {
		return []tier.Reason{{Code: code, Until: until, Text: fmt.Sprintf(format, args...)}}
	}
	t := l.table
	switch {
	case !s.Closed():
		return one(s.Waits.Code(), 0, "segment %s: %s", s.Range, waitText[s.Waits])
	case l.states[i] == quarantined || l.states[i] == accepted:
		return one(tier.CodeQuarantined, 0,
			"segment %s is damaged and stays: move it away to let deletion go on", s.Range)
	case l.states[i] == lost && t.state.State == tier.Enabled:
		return one(tier.CodeStoreLost, 0, "the store no longer has the copy of segment %s: it is "+
			"copied again", s.Range)
	case l.states[i] == expired && t.state.State == tier.Enabled:
		return one(tier.CodeExpired, 0, "segment %s came after its copy had expired: it is copied once "+
			"more, and goes, when a limit lets it", s.Range)
	case l.states[i] != copied && t.state.State == tier.Enabled:
		return one(tier.CodeNotCopied, 0, "segment %s is not copied yet", s.Range)
	}
	if r := e.deletionStopped(l, t); r != nil {
		return []tier.Reason{*r}
	}
	if i > 0 {
		return one(tier.CodePrefixBlocked, 0, "segment %s has to go first", l.local[0].Range)
	}
	if l.kept != nil {
		return l.keptReasons()
	}
	switch at := e.worthAsking(l, t, i, l.localBytes); {
	case at == never:
		return one(tier.CodeRetainForever, 0, "no limit is set for local segments")
	case at > e.now && t.state.State != tier.Enabled:
		return one(tier.CodeTTL, at, "segment %s is kept until %s by table.log.ttl (%s)",
			s.Range, at.Std().Format(time.RFC3339), t.cfg.Entry)
	case at > e.now:
		return one(tier.CodeLocalTTL, at, "segment %s is kept until %s by table.log.local-ttl (%s)",
			s.Range, at.Std().Format(time.RFC3339), t.cfg.Entry)
	}
	return nil
}

// Segments lists the segments of a log in both tiers and its holes, ascending by base.
func (e *Engine) Segments(id tier.LogID) ([]SegmentView, bool) {
	l := e.logs[id]
	if l == nil {
		return nil, false
	}
	var out []SegmentView
	matched := map[tier.Position]bool{}
	left := e.leftAll(l)
	for i := range l.local {
		s := l.local[i]
		v := SegmentView{Range: s.Range, Bytes: s.Bytes, MaxTime: s.MaxTime, ModTime: s.Log.ModTime,
			Local: true,
			First: i == 0, Segment: s, Ordinal: int64(len(l.local) - 1 - i),
			Reasons: e.whyLocal(l, i), Kept: e.keptReason(l, i), Quiet: l.states[i] == accepted}
		if r, identical, _ := l.copyOf(&s); identical && !left {
			v.Remote, v.Position, v.MaxTime = true, r.Position, r.MaxTime
			v.Next = r.Next
			matched[r.Position] = true
		}
		if v.State = l.stateWord(i); (v.State == "copied" || v.State == "lost") && left {
			v.State = "closed"
		}
		out = append(out, v)
	}
	for i := range l.remote {
		r := &l.remote[i]
		newer := i+1 < len(l.remote) && l.remote[i+1].Base == r.Base
		dropping := slices.ContainsFunc(l.dropping, func(s tier.LocalSegment) bool {
			return s.Base == r.Base
		})
		if matched[r.Position] || newer || !l.counts(r) || left && !dropping {
			continue
		}
		v := SegmentView{Range: r.Range, Bytes: r.Bytes, MaxTime: r.MaxTime,
			ModTime: r.ModTime, Remote: !left, Position: r.Position, State: "copied",
			Reasons: l.lossOf(r)}
		if l.bad(r.Position) {
			v.State = "lost"
		}
		if dropping {
			v.Local, v.State = true, "dropping"
			v.Reasons = append(v.Reasons, l.droppingReason())
		}
		out = append(out, v)
	}
	if r := e.passedBy(l); !r.Empty() {
		out = append(out, SegmentView{Range: r, State: "hole", Quiet: true,
			Reasons: []tier.Reason{e.passedByReason(r)}})
	}
	for _, h := range l.openHoles() {
		out = append(out, SegmentView{Range: h.Range, State: "hole", Reasons: []tier.Reason{{
			Code: tier.CodeHole, Text: fmt.Sprintf("in neither tier: %s", h.Cause)}}})
	}
	slices.SortStableFunc(out, func(a, b SegmentView) int {
		return compareRemote(tier.Remote{Range: a.Range}, tier.Remote{Range: b.Range})
	})
	return out, true
}

// droppingReason says what the files wait for that are no part of the log any more.
func (l *logIndex) droppingReason() tier.Reason {
	var x Extent
	for _, s := range l.dropping {
		x.add(s.Range, s.Bytes)
	}
	return tier.Reason{Code: tier.CodeDropping, Text: fmt.Sprintf("the broker gave up %s (%s) below "+
		"%d; the files go at its next retention pass", tier.Count(x.Segments, "segment"),
		tier.Count(x.Bytes, "byte"), x.Next)}
}

func (l *logIndex) stateWord(i int) string {
	s := &l.local[i]
	switch st := l.states[i]; {
	case st == quarantined || st == accepted:
		return "quarantined"
	case !s.Closed() && i == len(l.local)-1:
		return "active"
	case st == copying:
		return "copying"
	case st == copied && l.deleting && i == 0:
		return "dropping"
	case st == copied:
		return "copied"
	case st == lost:
		return "lost"
	case st == expired:
		return "expired"
	case !s.Closed(): // above the high watermark or the recovery point
		return "active"
	default:
		return "closed"
	}
}
