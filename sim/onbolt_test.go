package sim

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim/choose"
)

// TestOnBolt: a history whose ledger lies in a real bbolt file is the same one, operation by
// operation.
func TestOnBolt(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	p.Scratch = scratch(t)
	crashes := 0
	for seed := uint64(3); seed < 9; seed++ {
		inMemory, f := p.Find(seed)
		if f != nil {
			t.Fatal(f.Outcome.Violation)
		}
		out, f, err := p.FindOnBolt(seed)
		if err != nil || f != nil {
			t.Fatalf("seed %d: %v, %v", seed, err, f)
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

// scratch gives each history a directory that the test takes away.
func scratch(t *testing.T) func() (string, func(), error) {
	return func() (string, func(), error) { return t.TempDir(), func() {}, nil }
}

// TestScenariosOnBolt: what only a real file shows is found again by its scenario, with its ledger
// in one, and not in memory.
func TestScenariosOnBolt(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	must(err)
	if _, _, err := p.FindOnBolt(1); err == nil {
		t.Error("without a directory: no error")
	}
	p.Scratch = scratch(t)
	var files atomic.Int64
	p.openBolt = func(at string) (*offsets.Bolt, error) { // of which none is locked for another
		return openBolt(fmt.Sprintf("%s-%d", at, files.Add(1)))
	}
	_, found, err := p.FindOnBolt(1)
	if err != nil || found == nil || found.Scenario.Medium != choose.MediumBolt {
		t.Fatalf("%v, %+v", err, found)
	}
	small := p.Shrink(found, 50, func() bool { return true })
	if small == found || small.Scenario.Medium != choose.MediumBolt {
		t.Errorf("it does not shrink: %+v", small.Scenario)
	}
	s, err := choose.Decode(small.Scenario.Encode())
	must(err)
	if out, err := p.Replay(s); err != nil || out.Violation == nil {
		t.Errorf("replayed: %v, and nothing is broken", err)
	}
	s.Medium = ""
	if out, err := p.Replay(s); err != nil || out.Violation != nil {
		t.Errorf("in memory: %v, %v", err, out.Violation)
	}
	p.Scratch, s.Medium = nil, choose.MediumBolt
	if _, err := p.Replay(s); err == nil {
		t.Error("replayed without a directory: no error")
	}
	if out, unfit := p.Again(s); unfit == nil || out.Violation != nil {
		t.Errorf("without a directory: %v, %v", unfit, out.Violation)
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
