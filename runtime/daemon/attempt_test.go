package daemon

import (
	"bytes"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// Ids are never the same twice, also where the clock stands still or goes back, and ascend with it.
func TestAttemptIDs(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_800_000_000_000)
	seen := map[tier.AttemptID]bool{}
	var before tier.AttemptID
	for i := range 2000 {
		now := start.Add(time.Duration(i%1000) * time.Millisecond)
		for range 2 {
			id := newAttempt(now)
			if seen[id] {
				t.Fatalf("%s was there before", id)
			}
			seen[id] = true
			if ms := i % 1000; ms > 0 && bytes.Compare(id[:6], before[:6]) < 0 {
				t.Fatalf("%s at %s does not come after %s", id, now, before)
			}
			before = id
		}
	}
	if id := newAttempt(start); !bytes.HasPrefix(id[:], []byte{0x01, 0xa3, 0x18, 0x5c, 0x50, 0x00}) {
		t.Errorf("%s does not begin with the time", id)
	}
}
