package sim

import (
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
)

// TestRebuildThatFailsChangesNothing: the store does not answer at some call; the old ledger stays.
func TestRebuildThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	calls := 0
	for n := 0; ; n++ {
		r := newRig(t)
		r.copied(3)
		r.w.Advance(2 * time.Hour)
		r.run()
		r.w.Kill()
		before, at := r.w.persistent(), 0
		r.w.Bucket.SetHook(func(fault.Op) fault.Effect {
			at++
			if at == n+1 {
				return fault.Effect{Err: errInjected}
			}
			return fault.Effect{}
		})
		_, err := r.w.Rebuild()
		r.w.Bucket.SetHook(nil)
		if at <= n {
			if err != nil {
				t.Fatalf("without a failure: %v", err)
			}
			break
		}
		calls++
		if err == nil {
			t.Fatalf("call %d of the store failed, and nobody noticed", n)
		}
		if after := r.w.persistent(); after != before {
			t.Fatalf("call %d of the store failed, and something changed:\n%s", n, after)
		}
		r.start()
		r.settle()
		if v := r.oracle.Violations(); len(v) > 0 {
			t.Fatal(v)
		}
	}
	if calls < 10 {
		t.Fatalf("only %d calls", calls)
	}
}
