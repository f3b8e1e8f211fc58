package engine

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// tracked builds an engine with so many logs of so many segments, local and copied, nothing due.
func tracked(tb testing.TB, logs, segments int) *Engine {
	tb.Helper()
	e := New()
	s := settings()
	inner := s.Table
	s.Table = func(string) (tier.Table, bool) { return inner("orders") }
	e.Step(epochStart, Reconfigured{Settings: s})
	ids := make([]tier.LogID, logs)
	for i := range ids {
		ids[i] = tier.LogID{Table: fmt.Sprintf("table-%04d", i/10), Name: fmt.Sprint(i % 10)}
		local := make([]tier.LocalSegment, 0, segments+1)
		remote := make([]tier.Remote, 0, segments)
		for j := range segments {
			ls := seg(tier.Offset(10 * j))
			local = append(local, ls)
			remote = append(remote, tier.Remote{Range: ls.Range, Position: tier.Position(j), Epoch: 1,
				Verified: true, Bytes: ls.Bytes, Log: ls.Log, ModTime: ls.Log.ModTime})
		}
		end := tier.Offset(10 * segments)
		local = append(local, tail(end))
		e.Step(epochStart, Restored{Copies: remote, State: tier.LogState{Log: ids[i], Source: "wal",
			Epoch: 1, Copied: end, Next: tier.Position(segments),
			Checkpoints: []uint64{uint64(segments / tier.CheckpointRadix)}}})
		e.Step(epochStart, Scanned{Scan: tier.Scan{Log: ids[i], Source: "wal",
			Layout: tier.LayoutPlain, Segments: local, LocalEnd: end + 3, Whole: true}})
	}
	e.Step(epochStart, SourceScanned{Source: "wal", Logs: ids})
	e.Step(epochStart, Started{})
	return e
}

// BenchmarkIdlePass is what each interval brings where nothing is new and nothing is due: the end
// of a scan of the whole source, and a Tick.
func BenchmarkIdlePass(b *testing.B) {
	for _, segments := range []int{50, 100, 200} {
		b.Run(fmt.Sprintf("logs=10000/segments=%d", 10_000*segments), func(b *testing.B) {
			e := tracked(b, 10_000, segments)
			if due, ok := e.NextDue(); !ok || due <= epochStart {
				b.Fatal("nothing waits for a time: the engine does not track what it should")
			}
			scanned := SourceScanned{Source: "wal", Logs: e.Logs()}
			for b.Loop() {
				out := e.Step(epochStart+hour/2, scanned)
				if out = append(out, e.Step(epochStart+hour/2, Tick{})...); len(out) > 0 {
					b.Fatalf("%d effects, want none", len(out))
				}
			}
		})
	}
}

// BenchmarkDenied is a pass over logs each of which has a candidate that the policies denied.
func BenchmarkDenied(b *testing.B) {
	const logs = 100_000
	e := tracked(b, logs, 1)
	now := epochStart + 2*hour
	answered := func(out []Effect) (questions int) {
		for ; len(out) > 0; questions++ {
			f := out[0].(Delete)
			out = append(out[1:], e.Step(now, Finished{ID: f.ID, Result: Deleted{Kept: &Kept{
				Segment: f.Segments[0].Segment, Reasons: []tier.Reason{{Code: tier.CodeDenied}}}}})...)
		}
		return questions
	}
	if n := answered(e.Step(now, Tick{})); n != logs {
		b.Fatalf("%d questions, want one for each log", n)
	}
	scanned := SourceScanned{Source: "wal", Logs: e.Logs()}
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			if n := answered(append(e.Step(now, scanned), e.Step(now, Tick{})...)); n > 0 {
				b.Fatalf("%d questions, want none", n)
			}
		}
	})
	b.Run("changed", func(b *testing.B) {
		questions, passes := 0, 0
		for b.Loop() {
			questions += answered(e.Step(now, Reconsidered{Logs: scanned.Logs}))
			passes++
		}
		b.ReportMetric(float64(questions)/float64(passes*logs), "questions/log")
	})
}

// BenchmarkReconfigure evaluates every log anew, as a reload does.
func BenchmarkReconfigure(b *testing.B) {
	for _, segments := range []int{100, 200} {
		b.Run(fmt.Sprintf("logs=10000/segments=%d", 10_000*segments), func(b *testing.B) {
			e := tracked(b, 10_000, segments)
			s := e.settings
			for b.Loop() {
				s.Generation++
				e.Step(epochStart+hour/2, Reconfigured{Settings: s})
			}
		})
	}
}

// BenchmarkLongLog copies a log of many segments from the first to the last, all of them local.
func BenchmarkLongLog(b *testing.B) {
	for _, segments := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("segments=%d", segments), func(b *testing.B) {
			var local []tier.LocalSegment
			for i := range segments {
				local = append(local, seg(tier.Offset(10*i)))
			}
			local = append(local, tail(tier.Offset(10*segments)))
			for b.Loop() {
				copyAll(b, local)
			}
			n := float64(b.N * segments)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/segment")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// copyAll lets an engine that never saw the log copy all of it but the last segment.
func copyAll(b *testing.B, local []tier.LocalSegment) {
	b.Helper()
	e := New()
	e.Step(epochStart, Reconfigured{Settings: settings()})
	e.Step(epochStart, Started{})
	effects := e.Step(epochStart, Scanned{Scan: scan(local...)})
	copies := 0
	for len(effects) > 0 {
		var res Result
		switch f := effects[0].(type) {
		case Open:
			res = Opened{
				State: tier.LogState{Log: f.Log, Source: f.Source, Layout: f.Layout, Epoch: 1},
				Table: tier.TableState{Table: f.Log.Table, State: f.State, Epoch: 1}}
		case Copy:
			s := f.Segment
			res = Copied{Offset: s.Next, Next: tier.Position(copies + 1), Remote: tier.Remote{
				Range: s.Range, Position: tier.Position(copies), Epoch: 1, Verified: true,
				Bytes: s.Bytes, Log: s.Log, ModTime: s.Log.ModTime, FinishedAt: epochStart}}
			copies++
		default:
			res = Done{}
		}
		effects = append(effects[1:], e.Step(epochStart, Finished{effects[0].EffectID(), res})...)
	}
	if copies != len(local)-1 {
		b.Fatalf("%d copies, want %d", copies, len(local)-1)
	}
}

// BenchmarkMemory reports the bytes that a segment costs which is both local and remote.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		e := tracked(b, 10_000, 100)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "bytes/segment")
		runtime.KeepAlive(e)
	}
}

// BenchmarkSelect asks plugins about 10,000 segments that are to be copied, and takes in what they
// say.
func BenchmarkSelect(b *testing.B) {
	e := New()
	s := withPlugins()
	inner := s.Table
	s.Table = func(string) (tier.Table, bool) { return inner("orders") }
	s.Workers = 0 // nothing is copied
	e.Step(epochStart, Reconfigured{Settings: s})
	const logs, segments = 1000, 10
	ids := make([]tier.LogID, logs)
	for i := range ids {
		ids[i] = tier.LogID{Table: fmt.Sprintf("table-%04d", i/10), Name: fmt.Sprint(i % 10)}
		var local []tier.LocalSegment
		for j := range segments {
			local = append(local, seg(tier.Offset(10*j)))
		}
		local = append(local, tail(10*segments))
		e.Step(epochStart, Restored{State: tier.LogState{Log: ids[i], Source: "wal", Epoch: 1}})
		e.Step(epochStart, Scanned{Scan: tier.Scan{Log: ids[i], Source: "wal",
			Layout: tier.LayoutPlain, Segments: local, LocalEnd: 10*segments + 3, Whole: true}})
	}
	e.Step(epochStart, SourceScanned{Source: "wal", Logs: ids})
	now := epochStart
	out := e.Step(now, Started{})
	for b.Loop() {
		if len(out) != 1 {
			b.Fatalf("%d effects, want one question", len(out))
		}
		f := out[0].(Select)
		if f.rows() != logs*segments {
			b.Fatalf("asked about %d segments", f.rows())
		}
		e.Step(now, Finished{ID: f.ID, Result: answerOf(f, nothing)})
		now += s.SelectEvery
		out = e.Step(now, Tick{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*logs*segments), "ns/segment")
}
