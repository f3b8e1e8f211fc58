package daemon

import (
	"os"
	"runtime"
	"runtime/debug"
)

// garbageBytes is how much the collector lets lie before it looks for it, while the Kafka endpoint
// serves. Chunks of the archive are garbage as soon as they are sent: with the usual share of a
// small heap the collector would run several times for each segment that is read.
const garbageBytes = 256 << 20

// allowGarbage sets the collector's percentage so, from what is alive now: the ledger's state,
// which grows slowly. It is never less than the usual 100. A GOGC of the user's own stays.
func allowGarbage() {
	if os.Getenv("GOGC") != "" {
		return
	}
	var m runtime.MemStats
	runtime.GC() // so that HeapAlloc is what is alive
	runtime.ReadMemStats(&m)
	debug.SetGCPercent(garbagePercent(m.HeapAlloc))
}

// garbagePercent is the percentage of the bytes alive that garbageBytes are.
func garbagePercent(alive uint64) int {
	const usual, most = 100, 300
	return int(min(max(garbageBytes*100/max(alive, 1), usual), most))
}
