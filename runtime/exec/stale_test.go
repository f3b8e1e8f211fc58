package exec

import (
	"testing"
	"time"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// TestAnOldLedgerMovesNoStart: the ledger forgot that its table ever tiered, and the configuration
// says that it does not. A start that moved for a local deletion would stand in the manifest where
// the copies still are that it forgot, and a rebuild would not find them any more.
func TestAnOldLedgerMovesNoStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(2)
	r.opened()
	r.copied(0)
	r.medium = offsets.NewMemory([16]byte{1}) // as it was when it was made
	r.tiering = false
	r.boot()
	f := r.openEffect().(engine.Open)
	f.State = tier.Disabled
	r.do(f)
	r.now += tier.Time(2 * time.Hour)
	d := r.deleteEffect(0)
	d.Segments[0].Copied = false
	r.kept(r.do(d), tier.CodeLedgerStale)
	if s, _ := r.ledger.Log(orders); s.LogStart != 0 || !r.there(fileName(0)) {
		t.Errorf("the log begins at %d, and its first segment is there: %t; want 0 and true",
			s.LogStart, r.there(fileName(0)))
	}
}
