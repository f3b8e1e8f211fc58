package sim

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// TestOnBolt: a history whose ledger lies in a real bbolt file is the same one, operation by
// operation.
func TestOnBolt(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	crashes := 0
	for seed := uint64(3); seed < 9; seed++ {
		inMemory, f := p.Find(seed)
		if f != nil {
			t.Fatal(f.Outcome.Violation)
		}
		q := *p
		q.Config.LedgerDir = t.TempDir()
		out, f := q.Find(seed)
		if f != nil {
			t.Fatalf("seed %d: %s", seed, f.Outcome.Violation)
		}
		if out.Hash != inMemory.Hash {
			t.Errorf("seed %d: another history than in memory", seed)
		}
		crashes += out.Crashes
	}
	if crashes == 0 {
		t.Error("no process ended: nothing was shown")
	}
}

// TestOnBoltSees: a commit that the file lacks is a promise that was broken.
func TestOnBoltSees(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.LedgerDir = t.TempDir()
	w, err := NewWorld(c, scenarioStart)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	o := w.Observe()
	must(w.Start())
	must(w.Append(orders, 2))
	must(w.Run())
	w.Kill()
	must(w.Start())
	if v := o.Violations(); len(v) > 0 {
		t.Fatal(v)
	}
	w.Kill()
	l, err := offsets.Open(w.Medium)
	must(err)
	_, err = l.Append(context.Background(), tier.ClockSeen{At: w.Now + 1})
	must(err)
	w.Medium = w.Medium.Clone()
	w.wire()
	must(w.Start())
	if v := o.Violations(); len(v) != 1 || v[0].Property != Recovered {
		t.Errorf("the oracle says %v", v)
	}
}

// TestASecondProcessIsSeen: a ledger that a second process can open beside the first is a promise
// that was broken, at each start.
func TestASecondProcessIsSeen(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.LedgerDir = t.TempDir()
	w, err := NewWorld(c, scenarioStart)
	must(err)
	defer w.Close()
	o := w.Observe()
	files := 0
	w.openBolt = func(at string) (*offsets.Bolt, error) {
		files++ // each has a file of its own, and so none is refused
		return openBolt(fmt.Sprintf("%s-%d", at, files))
	}
	for starts := range 2 {
		must(w.Start())
		v := o.Violations()
		if len(v) != starts+1 || v[starts].Property != Recovered ||
			!strings.Contains(v[starts].Text, "a second process") {
			t.Fatalf("after %d starts the oracle says %v", starts+1, v)
		}
		w.boltKnown = false
		w.Kill()
	}
}
