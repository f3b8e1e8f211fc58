package engine

import (
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// Scrubbed says what a look at a copy in the store found: the Reason why it is not what was copied,
// or nil where it is.
type Scrubbed struct {
	Log      tier.LogID
	Position tier.Position
	Reason   *tier.Reason
}

func (Scrubbed) event() {}

// badCopy is a copy that the store lost or altered.
type badCopy struct {
	position tier.Position
	reason   tier.Reason
}

// bad reports whether the copy was found not to be what was copied.
func (l *logIndex) bad(pos tier.Position) bool {
	return slices.ContainsFunc(l.badCopies, func(b badCopy) bool { return b.position == pos })
}

// scrubbed takes over what was found. A segment whose copy is bad is no longer proved: it is not
// proposed for deletion, and is copied again while it is there.
func (e *Engine) scrubbed(ev Scrubbed) {
	l := e.logs[ev.Log]
	if l == nil {
		return
	}
	before := l.bad(ev.Position)
	l.badCopies = slices.DeleteFunc(l.badCopies, func(b badCopy) bool {
		return b.position == ev.Position
	})
	if ev.Reason != nil {
		l.badCopies = append(l.badCopies, badCopy{ev.Position, *ev.Reason})
	}
	if before == (ev.Reason != nil) {
		return
	}
	l.kept, l.remoteKept = nil, nil
	for i := range l.remote {
		if l.remote[i].Position == ev.Position && l.states != nil {
			if at := l.at(l.remote[i].Base); at >= 0 && l.states[at] != copying {
				if l.isCopy(&l.remote[i], &l.local[at]) && ev.Reason == nil {
					l.unquarantine(l.remote[i].Base) // what is damaged is copied all the same
				}
				l.settle(l.remote[i].Base)
			}
		}
	}
	e.evaluate(l)
}

// losses are the copies that are part of the log and bad, with no better one of their base.
func (l *logIndex) losses() (out []tier.Reason) {
	for i := range l.remote {
		if len(l.badCopies) == 0 {
			break
		}
		r := &l.remote[i]
		better := i+1 < len(l.remote) && l.remote[i+1].Base == r.Base && l.counts(&l.remote[i+1])
		if l.counts(r) && !better {
			out = append(out, l.lossOf(r)...)
		}
	}
	return out
}

// lossOf says what is wrong with the copy; nothing where nothing is known to be.
func (l *logIndex) lossOf(r *tier.Remote) []tier.Reason {
	i := slices.IndexFunc(l.badCopies, func(b badCopy) bool { return b.position == r.Position })
	if i < 0 {
		return nil
	}
	text := "it is lost: put the object back, or its readers get errors until it expires"
	if j := l.at(r.Base); j >= 0 && l.isCopy(r, &l.local[j]) {
		text = "it is copied again, and stays on local disk until then"
	}
	return []tier.Reason{{Code: tier.CodeStoreLost,
		Text: fmt.Sprintf("segment %s: %s; %s", r.Range, l.badCopies[i].reason.Text, text)}}
}
