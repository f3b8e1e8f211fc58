package offsets

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// BenchmarkMoveStart moves the starts of logs of a thousand segments each over one segment, and
// then removes its copy; one commit for all logs each. A move looks at all copies of its log.
func BenchmarkMoveStart(b *testing.B) {
	const logs, each = 500, 1000
	l, _ := openAt(b, filepath.Join(b.TempDir(), "ledger.db"))
	defer l.Close()
	fill(b, l, logs, each)
	var moving, removing time.Duration
	rounds := 0
	for rounds < each && b.Loop() {
		rounds++
		end := tier.Offset(rounds * 1_000_000)
		var moves, removals []tier.Record
		for i := range logs {
			moves = append(moves, tier.StartMoved{Log: benchLog(i), Start: end,
				Expired: tier.RangeSet{span(0, end)}, Cause: tier.MoveExpired})
			removals = append(removals, tier.CopyRemoved{Log: benchLog(i),
				Position: tier.Position(rounds - 1)})
		}
		began := time.Now()
		commitTogether(b, l, moves)
		moving += time.Since(began)
		began = time.Now()
		commitTogether(b, l, removals)
		removing += time.Since(began)
	}
	b.ReportMetric(float64(rounds*logs)/moving.Seconds(), "moves/s")
	b.ReportMetric(float64(rounds*logs)/removing.Seconds(), "removals/s")
}
