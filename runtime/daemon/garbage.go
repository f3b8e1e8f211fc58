package daemon

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	gometrics "runtime/metrics"
)

// garbageBytes is how much the collector lets lie before it looks for it, while the Kafka endpoint
// serves. Chunks of the archive are garbage as soon as they are sent: with the usual share of a
// small heap the collector would run several times for each segment that is read.
const garbageBytes = 128 << 20

// allowGarbage has the collector do so until ctx ends. Its percentage is of what is alive, and that
// is several times as much where many clients take nothing as where one reads: so it is set anew
// after each collection. A GOGC of the user's own stays.
func allowGarbage(ctx context.Context) {
	if os.Getenv("GOGC") == "" {
		pace(ctx)
	}
}

// pace sets the percentage, and again once the collector has run.
func pace(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	alive := []gometrics.Sample{{Name: "/gc/heap/live:bytes"}} // at the end of the last collection
	gometrics.Read(alive)
	debug.SetGCPercent(garbagePercent(alive[0].Value.Uint64()))
	// The next collection finds that nobody holds this, and says so on a goroutine of the runtime.
	runtime.AddCleanup(new([64]byte), pace, ctx)
}

// garbagePercent is the percentage of the bytes alive that garbageBytes are: at most 300, and at
// least 50, since a collection takes time in proportion to what is alive.
func garbagePercent(alive uint64) int {
	const least, most = 50, 300
	return int(min(max(garbageBytes*100/max(alive, 1), least), most))
}
