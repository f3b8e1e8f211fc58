package engine

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// event is one that an engine takes, and the log that it is about.
type event struct {
	now tier.Time
	ev  Event
	log tier.LogID
}

// life drives an engine, and writes down what it is given.
type life struct {
	e      *Engine
	now    tier.Time
	events []event
	logs   map[tier.LogID]*livingLog
}

// livingLog is a log as its source and its ledger have it.
type livingLog struct {
	local   []tier.LocalSegment
	next    tier.Position
	start   tier.Offset
	expired tier.RangeSet
}

// steps plays an event, and answers all effects that follow from it, each as it should be.
func (l *life) steps(ev Event, log tier.LogID) {
	type waiting struct {
		effect Effect
		log    tier.LogID
	}
	var queue []waiting
	step := func(ev Event, log tier.LogID) {
		l.events = append(l.events, event{l.now, ev, log})
		for _, f := range l.e.Step(l.now, ev) {
			queue = append(queue, waiting{f, log})
		}
	}
	for step(ev, log); len(queue) > 0; {
		f := queue[0].effect
		queue = queue[1:]
		res, log := l.perform(f)
		step(Finished{f.EffectID(), res}, log)
	}
}

// perform plays the executor.
func (l *life) perform(f Effect) (Result, tier.LogID) {
	switch f := f.(type) {
	case Open:
		return Opened{State: tier.LogState{Log: f.Log, Source: f.Source, Layout: f.Layout, Epoch: 1},
			Table: tier.TableState{Table: f.Log.Table, State: f.State, Epoch: 1}}, f.Log
	case Copy:
		s, log := f.Segment, l.logs[f.Log]
		log.next++
		return Copied{Offset: s.Next, Next: log.next, Remote: tier.Remote{Range: s.Range,
			Position: log.next - 1, Epoch: 1, Verified: true, Bytes: s.Bytes, Log: s.Log,
			ModTime: s.Log.ModTime, FinishedAt: l.now}}, f.Log
	case Delete:
		log := l.logs[f.Log]
		var gone []tier.LocalSegment
		for _, c := range f.Segments {
			gone = append(gone, c.Segment)
		}
		log.local = log.local[len(gone):]
		return Deleted{Gone: gone, LogStart: log.start, Next: log.next}, f.Log
	case Expire:
		log := l.logs[f.Log]
		for _, c := range f.Segments {
			log.start, log.expired = c.Next, log.expired.Add(c.Range)
		}
		log.next++
		return Moved{Start: log.start, Expired: log.expired, Cause: tier.MoveExpired, At: l.now,
			Next: log.next}, f.Log
	case Remove:
		var positions []tier.Position
		for _, c := range f.Copies {
			positions = append(positions, c.Position)
		}
		return Removed{Positions: positions}, f.Log
	default:
		return Done{}, tier.LogID{}
	}
}

// hours lets logs live: each hour every one of them rolls, so that a segment is copied, one is
// deleted, one expires, and one is removed from the store.
func hours(logs, hours int) *life {
	s := settings(func(s *Settings, t *tier.Table) { t.TTL = 5 * time.Hour; s.Removers = 2 })
	inner := s.Table
	s.Table = func(string) (tier.Table, bool) { return inner("orders") }
	l := &life{e: New(), now: epochStart, logs: map[tier.LogID]*livingLog{}}
	l.steps(Reconfigured{Settings: s}, tier.LogID{})
	l.steps(Started{}, tier.LogID{})
	ids := make([]tier.LogID, logs)
	for i := range ids {
		ids[i] = tier.LogID{Table: fmt.Sprintf("table-%04d", i/10), Name: fmt.Sprint(i % 10)}
		l.logs[ids[i]] = &livingLog{}
	}
	for h := range hours {
		l.now += hour
		for _, id := range ids {
			log := l.logs[id]
			closed, active := seg(tier.Offset(10*h)), tail(tier.Offset(10*h+10))
			closed.Log.ModTime, active.Log.ModTime = l.now, l.now
			log.local = append(log.local[:max(0, len(log.local)-1):max(0, len(log.local)-1)],
				closed, active)
			l.steps(Scanned{Scan: tier.Scan{Log: id, Source: "wal", Layout: tier.LayoutPlain,
				Segments: log.local, LocalEnd: active.Next, Whole: true}}, id)
		}
		l.steps(SourceScanned{Source: "wal", Logs: ids}, tier.LogID{})
		l.steps(Tick{}, tier.LogID{})
	}
	return l
}

// BenchmarkSteps is how many events a second an engine takes in the life of logs without policies,
// and how often a second a map finds the log of each.
func BenchmarkSteps(b *testing.B) {
	l := hours(100, 50)
	kinds := map[string]int{}
	for _, ev := range l.events {
		kinds[fmt.Sprintf("%T", ev.ev)]++
		if f, ok := ev.ev.(Finished); ok {
			kinds[fmt.Sprintf("%T", f.Result)]++
		}
	}
	for _, kind := range []Result{Copied{}, Deleted{}, Moved{}, Removed{}} {
		if n := kinds[fmt.Sprintf("%T", kind)]; n < 100*40 {
			b.Fatalf("%T %d times, want at least 4000: %v", kind, n, kinds)
		}
	}
	b.Run("engine", func(b *testing.B) {
		l.fastest(b, func() {
			e := New()
			for i := range l.events {
				e.Step(l.events[i].now, l.events[i].ev)
			}
		})
	})
	b.Run("map", func(b *testing.B) {
		l.fastest(b, func() {
			found := map[tier.LogID]int{}
			for i := range l.events {
				found[l.events[i].log]++
			}
		})
	})
}

// fastest reports the rate of the fastest pass over the events: others may want the processor, too.
func (l *life) fastest(b *testing.B, pass func()) {
	best := time.Duration(math.MaxInt64)
	for b.Loop() {
		began := time.Now()
		pass()
		best = min(best, time.Since(began))
	}
	b.ReportMetric(float64(len(l.events))/best.Seconds(), "steps/s")
}
