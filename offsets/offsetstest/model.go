package offsetstest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// model is a ledger as one would write it down on paper: maps and sets, everything that can be
// reckoned reckoned from scratch.
type model struct {
	logs   map[tier.LogID]*modelLog
	tables map[string]tier.TableState
	ids    map[tier.AttemptID]bool
	clock  tier.Time
}

type modelLog struct {
	opened      tier.LogOpened
	next        tier.Position
	copies      map[tier.Position]tier.Copy
	attempts    map[tier.Position]tier.Attempt
	tombstones  map[tier.Position]offsets.Tombstone
	holes       map[tier.Position]tier.Hole
	copiedThen  map[tier.Position]tier.Offset
	unpublished map[tier.Position]bool
	accepted    []tier.LossAccepted
	checkpoints map[uint8]uint64
}

func newModel() *model {
	return &model{logs: map[tier.LogID]*modelLog{}, tables: map[string]tier.TableState{},
		ids: map[tier.AttemptID]bool{}}
}

// ranges are those of all copies and holes.
func (l *modelLog) ranges() []tier.Range {
	var out []tier.Range
	for _, c := range l.copies {
		out = append(out, c.Content.Range)
	}
	for _, h := range l.holes {
		out = append(out, h.Range)
	}
	return out
}

// copied walks offset by offset.
func (l *modelLog) copied() tier.Offset {
	for o := l.opened.Start; ; o++ {
		if !slices.ContainsFunc(l.ranges(), func(r tier.Range) bool { return r.Contains(o) }) {
			return o
		}
	}
}

// apply takes a record, or says no and changes nothing.
func (m *model) apply(r tier.Record) (pos tier.Position, ok bool) {
	if seen, is := r.(tier.ClockSeen); is {
		m.clock = max(m.clock, seen.At)
		return 0, true
	}
	table, known := m.tables[r.Subject().Table]
	if o, is := r.(tier.LogOpened); is {
		return 0, m.open(o)
	}
	if !known {
		return 0, false
	}
	switch r := r.(type) {
	case tier.TablePaused:
		table.Paused = &r.Reason
		m.tables[r.Table] = table
		return 0, true
	case tier.TableResumed:
		table.Paused, table.Window = nil, tier.BrakeWindow{Since: r.At}
		m.tables[r.Table] = table
		return 0, true
	}
	l := m.logs[r.Subject()]
	if l == nil {
		return 0, false
	}
	switch r := r.(type) {
	case tier.CopyStarted:
		return m.start(l, r.Attempt)
	case tier.HoleRecorded:
		return l.hole(r.Hole)
	case tier.LocalDeleted:
		table.Window = r.Window
		m.tables[r.Log.Table] = table
		return 0, true
	default:
		return 0, l.apply(r)
	}
}

func (m *model) open(r tier.LogOpened) bool {
	if l := m.logs[r.Log]; l != nil {
		return l.opened.Incarnation == r.Incarnation
	}
	if r.Epoch != 1 {
		return false
	}
	m.logs[r.Log] = &modelLog{opened: r, copies: map[tier.Position]tier.Copy{},
		attempts:    map[tier.Position]tier.Attempt{},
		tombstones:  map[tier.Position]offsets.Tombstone{},
		holes:       map[tier.Position]tier.Hole{},
		copiedThen:  map[tier.Position]tier.Offset{},
		unpublished: map[tier.Position]bool{},
		checkpoints: map[uint8]uint64{},
	}
	if _, known := m.tables[r.Log.Table]; !known {
		m.tables[r.Log.Table] = tier.TableState{Table: r.Log.Table, State: tier.Enabled, Epoch: 1,
			Since: r.At}
	}
	return true
}

func (m *model) start(l *modelLog, a tier.Attempt) (tier.Position, bool) {
	if a.Epoch != 1 || a.Range.Empty() || m.ids[a.ID] {
		return 0, false
	}
	m.ids[a.ID] = true
	a.Position = l.next
	l.attempts[a.Position] = a
	l.next++
	return a.Position, true
}

func (l *modelLog) hole(h tier.Hole) (tier.Position, bool) {
	below := tier.Range{Base: h.Base, Next: l.opened.Start}
	if h.Empty() || !below.Empty() || slices.ContainsFunc(l.ranges(), h.Overlaps) {
		return 0, false
	}
	pos := l.next
	l.next++
	l.holes[pos], l.unpublished[pos] = h, true
	l.copiedThen[pos] = l.copied()
	return pos, true
}

// apply takes a record that concerns the log alone.
func (l *modelLog) apply(r tier.Record) bool {
	switch r := r.(type) {
	case tier.CopyFinished:
		a, ok := l.attempts[r.Copy.Position]
		if !ok || a.ID != r.Copy.Attempt || a.Range != r.Copy.Content.Range ||
			a.Epoch != r.Copy.Epoch {
			return false
		}
		delete(l.attempts, a.Position)
		l.copies[a.Position] = r.Copy
		l.copiedThen[a.Position] = l.copied()
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
		delete(l.unpublished, r.Position)
		return isCopy || isHole
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
			Incarnation: o.Incarnation, Epoch: 1, Start: o.Start, Copied: l.copied(),
			LogStart: o.Start, Next: l.next, Accepted: l.accepted,
			Unpublished: slices.Sorted(maps.Keys(l.unpublished)),
			Holes: slices.SortedFunc(maps.Values(l.holes), func(a, b tier.Hole) int {
				return cmp.Compare(a.Base, b.Base)
			})},
		Copies: ascending(l.copies), Attempts: ascending(l.attempts),
		Tombstones: ascending(l.tombstones),
	}
	if n := l.checkpoints[1]; n > 0 {
		s.State.Checkpoints = []uint64{n}
	}
	for pos := range l.next {
		f := tier.Fact{Position: pos, Epoch: 1, Copied: l.copiedThen[pos]}
		if c, ok := l.copies[pos]; ok {
			f.Add, f.At = &c, c.FinishedAt
			s.Facts = append(s.Facts, f)
		} else if h, ok := l.holes[pos]; ok {
			f.Hole, f.At = &h, h.At
			s.Facts = append(s.Facts, f)
		}
	}
	return s
}

// ascending returns the values by their positions.
func ascending[V any](m map[tier.Position]V) []V {
	var out []V
	for _, pos := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[pos])
	}
	return out
}

// testModel appends random records to a ledger and to the model, with restarts in between. Both
// must agree on every refusal, every position and, in the end, on everything.
func testModel(t *testing.T, newDisk func(t *testing.T) Disk) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &run{T: rt, disk: newDisk(t), model: newModel()}
		r.restart()
		defer func() { r.ledger.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"open":     r.open,
			"start":    r.start,
			"settle":   r.settle,
			"anything": r.anything,
			"restart":  func(*rapid.T) { r.restart() },
			"": func(*rapid.T) {
				for id, l := range r.model.logs {
					if got, _ := r.ledger.Log(id); got.Copied != l.copied() {
						rt.Fatalf("copied offset of %s: got %d, want %d", id, got.Copied, l.copied())
					}
				}
			},
		})
		r.restart()
	})
}

// run is one random sequence.
type run struct {
	*rapid.T
	disk   Disk
	ledger *offsets.Ledger
	model  *model
}

// restart compares everything, closes the ledger and opens it again.
func (r *run) restart() {
	if r.ledger != nil {
		r.compare()
		if err := r.ledger.Close(); err != nil {
			r.Fatalf("close: %v", err)
		}
	}
	m, err := r.disk()
	if err != nil {
		r.Fatalf("open the medium: %v", err)
	}
	if r.ledger, err = offsets.Open(m); err != nil {
		r.Fatalf("open the ledger: %v", err)
	}
	r.compare()
}

func (r *run) compare() {
	got, err := Take(r.ledger)
	if err != nil {
		r.Fatalf("read the ledger: %v", err)
	}
	want := r.model.snapshot(r.ledger.ID())
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		r.Fatalf("-model +ledger:\n%s", diff)
	}
}

// both appends a record to ledger and model.
func (r *run) both(rec tier.Record) {
	pos, err := r.ledger.Append(context.Background(), rec)
	if err != nil && !errors.Is(err, tier.ErrRefused) {
		r.Fatalf("append %T: %v", rec, err)
	}
	want, ok := r.model.apply(rec)
	if ok != (err == nil) || pos != want {
		r.Fatalf("append %T: got position %d, error %v; the model says %d, %t", rec, pos, err, want, ok)
	}
}

func drawLog(t *rapid.T) tier.LogID {
	return rapid.SampledFrom([]tier.LogID{orders0, orders1, deep}).Draw(t, "log")
}

func drawRange(t *rapid.T) tier.Range {
	base := tier.Offset(rapid.IntRange(0, 40).Draw(t, "base"))
	return span(base, base+tier.Offset(rapid.IntRange(0, 12).Draw(t, "length")))
}

func (r *run) open(t *rapid.T) {
	rec := opened(drawLog(t), tier.Offset(rapid.IntRange(0, 8).Draw(t, "start")))
	if rapid.IntRange(0, 3).Draw(t, "other incarnation") == 3 {
		rec.Incarnation = "BBBB"
	}
	r.both(rec)
}

func (r *run) start(t *rapid.T) {
	a := attempt(rapid.IntRange(0, 300).Draw(t, "attempt"), drawRange(t))
	a.Epoch = rapid.SampledFrom([]tier.TierEpoch{1, 1, 1, 1, 1, 2}).Draw(t, "epoch")
	r.both(started(drawLog(t), a))
}

// settle ends an attempt that is under way, or tries to end one that is not.
func (r *run) settle(t *rapid.T) {
	id := drawLog(t)
	a := attempt(rapid.IntRange(0, 300).Draw(t, "attempt"), drawRange(t))
	a.Position = tier.Position(rapid.IntRange(0, 30).Draw(t, "position"))
	miss := rapid.IntRange(0, 9).Draw(t, "miss") == 9
	if l := r.model.logs[id]; l != nil && len(l.attempts) > 0 && !miss {
		a = rapid.SampledFrom(ascending(l.attempts)).Draw(t, "under way")
	}
	if rapid.IntRange(0, 3).Draw(t, "abandon") == 0 {
		r.both(tier.CopyAbandoned{Log: id, Position: a.Position, Cause: "drawn", At: t0})
		return
	}
	r.both(finished(id, a))
}

// anything appends one of the other records.
func (r *run) anything(t *rapid.T) {
	id, pos := drawLog(t), tier.Position(rapid.IntRange(0, 30).Draw(t, "position"))
	at := t0 + tier.Time(rapid.IntRange(0, 99).Draw(t, "at"))
	switch rapid.IntRange(0, 8).Draw(t, "record") {
	case 0, 1:
		r.both(hole(id, drawRange(t)))
	case 2:
		r.both(tier.Published{Log: id, Position: pos})
	case 3:
		r.both(tier.Checkpointed{Log: id, Level: 1, Block: uint64(pos) / 20})
	case 4:
		r.both(tier.ClockSeen{At: at})
	case 5:
		rec := reidentified(id, finished(id, attempt(1, drawRange(t))).Copy)
		rec.Position = pos
		if l := r.model.logs[id]; l != nil && len(l.copies) > 0 {
			c := rapid.SampledFrom(ascending(l.copies)).Draw(t, "copy")
			rec = reidentified(id, c)
		}
		r.both(rec)
	case 6:
		if l := r.model.logs[id]; l != nil && l.copied() > l.opened.Start {
			w := r.model.tables[id.Table].Window.At(at, 50).Plus(1, 6000)
			rec := localDeleted(id, span(l.opened.Start, l.copied()), w)
			rec.At = at
			r.both(rec)
		}
	case 7:
		r.both(tier.TablePaused{Table: id.Table, Reason: pauseReason, At: at})
	case 8:
		r.both(tier.TableResumed{Table: id.Table, At: at})
	}
}
