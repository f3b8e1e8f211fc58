package sim

import (
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// slowMost is by how much later than it was asked about a segment may go: a call that was given up
// goes on after that.
const slowMost = 5 * time.Minute

// windowEnded (S14): the brake's window of a table is replaced by another one when its time is
// over, when the clock has gone back behind its beginning, and where an operator let the table go
// on; and what goes later than that is not counted in it.
func (o *Oracle) windowEnded(t *tier.TableState) {
	per := o.w.Config.Brake.Per
	was := o.windows[t.Table]
	o.windows[t.Table] = t.Window.Since
	// By a clock that went on to its end and back again it was over, too, before anybody looked.
	over := o.vouched.most.Sub(was) >= per
	if lasted := t.Window.Since.Sub(was); was != 0 && lasted > 0 && lasted < per && !over && !o.old {
		o.violate(CountedOnce, "the brake's window of %s that began at %s was over after %s, and has %s",
			t.Table, was, lasted, per)
	}
	for _, d := range o.deletions {
		in := d.at.Sub(t.Window.Since)
		if d.log.Table == t.Table && !d.forgiven && in >= per+slowMost && o.allConcluded() {
			o.violateAt(CountedOnce, d.log, d.base, "segment %d of %s went %s after the brake's window of "+
				"%s began, and is counted in it", d.base, d.log, in, per)
		}
	}
}

// allConcluded reports whether each announced deletion has its outcome: before that the next start
// counts it.
func (o *Oracle) allConcluded() bool {
	for _, in := range o.w.intents() {
		if in.outcome == "" {
			return false
		}
	}
	return true
}
