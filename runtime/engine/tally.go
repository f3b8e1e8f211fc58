package engine

import (
	"github.com/tierd/tierd/runtime/tier"
)

// Tally is one table in numbers, for metrics. Lags are never negative, and are there also while
// everything fails.
type Tally struct {
	Table       string
	State       tier.TierState
	Epoch       tier.TierEpoch
	Paused      bool
	Logs        int64
	Blocked     int64 // logs of which nothing is decided
	Local       Extent
	Remote      Extent
	Uncopied    Extent    // closed, and not copied
	OldestLag   tier.Time // mtime of the oldest uncopied segment; absent if there is none
	Overdue     Extent    // copied, a limit says that it may go, and still here
	OldestDue   tier.Time // since when the oldest of them is due; absent if there is none
	Held        Extent    // held back from copying by plugins
	Kept        Extent    // kept on local disk by plugins
	Quarantined int64
	Lost        int64 // copies that the store lost or altered, with no better one
	Holes       int64
	HoleOffsets int64
}

// Tallies counts all tables, ascending by name.
func (e *Engine) Tallies() []Tally {
	var out []Tally
	for _, l := range e.order {
		if n := len(out); n == 0 || out[n-1].Table != l.id.Table {
			t := l.table
			out = append(out, Tally{Table: l.id.Table, State: t.state.State, Epoch: t.state.Epoch,
				Paused: t.state.Paused != nil})
		}
		e.tally(&out[len(out)-1], l)
	}
	return out
}

func (e *Engine) tally(t *Tally, l *logIndex) {
	t.Logs++
	if l.block != nil {
		t.Blocked++
	}
	local, lag, oldest := l.localExtent()
	if !l.tiers(l.table) {
		lag, oldest = Extent{}, 0
	}
	t.Local.count(local)
	t.Remote.count(e.remoteOf(l))
	t.Uncopied.count(lag)
	if oldest != 0 && (t.OldestLag == 0 || oldest < t.OldestLag) {
		t.OldestLag = oldest
	}
	for _, q := range l.quarantine {
		if !q.accepted {
			t.Quarantined++
		}
	}
	t.Lost += int64(len(l.losses()))
	for _, h := range l.openHoles() {
		t.Holes++
		t.HoleOffsets += int64(h.Next - h.Base)
	}
	if l.advice != nil {
		e.tallyAdvice(t, l)
	}
	overdue, since := e.overdue(l)
	t.Overdue.count(overdue)
	if since != 0 && (t.OldestDue == 0 || since < t.OldestDue) {
		t.OldestDue = since
	}
}

// tallyAdvice counts what plugins hold and keep.
func (e *Engine) tallyAdvice(t *Tally, l *logIndex) {
	for _, r := range l.advice.rows {
		i := l.at(r.base)
		if i < 0 {
			continue
		}
		if e.heldUntil(l, i) != 0 && l.states[i] != copied && l.states[i] != copying {
			t.Held.add(l.local[i].Range, l.local[i].Bytes)
		}
		if r.keep != 0 {
			t.Kept.add(l.local[i].Range, l.local[i].Bytes)
		}
	}
}

// overdue sums the prefix of copied segments that some limit lets go.
func (e *Engine) overdue(l *logIndex) (x Extent, since tier.Time) {
	if l.block != nil || !l.opened {
		return x, 0
	}
	t := l.table
	bytes := l.localBytes
	for i := range l.local {
		if l.states[i] != copied || !l.local[i].Closed() {
			break
		}
		at := e.worthAsking(l, t, i, bytes)
		if at > e.now {
			break
		}
		if i == 0 {
			since = at
		}
		bytes -= l.local[i].Bytes
		x.add(l.local[i].Range, l.local[i].Bytes)
	}
	return x, since
}

// count adds sizes and numbers; ranges of different logs do not add up.
func (x *Extent) count(y Extent) {
	x.Segments += y.Segments
	x.Bytes += y.Bytes
}
