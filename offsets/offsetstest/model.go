package offsetstest

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// offsetEnd is above every offset that the model is asked about.
const offsetEnd = 64

// model is a ledger as one would write it down on paper: maps and sets, everything that can be
// reckoned reckoned from scratch.
type model struct {
	logs   map[tier.LogID]*modelLog
	tables map[string]tier.TableState
	ids    map[tier.AttemptID]bool
	clock  tier.Time
}

type modelLog struct {
	opened       tier.LogOpened
	epoch, fresh tier.TierEpoch
	start        tier.Offset
	logStart     tier.Offset
	next         tier.Position
	copies       map[tier.Position]tier.Copy
	removed      map[tier.Position]tier.Copy // no longer stored, but once copied
	attempts     map[tier.Position]tier.Attempt
	tombstones   map[tier.Position]offsets.Tombstone
	holes        map[tier.Position]tier.Hole
	marks        map[tier.Position]tier.Fact
	then         map[tier.Position]seen // when a fact came
	clips        []tier.Clip            // all since the log's fresh epoch began
	expired      map[tier.Offset]bool
	moves        []tier.StartMove
	unpublished  map[tier.Position]bool
	accepted     []tier.LossAccepted
	checkpoints  map[uint8]uint64
	emptied      bool
}

// seen is what else held when a fact came.
type seen struct {
	epoch  tier.TierEpoch
	copied tier.Offset
}

func newModel() *model {
	return &model{logs: map[tier.LogID]*modelLog{}, tables: map[string]tier.TableState{},
		ids: map[tier.AttemptID]bool{}}
}

// counts reports whether what a fact at the position says of the offset still holds.
func (l *modelLog) counts(pos tier.Position, o tier.Offset) bool {
	return l.then[pos].epoch >= l.fresh && !slices.ContainsFunc(l.clips, func(c tier.Clip) bool {
		return pos < c.Position && c.Offset <= o
	})
}

// proved reports whether a stored copy has the offset, or it expired.
func (l *modelLog) proved(o tier.Offset) bool {
	for pos, c := range l.copies {
		if c.Content.Range.Contains(o) && l.counts(pos, o) {
			return true
		}
	}
	return l.expired[o]
}

// covered reports whether the offset was once copied or is a hole.
func (l *modelLog) covered(o tier.Offset) bool {
	for pos, c := range l.removed {
		if c.Content.Range.Contains(o) && l.counts(pos, o) {
			return true
		}
	}
	for pos, h := range l.holes {
		if h.Contains(o) && l.counts(pos, o) {
			return true
		}
	}
	return l.proved(o)
}

// anyCovered reports whether any offset of r is covered.
func (l *modelLog) anyCovered(r tier.Range) bool {
	for o := r.Base; o < r.Next; o++ {
		if l.covered(o) {
			return true
		}
	}
	return false
}

// copied walks offset by offset.
func (l *modelLog) copied() tier.Offset {
	o := l.start
	for l.covered(o) {
		o++
	}
	return o
}

// apply takes a record, or says no and changes nothing.
func (m *model) apply(r tier.Record) (pos tier.Position, ok bool) {
	switch r := r.(type) {
	case tier.ClockSeen:
		m.clock = max(m.clock, r.At)
		return 0, true
	case tier.ClockAccepted:
		m.clock = r.At
		return 0, true
	case tier.LogOpened:
		return 0, m.open(r)
	}
	table, known := m.tables[r.Subject().Table]
	if !known {
		return 0, false
	}
	if ok, is := m.applyTable(&table, r); is {
		m.tables[table.Table] = table
		return 0, ok
	}
	l := m.logs[r.Subject()]
	if l == nil {
		return 0, false
	}
	tiers := table.State == tier.Enabled && table.Epoch == l.epoch
	switch r := r.(type) {
	case tier.CopyStarted:
		return m.start(l, tiers, r.Attempt)
	case tier.CopyFinished:
		return 0, tiers && l.finish(r)
	case tier.HoleRecorded:
		return l.hole(tiers, r.Hole)
	case tier.LocalDeleted:
		table.Window, l.emptied = r.Window, r.Emptied
		m.tables[r.Log.Table] = table
		return 0, true
	case tier.EpochOpened:
		return l.openEpoch(&table, r)
	case tier.StartMoved:
		pos, ok, moved := l.move(&table, r)
		if moved && r.Window != (tier.BrakeWindow{}) {
			table.Window = r.Window
			m.tables[r.Log.Table] = table
		}
		return pos, ok
	case tier.Diverged:
		return l.diverge(r)
	case tier.CopyRemoved:
		return 0, m.remove(l, &table, r)
	case tier.TombstoneCleared:
		t, ok := l.tombstones[r.Position]
		delete(l.tombstones, r.Position)
		delete(m.ids, t.ID)
		return 0, ok
	default:
		return 0, l.apply(r)
	}
}

// applyTable takes a record of a table; is says whether it is one.
func (m *model) applyTable(t *tier.TableState, r tier.Record) (ok, is bool) {
	switch r := r.(type) {
	case tier.TablePaused:
		t.Paused = &r.Reason
		return true, true
	case tier.TableResumed:
		t.Paused, t.Window = nil, tier.BrakeWindow{Since: r.At}
		return true, true
	case tier.TableGoverned:
		t.Entry = r.Entry
		if t.State == tier.Disabled {
			t.Dropped = 0
		}
		return true, true
	case tier.TableDropped:
		return m.drop(t, r), true
	case tier.TierChanged:
		return m.change(t, r), true
	}
	return false, false
}

func (m *model) open(r tier.LogOpened) bool {
	if l := m.logs[r.Log]; l != nil {
		same := l.opened.Incarnation == r.Incarnation &&
			(l.opened.Source == r.Source || r.Incarnation != "")
		if same {
			l.opened.Source = r.Source
		}
		return same
	}
	table, known := m.tables[r.Log.Table]
	if !known {
		table = tier.TableState{Table: r.Log.Table, Since: r.At,
			State: cmp.Or(r.State, tier.Enabled), Epoch: 1}
	}
	if r.Epoch != table.Epoch || !known && r.State == tier.Disabling {
		return false
	}
	l := &modelLog{opened: r, epoch: r.Epoch, start: r.Start, logStart: r.Start,
		copies:      map[tier.Position]tier.Copy{},
		removed:     map[tier.Position]tier.Copy{},
		attempts:    map[tier.Position]tier.Attempt{},
		tombstones:  map[tier.Position]offsets.Tombstone{},
		holes:       map[tier.Position]tier.Hole{},
		marks:       map[tier.Position]tier.Fact{},
		then:        map[tier.Position]seen{},
		expired:     map[tier.Offset]bool{},
		unpublished: map[tier.Position]bool{},
		checkpoints: map[uint8]uint64{},
	}
	if table.State != tier.Enabled {
		l.fresh = r.Epoch
	}
	m.logs[r.Log] = l
	m.tables[r.Log.Table] = table
	return true
}

func (m *model) start(l *modelLog, tiers bool, a tier.Attempt) (tier.Position, bool) {
	if !tiers || a.Epoch != l.epoch || a.Range.Empty() || m.ids[a.ID] {
		return 0, false
	}
	m.ids[a.ID] = true
	a.Position = l.next
	l.emptied = false
	l.attempts[a.Position] = a
	l.next++
	return a.Position, true
}

func (l *modelLog) finish(r tier.CopyFinished) bool {
	a, ok := l.attempts[r.Copy.Position]
	if !ok || a.ID != r.Copy.Attempt || a.Range != r.Copy.Content.Range ||
		a.Epoch != r.Copy.Epoch || a.Epoch != l.epoch {
		return false
	}
	delete(l.attempts, a.Position)
	l.copies[a.Position] = r.Copy
	l.then[a.Position] = seen{epoch: l.epoch}
	l.then[a.Position] = seen{l.epoch, l.copied()}
	return true
}

func (l *modelLog) hole(tiers bool, h tier.Hole) (tier.Position, bool) {
	if !tiers || h.Empty() || h.Base < l.start || l.anyCovered(h.Range) {
		return 0, false
	}
	pos := l.next
	l.next++
	l.holes[pos], l.unpublished[pos] = h, true
	l.then[pos] = seen{epoch: l.epoch}
	l.then[pos] = seen{l.epoch, l.copied()}
	return pos, true
}

// apply takes a record that concerns the log alone.
func (l *modelLog) apply(r tier.Record) bool {
	switch r := r.(type) {
	case tier.CopyAbandoned:
		a, ok := l.attempts[r.Position]
		if !ok {
			return false
		}
		delete(l.attempts, r.Position)
		l.tombstones[r.Position] = offsets.Tombstone{Attempt: a, Cause: r.Cause, At: r.At}
	case tier.CopyReidentified:
		c, ok := l.copies[r.Position]
		if !ok || r.Files[0].Name != c.Content.Files[0].Name {
			return false
		}
		c.Content.Files = r.Files
		l.copies[r.Position] = c
	case tier.Published:
		_, isCopy := l.copies[r.Position]
		_, isHole := l.holes[r.Position]
		_, isMark := l.marks[r.Position]
		delete(l.unpublished, r.Position)
		return isCopy || isHole || isMark
	case tier.LossAccepted:
		l.accepted = append(l.accepted, r)
	case tier.Checkpointed:
		return l.checkpoint(r)
	}
	return true
}

func (l *modelLog) checkpoint(r tier.Checkpointed) bool {
	done := l.checkpoints[r.Level]
	if r.Block < done {
		return true
	}
	from := tier.Position(r.Block * tier.CheckpointSpan(r.Level))
	to := from + tier.Position(tier.CheckpointSpan(r.Level))
	for pos := from; pos < to; pos++ {
		_, underWay := l.attempts[pos]
		if pos >= l.next || underWay || l.unpublished[pos] {
			return false
		}
	}
	if r.Block > done {
		return false
	}
	l.checkpoints[r.Level]++
	return true
}

// snapshot is what a ledger should tell.
func (m *model) snapshot(id string) Snapshot {
	s := Snapshot{ID: id, Clock: m.clock}
	for _, id := range slices.SortedFunc(maps.Keys(m.logs), tier.LogID.Compare) {
		s.Logs = append(s.Logs, m.logs[id].snapshot())
	}
	for _, name := range slices.Sorted(maps.Keys(m.tables)) {
		s.Tables = append(s.Tables, m.tables[name])
	}
	return s
}

func (l *modelLog) snapshot() LogSnapshot {
	o := l.opened
	s := LogSnapshot{
		State: tier.LogState{Log: o.Log, Source: o.Source, Layout: o.Layout,
			Incarnation: o.Incarnation, Epoch: l.epoch, Fresh: l.fresh, Start: l.start,
			Copied: l.copied(), LogStart: l.logStart, Next: l.next, Accepted: l.accepted,
			Unpublished: slices.Sorted(maps.Keys(l.unpublished)), Moves: l.moves,
			Emptied: l.emptied, Holes: l.holesNow(),
			Expired: rangesOf(func(o tier.Offset) bool { return l.expired[o] }),
		},
		Copies: ascending(l.copies), Attempts: ascending(l.attempts),
		Tombstones: ascending(l.tombstones),
	}
	for i, c := range l.clips {
		if !slices.ContainsFunc(l.clips[i+1:], func(d tier.Clip) bool { return d.Offset <= c.Offset }) {
			s.State.Clips = append(s.State.Clips, c)
		}
	}
	if n := l.checkpoints[1]; n > 0 {
		s.State.Checkpoints = []uint64{n}
	}
	for pos := range l.next {
		f := tier.Fact{Position: pos, Epoch: l.then[pos].epoch, Copied: l.then[pos].copied}
		if c, ok := l.copies[pos]; ok {
			f.Add, f.At = &c, c.FinishedAt
			s.Facts = append(s.Facts, f)
		} else if h, ok := l.holes[pos]; ok {
			f.Hole, f.At = &h, h.At
			s.Facts = append(s.Facts, f)
		} else if f, ok := l.marks[pos]; ok {
			s.Facts = append(s.Facts, f)
		}
	}
	for i := range s.Facts {
		s.Facts[i].Incarnation = l.opened.Incarnation
	}
	return s
}

// holesNow are the holes that count, ascending.
func (l *modelLog) holesNow() []tier.Hole {
	var out []tier.Hole
	for pos, h := range l.holes {
		for !h.Empty() && !l.counts(pos, h.Next-1) {
			h.Next--
		}
		if !h.Empty() {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b tier.Hole) int { return cmp.Compare(a.Base, b.Base) })
	return out
}

// rangesOf are the ranges of the offsets that are in a set.
func rangesOf(in func(tier.Offset) bool) tier.RangeSet {
	var out tier.RangeSet
	for o := range tier.Offset(offsetEnd) {
		if in(o) {
			out = out.Add(tier.Range{Base: o, Next: o + 1})
		}
	}
	return out
}

// ascending returns the values by their positions.
func ascending[V any](m map[tier.Position]V) []V {
	var out []V
	for _, pos := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[pos])
	}
	return out
}
