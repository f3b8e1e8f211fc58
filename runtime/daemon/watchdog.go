package daemon

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// stallAfter is for how long a kind of work may fail, or stay under way beyond its own budget,
// without a single success, before it counts as stalled.
const stallAfter = 10 * time.Minute

// watchdog notices kinds of work that do not get anywhere: whose effects fail all the time, do not
// come back, or wait for a slot that nobody gives back. It only tells; whoever gave an effect up or
// tries it again is somebody else.
type watchdog struct {
	mu    sync.Mutex
	tasks map[string]*watched
}

// watched is one kind of work.
type watched struct {
	open    map[engine.EffectID]time.Time // when each effect that was asked for is overdue
	failing time.Time                     // since when nothing but failures came; zero if not
	why     tier.Reason                   // of the last failure
	stalled bool
}

// stall is a kind of work that began to stall, or goes on again.
type stall struct {
	task    string
	stalled bool
	since   time.Time
	why     tier.Reason
}

func newWatchdog() *watchdog { return &watchdog{tasks: map[string]*watched{}} }

func (w *watchdog) task(kind string) *watched {
	t := w.tasks[kind]
	if t == nil {
		t = &watched{open: map[engine.EffectID]time.Time{}}
		w.tasks[kind] = t
	}
	return t
}

// begins notes an effect that was asked for, with the time that it may take.
func (w *watchdog) begins(f engine.Effect, now time.Time, budget time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.task(effectKind(f)).open[f.EffectID()] = now.Add(budget)
}

// ends notes how an effect ended.
func (w *watchdog) ends(f engine.Effect, r engine.Result, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.task(effectKind(f))
	delete(t.open, f.EffectID())
	failed, isFailed := r.(engine.Failed)
	switch {
	case !isFailed:
		t.failing, t.why = time.Time{}, tier.Reason{}
	case t.failing.IsZero():
		t.failing = now
		fallthrough
	default:
		t.why = failed.Reason
	}
}

// check returns the kinds of work that have begun to stall by now, and those that go on again,
// ascending by name.
func (w *watchdog) check(now time.Time) []stall {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []stall
	for _, kind := range slices.Sorted(maps.Keys(w.tasks)) {
		t := w.tasks[kind]
		since := t.failing
		for _, overdue := range t.open {
			if since.IsZero() || overdue.Before(since) {
				since = overdue
			}
		}
		stalled := !since.IsZero() && now.Sub(since) >= stallAfter
		if stalled != t.stalled {
			t.stalled = stalled
			out = append(out, stall{kind, stalled, since, t.why})
		}
	}
	return out
}

// tellStalls tells of work that stalls, once, and of its going on.
func (d *Daemon) tellStalls() {
	for _, s := range d.watchdog.check(d.opts.Now()) {
		if !s.stalled {
			d.metrics.stalled.WithLabelValues(s.task).Set(0)
			d.log.Info("a task goes on again", "task", s.task)
			continue
		}
		d.metrics.stalled.WithLabelValues(s.task).Set(1)
		d.log.Error("a task stalls: nothing of it succeeds", "task", s.task, "since", s.since,
			"code", s.why.Code, "why", s.why.Text)
	}
}
