package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// TestLostCommits: a medium says too early that commits are durable, and the machine stops. What is
// left is an older ledger: nothing that its copies do not prove goes, and a rebuild finds all that
// was lost. Where the audit log shows that the ledger does not know what went, no process starts.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	p := plainProject(t)
	lost, refused := 0, 0
	for n := range 40 {
		for _, state := range []string{"0", "1"} {
			out := scripted(t, p, "owner: rolls", fmt.Sprintf("stop: later, and commits of the ledger "+
				"are lost; operations before: %d; after the operation: %s", n, state),
				"process: runs", "time: passes, and the process runs; time: an hour",
				"operator: rebuilds the ledger", "process: runs")
			if out.Violation != nil {
				t.Errorf("%d, %s: %s", n, state, out.Violation)
			}
			lost += out.Met[LostCommits]
		}
	}
	out := scripted(t, p, "time: passes, and the process runs; time: an hour",
		"stop: later, and commits of the ledger are lost; operations before: 11", "process: runs",
		"owner: rolls", "stop: at a moment; moment: between the record of a deletion and its audit "+
			"outcome", "process: runs")
	for _, l := range out.Trace {
		if l.Lane == LaneLedger && strings.HasPrefix(l.Text, "the process does not start") {
			refused++
		}
	}
	if lost == 0 || refused == 0 || out.Violation != nil {
		t.Errorf("commits were lost %d times, a start refused %d times: %v", lost, refused,
			out.Violation)
	}
}

// TestLateOfALostLedger: a ledger is lost whose first fact of a log is still on its way to the
// store. The next one begins that log at the same position; histories let the entry come before.
func TestLateOfALostLedger(t *testing.T) {
	t.Parallel()
	late := "times out, and comes late"
	out := scripted(t, plainProject(t), "process: scans",
		"store: fails an upload; of: .log; fault: upload has no effect",
		"store: fails an upload; of: manifest; fault: upload "+late,
		"owner: removes a segment; log: orders/0",
		"store: fails an upload; of: manifest; fault: upload has no effect", "process: runs",
		"stop: and the ledger is lost, and rebuilt", "store: lands what is late")
	came := slices.ContainsFunc(out.Trace, func(l Line) bool {
		return l.Lane == LaneStore && strings.HasSuffix(l.Text, late)
	})
	if out.Violation != nil || !came || out.Met[LostLedger] == 0 {
		t.Errorf("late: %t; lost: %d; %v", came, out.Met[LostLedger], out.Violation)
	}
}

// TestLateFileOfALostLedger is the same of a file. Where nothing governs its table the next ledger
// never opens the log, and would take itself for an old one.
func TestLateFileOfALostLedger(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.copied(1)
	keys, err := objstore.NewKeys(r.w.process.ledger.ID())
	r.do(err)
	r.w.Bucket.SetHook(func(fault.Op) fault.Effect { return fault.Effect{Late: true} })
	var late [2]string
	for i, log := range []tier.LogID{orders, {Table: "unseen", Name: "0"}} {
		late[i], err = keys.File(tier.ObjectKey{Log: log, Base: 90, Epoch: 1,
			Attempt: tier.AttemptID{9}, Name: "90.log"})
		r.do(err)
		body := thanos.NopCloserWithSize(strings.NewReader("x"))
		r.do(r.w.Bucket.Upload(t.Context(), late[i], body))
	}
	(&play{w: r.w, o: r.oracle}).landsUnseen()
	for i, want := range []bool{false, true} {
		if _, came := r.w.Objects.Object(late[i]); came != want {
			t.Errorf("%s came: %t", late[i], came)
		}
	}
}

// TestLateDeletionOfALostLedger: a copy leaves with its table, its deletion is on its way to the
// store, and the ledger is lost that knew. The next one would find the object, and count it.
func TestLateDeletionOfALostLedger(t *testing.T) {
	t.Parallel()
	late := "times out, and comes late"
	out := scripted(t, plainProject(t), "process: runs", "settings: turn tiering off",
		"settings: change remote.log.disable.policy; remote.log.disable.policy: delete",
		"process: runs", "store: fails a deletion; of: .log; fault: delete "+late, // 5
		"time: passes, and the process runs; time: an hour",
		"stop: and the ledger is lost, and rebuilt", "store: lands what is late")
	came := slices.ContainsFunc(out.Trace, func(l Line) bool {
		return l.Lane == LaneStore && strings.HasSuffix(l.Text, late)
	})
	if out.Violation != nil || !came || out.Met[LostLedger] == 0 {
		t.Errorf("late: %t; lost: %d; %v", came, out.Met[LostLedger], out.Violation)
	}
	if l := after(t, out, 7); len(l.Remote) > 0 {
		t.Errorf("the rebuilt ledger has copies of %v, want none", l.Remote)
	}
}
