package offsetstest

import (
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// The model of tier states and of the end of remote data.

// steps are the changes of state that there are.
var steps = []struct {
	from, to       tier.TierState
	policy, before tier.DisablePolicy
	rise           tier.TierEpoch
}{
	{from: tier.Enabled, to: tier.Disabling, policy: tier.PolicyRetain, rise: 1},
	{from: tier.Enabled, to: tier.Disabling, policy: tier.PolicyDelete, rise: 1},
	{from: tier.Disabling, to: tier.Disabled, before: tier.PolicyRetain, policy: tier.PolicyRetain},
	{from: tier.Disabling, to: tier.Disabled, before: tier.PolicyDelete, policy: tier.PolicyDelete},
	{from: tier.Disabled, to: tier.Disabling, before: tier.PolicyRetain, policy: tier.PolicyDelete,
		rise: 1},
	{from: tier.Disabled, to: tier.Enabled, rise: 1},
	{from: tier.Disabled, to: tier.Enabled, before: tier.PolicyRetain, rise: 1},
	{from: tier.Disabled, to: tier.Enabled, before: tier.PolicyDelete, rise: 1},
}

func (m *model) change(t *tier.TableState, r tier.TierChanged) bool {
	if t.State == r.State && t.Epoch == r.Epoch && t.Policy == r.Policy {
		return true
	}
	for _, s := range steps {
		if s.from != t.State || s.to != r.State || s.before != t.Policy || s.policy != r.Policy ||
			t.Epoch+s.rise != r.Epoch {
			continue
		}
		for id, l := range m.logs {
			if r.State == tier.Disabled && id.Table == r.Table && len(l.attempts) > 0 {
				return false
			}
		}
		if r.State == tier.Enabled && t.Policy == tier.PolicyDelete {
			t.Fresh = r.Epoch
		}
		t.State, t.Epoch, t.Policy, t.Since = r.State, r.Epoch, r.Policy, r.At
		if r.State == tier.Enabled {
			t.Dropped = 0
		}
		return true
	}
	return false
}

func (m *model) drop(t *tier.TableState, r tier.TableDropped) bool {
	under := t.State == tier.Disabling && t.Policy == tier.PolicyDelete
	switch {
	case r.At == 0:
		return false
	case under && t.Dropped != 0:
		return true
	case !under:
		t.State, t.Policy, t.Since = tier.Disabling, tier.PolicyDelete, r.At
		t.Epoch++
	}
	t.Dropped, t.Entry = r.At, ""
	return true
}

func leaving(t *tier.TableState) bool {
	return t.Policy == tier.PolicyDelete && t.State != tier.Enabled
}

// mark puts a fact at the next position.
func (l *modelLog) mark(f tier.Fact) tier.Position {
	f.Position, f.Epoch = l.next, l.epoch
	l.next++
	l.marks[f.Position], l.unpublished[f.Position] = f, true
	l.then[f.Position] = seen{epoch: l.epoch}
	return f.Position
}

func (l *modelLog) openEpoch(t *tier.TableState, r tier.EpochOpened) (tier.Position, bool) {
	if t.State != tier.Enabled || r.Epoch != t.Epoch || r.Epoch <= l.epoch ||
		r.Fresh != (l.epoch < t.Fresh) {
		return 0, false
	}
	l.epoch = r.Epoch
	if !r.Fresh {
		return 0, true
	}
	l.fresh, l.start, l.logStart = r.Epoch, r.Start, r.Start
	l.expired, l.accepted, l.moves, l.clips = map[tier.Offset]bool{}, nil, nil, nil
	return l.mark(tier.Fact{At: r.At, Copied: r.Start, Open: &r.Start}), true
}

// move says whether the record is taken, and whether it moves anything.
func (l *modelLog) move(t *tier.TableState, r tier.StartMoved) (pos tier.Position, ok, moved bool) {
	leave := func(m tier.StartMove) bool {
		return leaving(t) && m.Cause != tier.MoveExpired && m.At >= t.Since
	}
	first := leaving(t) && r.Cause != tier.MoveExpired && len(l.copies) > 0 &&
		!slices.ContainsFunc(l.moves, leave)
	switch {
	case r.Start < l.logStart, r.Start > l.copied() && t.State == tier.Enabled:
		return 0, false, false
	case r.Start == l.logStart && !first:
		return 0, true, false
	}
	for _, e := range r.Expired {
		for o := e.Base; o < e.Next; o++ {
			if o >= r.Start || !l.proved(o) {
				return 0, false, false
			}
		}
	}
	copied := l.copied()
	for _, e := range r.Expired {
		for o := e.Base; o < e.Next; o++ {
			l.expired[o] = true
		}
	}
	l.logStart = r.Start
	if leaving(t) {
		r.At = max(r.At, t.Since)
	}
	l.moves = slices.DeleteFunc(append(l.moves, tier.StartMove{Start: r.Start, At: r.At,
		Cause: r.Cause}), func(m tier.StartMove) bool {
		for _, c := range l.copies {
			if l.end(c) <= m.Start {
				return false
			}
		}
		return !leave(m)
	})
	l.forget(t)
	return l.mark(tier.Fact{At: r.At, Copied: copied, Start: &r.Start}), true, true
}

// out reports whether a copy is no part of the log any more.
func (l *modelLog) out(c tier.Copy) bool {
	end := l.end(c)
	return end <= l.logStart || end <= c.Content.Range.Base || c.Epoch < l.fresh
}

// end is where the copy ends: by the lowest clip after it, or by itself.
func (l *modelLog) end(c tier.Copy) tier.Offset {
	end := c.Content.Range.Next
	for _, clip := range l.clips {
		if c.Position < clip.Position {
			end = min(end, clip.Offset)
		}
	}
	return end
}

// forget forgets the moves that nothing waits for.
func (l *modelLog) forget(t *tier.TableState) {
	if !slices.ContainsFunc(ascending(l.copies), func(c tier.Copy) bool {
		return leaving(t) || l.out(c)
	}) {
		l.moves = nil
	}
}

func (m *model) remove(l *modelLog, t *tier.TableState, r tier.CopyRemoved) bool {
	c, ok := l.copies[r.Position]
	late := ok && c.Epoch < t.Fresh && c.Epoch >= l.fresh // its table was enabled again before
	if !ok || !l.out(c) && !leaving(t) && !late {
		return false
	}
	l.removed[r.Position] = c
	delete(l.copies, r.Position)
	delete(m.ids, c.Attempt)
	if !late || len(l.copies) == 0 {
		l.forget(t)
	}
	return true
}

func (l *modelLog) diverge(r tier.Diverged) (tier.Position, bool) {
	if r.Offset < l.start || !l.anyCovered(span(r.Offset, offsetEnd)) {
		return 0, false
	}
	l.clips = append(l.clips, tier.Clip{Position: l.next, Offset: r.Offset, At: r.At})
	l.accepted = slices.DeleteFunc(slices.Clone(l.accepted), func(a tier.LossAccepted) bool {
		return a.Range.Next > r.Offset
	})
	for o := range l.expired {
		if o >= r.Offset {
			delete(l.expired, o)
		}
	}
	return l.mark(tier.Fact{At: r.At, Copied: l.copied(), Clip: &r.Offset}), true
}
