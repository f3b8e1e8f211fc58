package sim

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
)

// builtin is the built-in policy alone, compiled once.
var builtin = sync.OnceValue(func() *rego.Set { return loadPolicy("") })

func loadPolicy(source string) *rego.Set {
	var modules []rego.Module
	if source != "" {
		modules = append(modules, rego.Module{Path: "policy.rego", Source: []byte(source)})
	}
	set, err := rego.Load(modules, nil, rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		panic(err)
	}
	return set
}

// testTable is the settings of every table: an hour on local disk, seven days in all.
var testTable = tier.Table{Name: "orders", TTL: 7 * 24 * time.Hour, LocalTTL: time.Hour,
	Tiering: true, DisablePolicy: tier.PolicyRetain, Entry: "tierd.yaml:1"}

func testConfig() Config {
	return Config{
		Tables: func(name string) (tier.Table, bool) {
			t := testTable
			t.Name = name
			return t, true
		},
		Policies: builtin(), Workers: 1, Verify: tier.VerifyFull, Delete: tier.LocalDeleteUnlink,
		Brake:     tier.Brake{MaxSegments: 1000, MaxBytes: 1 << 40, Per: time.Hour},
		Tolerance: 5 * time.Minute, AskAgain: 5 * time.Minute, Next: logdir.NextFollowing,
		Grace: 10 * time.Minute, OrphanAge: 24 * time.Hour,
	}
}

// orders is the log of most tests.
var orders = tier.LogID{Table: "orders", Name: "0"}

// logsOf are the logs of some tests: two of one table, one of another.
var logsOf = []tier.LogID{orders, {Table: "orders", Name: "1"}, {Table: "payroll", Name: "0"}}

// newObserved returns a world with its oracle and no process.
func newObserved(t testing.TB) (*World, *Oracle) {
	t.Helper()
	w, err := NewWorld(testConfig(), scenarioStart)
	if err != nil {
		t.Fatal(err)
	}
	return w, w.Observe()
}

// crash is one thing that a crash can make of what was not synced.
type crash struct {
	name  string
	crash func(*World)
	// twice starts the process two times after it, which must be as good as once.
	twice bool
}

// crashes are the kinds that sweeps try.
var crashes = []crash{
	{"the process is killed", (*World).Kill, true},
	{"all that was not synced is lost", func(w *World) { w.Crash(nil) }, false},
	{"all that was not synced is kept", func(w *World) {
		w.Crash(func(string, int) int { return 1 })
	}, true},
	{"torn, 1st way", torn(1), false},
	{"torn, 2nd way", torn(2), false},
	{"torn, 3rd way", torn(3), false},
}

// torn keeps and loses as a hash of each change's label says.
func torn(salt byte) func(*World) {
	return func(w *World) {
		w.Crash(func(label string, n int) int {
			h := fnv.New32a()
			_, _ = h.Write(append([]byte(label), salt))
			return int(h.Sum32()>>4) % n
		})
	}
}

const strayLeft = "a stray is left"

// outcome writes down what a history came to, without what depends on when and how often something
// was tried.
func outcome(w *World) string {
	ledger, err := w.ledgerNow()
	if err != nil {
		return err.Error()
	}
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, l := range ledger.logs {
		id := l.state.Log
		add("%s: start %d, copied offset %d, tier epoch %d, holes %v, checkpoints %v", id,
			l.state.LogStart, l.state.Copied, l.state.Epoch, holes(l.state.Holes),
			l.state.Checkpoints)
		for _, f := range w.files(id) {
			add("%s: on disk %s: %q", id, f.at, f.data)
		}
		for _, f := range l.facts {
			if f.Add == nil {
				continue
			}
			for _, file := range f.Add.Content.Files {
				add("%s: in the store %s %s %s", id, f.Add.Content.Range, file.Name, file.SHA256)
			}
		}
	}
	for _, t := range ledger.tables {
		add("table %s: %s, tier epoch %d, paused: %t", t.Table, t.State, t.Epoch, t.Paused != nil)
	}
	for _, in := range w.intents() {
		if in.outcome == tier.OutcomeDeleted && in.action == tier.DeleteLocal {
			add("%s: audited as deleted: %d", in.log, in.base)
		}
	}
	for _, key := range w.Objects.Keys() {
		if w.oracle.isStray(key) {
			add(strayLeft+": %s", key)
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

func holes(list []tier.Hole) []string {
	var out []string
	for _, h := range list {
		out = append(out, h.Range.String()+" "+string(h.Cause))
	}
	return out
}
