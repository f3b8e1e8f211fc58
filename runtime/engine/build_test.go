package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

const (
	second = tier.Time(time.Second)
	hour   = tier.Time(time.Hour)
)

// epochStart is when the tests' clock begins: any fixed instant does.
const epochStart = 1_800_000_000 * second

// rig drives an engine and plays the executor: effects are kept until the test answers them.
type rig struct {
	t    *testing.T
	e    *Engine
	now  tier.Time
	open []Effect
}

func table() tier.Table {
	return tier.Table{Name: "orders", TTL: 48 * time.Hour, LocalTTL: time.Hour, Tiering: true,
		Entry: "tierd.yaml:1"}
}

func settings(change ...func(*Settings, *tier.Table)) Settings {
	tab := table()
	s := Settings{Generation: 1, Workers: 2, Deleters: 2,
		Brake:     tier.Brake{MaxSegments: 1000, MaxBytes: 1 << 40, Per: time.Hour},
		Tolerance: 5 * 60 * second, AskAgain: 300 * second,
		Backoff:     Backoff{Min: second, Max: 60 * second},
		LocalDelete: func(string) tier.LocalDelete { return tier.LocalDeleteUnlink },
	}
	for _, c := range change {
		c(&s, &tab)
	}
	s.Table = func(name string) (tier.Table, bool) { return tab, name == "orders" }
	return s
}

// start returns a running engine with the settings and nothing restored.
func start(t *testing.T, s Settings) *rig {
	t.Helper()
	r := &rig{t: t, e: New(), now: epochStart}
	r.step(Reconfigured{Settings: s})
	r.step(Started{})
	return r
}

func (r *rig) step(ev Event) []Effect {
	out := r.e.Step(r.now, ev)
	r.open = append(r.open, out...)
	r.sums()
	return out
}

// sums checks what an engine keeps instead of going through all segments.
func (r *rig) sums() {
	r.t.Helper()
	for _, l := range r.e.order {
		if got, want := *l.summed(), l.sumUp(); got != want {
			r.t.Fatalf("the copies of %s come to %+v, not %+v", l.id, want, got)
		}
		bytes := int64(0)
		for i := range l.local {
			bytes += l.local[i].Bytes
		}
		if l.localBytes != bytes {
			r.t.Fatalf("the local segments of %s have %d bytes, not %d", l.id, bytes, l.localBytes)
		}
	}
}

func (r *rig) after(d time.Duration) []Effect {
	r.now += tier.Time(d)
	return r.step(Tick{})
}

var orders = tier.LogID{Table: "orders", Name: "0"}

// seg is a closed segment of ten offsets and 100 bytes, last written at the tests' beginning.
func seg(base tier.Offset) tier.LocalSegment {
	return tier.LocalSegment{Range: tier.Range{Base: base, Next: base + 10}, Bytes: 100,
		Log:   tier.Stat{Inode: uint64(base) + 1, Size: 90, ModTime: epochStart},
		Waits: tier.WaitsForNothing}
}

// tail is the active segment, of three offsets.
func tail(base tier.Offset) tier.LocalSegment {
	s := seg(base)
	s.Next, s.Waits = base+3, tier.WaitsForRoll
	return s
}

func scan(segments ...tier.LocalSegment) tier.Scan {
	s := tier.Scan{Log: orders, Source: "wal", Layout: tier.LayoutPlain, Segments: segments,
		Whole: true}
	if n := len(segments); n > 0 {
		s.LocalEnd = segments[n-1].Next
	}
	return s
}

// seen gives the engine a whole scan of the source with the one log.
func (r *rig) seen(segments ...tier.LocalSegment) []Effect {
	out := r.step(Scanned{Scan: scan(segments...)})
	return append(out, r.step(SourceScanned{Source: "wal", Logs: []tier.LogID{orders}})...)
}

// take removes and returns the one open effect of the type.
func take[E Effect](r *rig) E {
	r.t.Helper()
	for i, f := range r.open {
		if f, ok := f.(E); ok {
			r.open = append(r.open[:i:i], r.open[i+1:]...)
			return f
		}
	}
	var none E
	r.t.Fatalf("no open %T; open are %v", none, r.words())
	return none
}

func (r *rig) none() {
	r.t.Helper()
	if len(r.open) > 0 {
		r.t.Fatalf("unexpected effects: %v", r.words())
	}
}

func (r *rig) words() []string {
	var out []string
	for _, f := range r.open {
		out = append(out, fmt.Sprintf("%T%+v", f, f))
	}
	return out
}

// opened answers the Open of a log that starts at the offset.
func (r *rig) opened(start tier.Offset) {
	r.t.Helper()
	f := take[Open](r)
	r.step(Finished{ID: f.ID, Result: Opened{
		State: tier.LogState{Log: f.Log, Source: f.Source, Layout: f.Layout, Epoch: 1, Start: start,
			Copied: start, LogStart: start},
		Table: tier.TableState{Table: f.Log.Table, State: f.State, Epoch: 1}}})
}

// copied answers a Copy of the segment at base as finished, at the position.
func (r *rig) copied(pos tier.Position, offset tier.Offset) Copy {
	r.t.Helper()
	f := take[Copy](r)
	s := f.Segment
	r.step(Finished{ID: f.ID, Result: Copied{Offset: offset, Next: pos + 1,
		Remote: tier.Remote{Range: s.Range, Position: pos, Epoch: 1, Verified: true, Bytes: s.Bytes,
			Last: tier.NoLeaderEpoch, Log: s.Log, ModTime: s.Log.ModTime, FinishedAt: r.now}}})
	return f
}

// deleted answers a Delete as done to the end.
func (r *rig) deleted() Delete {
	r.t.Helper()
	f := take[Delete](r)
	done := Deleted{Window: r.e.Table(f.Log.Table).State.Window.At(r.now, time.Hour)}
	for _, c := range f.Segments {
		done.Gone = append(done.Gone, c.Segment)
		done.Window = done.Window.Plus(1, c.Segment.Bytes)
	}
	r.step(Finished{ID: f.ID, Result: done})
	return f
}

func (r *rig) view() LogView {
	r.t.Helper()
	v, ok := r.e.Log(orders)
	if !ok {
		r.t.Fatal("the log is not known")
	}
	return v
}

// code returns the first reason with the code, and fails if there is none.
func (r *rig) code(c tier.Code) tier.Reason {
	r.t.Helper()
	v := r.view()
	for _, x := range append(v.Alarms, v.Waiting...) {
		if x.Code == c {
			return x
		}
	}
	r.t.Fatalf("no reason %s; there are %+v %+v", c, v.Alarms, v.Waiting)
	return tier.Reason{}
}
