package engine

import (
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// finished takes over the result of an effect and decides the log anew. A result that answers no
// effect, or one that was answered already, is a bug of the caller.
func (e *Engine) finished(ev Finished) {
	f, ok := e.inflight[ev.ID]
	if !ok {
		panic(fmt.Sprintf("engine: result %T for the unknown effect %d", ev.Result, ev.ID))
	}
	delete(e.inflight, ev.ID)
	if f, ok := f.(Select); ok {
		e.selectFinished(f, ev.Result)
		return
	}
	if e.remoteFinished(f, ev.Result) {
		return
	}
	switch f := f.(type) {
	case Open:
		l := e.log(f.Log)
		l.opening = false
		e.opens--
		e.openFinished(l, ev.Result)
		e.evaluate(l)
	case Copy:
		l := e.log(f.Log)
		l.copies--
		e.copyFinished(l, ev.ID, f.Segment.Base, ev.Result)
		if _, refused := ev.Result.(Abandoned); refused {
			// It would only be refused again: a new attempt waits.
			e.failed(l, failure{"copy", f.Segment.Base}, Failed{Reason: tier.Reason{
				Code: tier.CodeTierEpoch, Text: "the ledger refused the copy, and it was abandoned"}})
		}
		l.settle(f.Segment.Base)
		e.evaluate(l)
	case Resolve:
		l := e.log(f.Log)
		l.resolving = false
		if _, failed := ev.Result.(Failed); !failed { // after a failure it is as unknown as before
			l.attempts = slices.DeleteFunc(l.attempts, func(a tier.Attempt) bool {
				return a.ID == f.Attempt.ID
			})
		}
		e.copyFinished(l, ev.ID, f.Attempt.Range.Base, ev.Result)
		l.settle(f.Attempt.Range.Base)
		e.evaluate(l)
	case Delete:
		l := e.log(f.Log)
		e.deleteFinished(l, ev.Result)
		e.evaluate(l)
	case RecordHole:
		l := e.log(f.Log)
		l.holing = false
		e.holeFinished(l, f, ev.Result)
		e.evaluate(l)
	case Publish:
		l := e.log(f.Log)
		l.publishing = false
		e.publishFinished(l, f, ev.Result)
		e.evaluate(l)
	case Checkpoint:
		l := e.log(f.Log)
		l.checking = false
		e.checkpointFinished(l, f, ev.Result)
		e.evaluate(l)
	case Pause:
		t := e.table(f.Table)
		t.pausing = false
		t.state.Paused = &f.Reason
		e.evaluateTable(f.Table)
	}
}

func (e *Engine) openFinished(l *logIndex, res Result) {
	switch res := res.(type) {
	case Opened:
		l.succeeded(failure{effect: "open"})
		l.opened = true
		l.state = res.State
		if t := l.table; !t.known {
			t.known, t.state = true, res.Table
		}
	case Failed:
		e.failed(l, failure{effect: "open"}, res)
	}
}

func (e *Engine) holeFinished(l *logIndex, f RecordHole, res Result) {
	l.holeUnknown = nil
	switch res := res.(type) {
	case HoleDone:
		l.succeeded(failure{effect: "record_hole"})
		l.addHole(res)
	case Failed:
		if res.Reason.Code == tier.CodeUnknownOutcome {
			l.holeUnknown = &f
		}
		e.failed(l, failure{effect: "record_hole"}, res)
	}
}

func (l *logIndex) addHole(h HoleDone) {
	l.state.Holes = append(l.state.Holes, h.Hole)
	l.state.Copied = max(l.state.Copied, h.Offset)
	l.state.Next = max(l.state.Next, h.Next)
	if !h.Published {
		l.state.Unpublished = append(l.state.Unpublished, h.Position)
	}
}

// lacks takes over which of the log's facts its manifest lacks.
func (l *logIndex) lacks(unpublished []tier.Position) {
	for _, p := range unpublished {
		if !slices.Contains(l.state.Unpublished, p) {
			l.state.Unpublished = append(l.state.Unpublished, p)
		}
	}
}

func (e *Engine) publishFinished(l *logIndex, f Publish, res Result) {
	switch res := res.(type) {
	case Done:
		l.succeeded(failure{effect: "publish"})
		l.state.Unpublished = slices.DeleteFunc(l.state.Unpublished, func(p tier.Position) bool {
			return p == f.Position
		})
	case Failed:
		e.failed(l, failure{effect: "publish"}, res)
	}
}

func (e *Engine) checkpointFinished(l *logIndex, f Checkpoint, res Result) {
	switch res := res.(type) {
	case Done:
		l.succeeded(failure{effect: "checkpoint"})
		for len(l.state.Checkpoints) < int(f.Level) {
			l.state.Checkpoints = append(l.state.Checkpoints, 0)
		}
		l.state.Checkpoints[f.Level-1] = f.Block + 1
	case Failed:
		e.failed(l, failure{effect: "checkpoint"}, res)
	}
}

// remoteFinished takes over the result of an effect on a table's tiering or on remote data; false
// if it is of another kind.
func (e *Engine) remoteFinished(f Effect, res Result) bool {
	switch f := f.(type) {
	case ChangeTier:
		e.changeFinished(e.table(f.Table), f, res)
		e.evaluateTable(f.Table)
	case Govern:
		e.governFinished(e.table(f.Table), f, res)
		e.evaluateTable(f.Table)
	case OpenEpoch:
		l := e.log(f.Log)
		l.opening = false
		e.opens--
		e.openFinished(l, res)
		if _, ok := res.(Opened); ok {
			l.reopened = true
			l.reindex(l.local)
		}
		e.evaluate(l)
	case Compare:
		l := e.log(f.Log)
		e.compareFinished(l, res)
		e.evaluate(l)
	case MoveStart:
		l := e.log(f.Log)
		l.moving = false
		e.moveFinished(l, failure{effect: "move_start"}, res)
		e.evaluate(l)
	case Expire:
		l := e.log(f.Log)
		l.expiring = false
		e.table(f.Log.Table).deleting = false
		e.deletes--
		e.moveFinished(l, failure{effect: "expire"}, res)
		e.evaluate(l)
	case Remove:
		l := e.log(f.Log)
		e.removeFinished(l, res)
		e.evaluate(l)
	case Clear:
		l := e.log(f.Log)
		e.clearFinished(l, f, res)
		e.evaluate(l)
	case Sweep:
		e.sweepFinished(res)
	default:
		return false
	}
	return true
}
