package sim

import (
	"context"
	"strings"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// TestACheckpointLandsAgainAfterARebuild: a client asked twice for its upload, and the first
// request was only slow. It takes effect once more when the ledger was lost and made anew, and the
// log has gone on by another block since: the manifest says what the ledger says all the same.
func TestACheckpointLandsAgainAfterARebuild(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start()
	r.w.Bucket.SetHook(func(op fault.Op) fault.Effect {
		return fault.Effect{Twice: op.Kind == fault.OpUpload && strings.Contains(op.Key, "/manifest/L")}
	})
	fill := func(checkpoints uint64) {
		r.do(r.w.Append(orders, tier.CheckpointRadix+2))
		r.run()
		state, _ := r.w.Ledger().Log(orders)
		if len(state.Checkpoints) != 1 || state.Checkpoints[0] != checkpoints {
			t.Fatalf("%v checkpoints, want %d", state.Checkpoints, checkpoints)
		}
	}
	fill(1)
	r.w.Bucket.SetHook(nil)
	r.w.Kill()
	if _, err := r.w.Rebuild(); err != nil {
		t.Fatal(err)
	}
	r.start()
	fill(3) // a rebuild leaves out as many positions as a block has
	late := r.w.Bucket.Late()
	if len(late) != 1 || !late[0].Again {
		t.Fatalf("%d uploads are to land again, want 1", len(late))
	}
	r.do(r.w.Bucket.Land(context.Background(), 0))
	r.oracle.changed = true
	r.oracle.rest()
	r.settle()
	sound(t, r.oracle)
}
