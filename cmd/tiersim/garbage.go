package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// gcPercent lets the heap grow to five times what lives. Histories make much garbage, and what
// lives are a few compiled policies and plugins: to look through them less often saves a third of
// the processor's time.
const gcPercent = 400

// garbageBytes is how much a search lets lie before the collector looks for it, or gcPercent where
// that is more. It makes some hundred kilobytes of garbage in each of some hundred thousand
// histories.
const garbageBytes = 384 << 20

// allowGarbage has the collector wait for so much until ctx ends. What lives grows with the states
// that were met: so its percentage is set anew after each collection.
func allowGarbage(ctx context.Context) {
	if ctx.Err() != nil {
		debug.SetGCPercent(gcPercent)
		return
	}
	alive := []metrics.Sample{{Name: "/gc/heap/live:bytes"}} // at the end of the last collection
	metrics.Read(alive)
	debug.SetGCPercent(garbagePercent(alive[0].Value.Uint64()))
	// The next collection finds that nobody holds this, and says so on a goroutine of the runtime.
	runtime.AddCleanup(new([64]byte), allowGarbage, ctx)
}

// garbagePercent is the percentage of the bytes alive that garbageBytes are: not more than most,
// since the runtime adds its share of what is no part of the heap.
func garbagePercent(alive uint64) int {
	const most = 4 * gcPercent
	return int(min(max(garbageBytes*100/max(alive, 1), gcPercent), most))
}
