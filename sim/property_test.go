package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// TestAnyHistory lets chance write histories: of an owner that rolls, rewrites and removes
// segments, of a process that does what it has queued in any order, of settings and clocks that
// change, and of stores, disks and machines that fail. The oracle judges every step; at the end
// everything heals, and then whatever is due must have come about. Run more of them with
// -rapid.checks=10000.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string][]string{
		"nothing fails":   {"owner", "process", "settings", "clock"},
		"the store fails": {"owner", "process", "store", "settings"},
		"the disk fails":  {"owner", "process", "disk"},
		"machines stop":   {"owner", "process", "stop", "clock"},
		"effects overlap": {"owner", "process", "overlap", "store"},
		"everything": {"owner", "process", "store", "disk", "stop", "overlap", "settings",
			"clock", "tiering"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				h := newChance(t)
				actions := h.actions(kinds)
				actions[""] = h.judge
				t.Repeat(actions)
				h.calm()
				h.heal()
				h.judge(t)
			})
		})
	}
}

// chance is one history written by chance.
type chance struct {
	t       *rapid.T
	w       *World
	oracle  *Oracle
	table   tier.Table // the settings of every table
	hold    bool       // a policy denies everything
	gone    []string   // tables that no entry governs
	store   []armed    // faults of the store that wait for their call
	disk    int        // points until the next fault of disk or ledger; 0 for none
	fate    Fate
	hit     Point // the last point that was hit
	inside  int   // calls of the store until something happens in the middle of one; 0 for never
	meet    func()
	aside   int // points until the owner comes in between; 0 for never
	deed    func()
	crashes int
	brake   int // operations on the audit log until somebody pauses deletions; 0 for never
}

// logsOf are the logs of a history: two of one table, one of another.
var logsOf = []tier.LogID{orders, {Table: "orders", Name: "1"}, {Table: "payroll", Name: "0"}}

func newChance(t *rapid.T) *chance {
	h := beginChance(t, tier.LayoutPlain)
	h.must(h.w.Start())
	for _, id := range logsOf {
		h.must(h.w.Append(id, 1))
	}
	return h
}

func beginChance(t *rapid.T, layout tier.Layout) *chance {
	h := &chance{t: t, table: testTable}
	h.table.TTL = 0 // what is in the store stays
	c := testConfig()
	c.Layout = layout
	c.Workers = rapid.IntRange(1, 2).Draw(t, "workers")
	c.Tables = func(name string) (tier.Table, bool) {
		table := h.table
		table.Name = name
		return table, !slices.Contains(h.gone, name)
	}
	w, err := NewWorld(c, scenarioStart)
	if err != nil {
		t.Fatal(err)
	}
	h.w, h.oracle = w, w.Observe()
	h.oracle.Denied = func(tier.LogID) bool { return h.hold }
	w.Watch = h.watch
	w.Bucket.SetHook(h.onStore)
	return h
}

func (h *chance) must(err error) {
	if err != nil {
		h.t.Fatal(err)
	}
}

// judge fails at the first broken promise: each from a line of its own, so that rapid never takes
// one for another while it shrinks.
func (h *chance) judge(t *rapid.T) {
	for _, v := range h.oracle.Violations() {
		switch v.Property {
		case NoUncopiedDelete:
			t.Fatal(v)
		case CopiedSound:
			t.Fatal(v)
		case CopiedMonotone:
			t.Fatal(v)
		case PersistBeforeAct:
			t.Fatal(v)
		case Gated:
			t.Fatal(v)
		case NoGap:
			t.Fatal(v)
		case ActiveUntouched:
			t.Fatal(v)
		case CountedOnce:
			t.Fatal(v)
		case AuditTrue:
			t.Fatal(v)
		case EligibleCopied:
			t.Fatal(v)
		case ExpiredDeleted:
			t.Fatal(v)
		case Settled:
			t.Fatal(v)
		case NoLivelock:
			t.Fatal(v)
		default:
			t.Fatal(v)
		}
	}
}

// watch lets the armed fault of disk or ledger happen.
func (h *chance) watch(p Point) Fate {
	if h.aside > 0 {
		if h.aside--; h.aside == 0 {
			h.w.aside(h.deed)
		}
	}
	if h.brake > 0 && announces(p) {
		if h.brake--; h.brake == 0 {
			h.w.aside(func() { h.w.SetPaused(!h.w.Paused) })
		}
	}
	if h.disk == 0 || p.Place == InStore && h.fate != StopBefore && h.fate != StopAfter {
		return Proceed
	}
	if h.disk--; h.disk > 0 {
		return Proceed
	}
	h.hit = p
	return h.fate
}

// onStore lets the first armed fault of the store that fits happen.
func (h *chance) onStore(op fault.Op) fault.Effect {
	if h.inside > 0 {
		if h.inside--; h.inside == 0 {
			h.meet()
		}
	}
	for i, a := range h.store {
		if a.kind == op.Kind && strings.Contains(op.Key, a.key) {
			h.store = slices.Delete(h.store, i, i+1)
			return a.effect
		}
	}
	return fault.Effect{}
}

// alive answers what an action of the process came to. A process that ended is started again:
// alone, or with its machine.
func (h *chance) alive(t *rapid.T, err error) {
	h.disk = 0
	if err == nil {
		return
	}
	if h.w.Ended() == nil {
		t.Fatalf("the process goes on after: %v", err)
	}
	h.restart(t)
}

func (h *chance) restart(t *rapid.T) {
	h.disk = 0
	// An fsync that failed ends the trust in its file until the machine is started anew.
	if h.hit.Kind != string(vfs.OpSync) && rapid.Bool().Draw(t, "the process alone") {
		h.w.Kill()
	} else {
		h.hit = Point{}
		h.w.Crash(func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) })
	}
	if err := h.w.Start(); err != nil {
		t.Fatalf("start: %v", err)
	}
	if h.crashes++; h.crashes%twiceEvery == 1 {
		if err := h.w.startAgain(); err != nil {
			t.Fatalf("start again: %v", err)
		}
	}
}

func (h *chance) log(t *rapid.T) tier.LogID { return rapid.SampledFrom(logsOf).Draw(t, "log") }

// segment draws one that is on disk, and not the active one; ok is false if there is none.
func (h *chance) segment(t *rapid.T) (id tier.LogID, base tier.Offset, ok bool) {
	id = h.log(t)
	bases, err := h.w.Bases(id)
	if err != nil {
		t.Fatal(err)
	}
	if len(bases) < 2 {
		return id, 0, false
	}
	return id, rapid.SampledFrom(bases[:len(bases)-1]).Draw(t, "segment"), true
}

func (h *chance) actions(kinds []string) map[string]func(*rapid.T) {
	out := map[string]func(*rapid.T){}
	for _, kind := range kinds {
		for name, do := range map[string]map[string]func(*rapid.T){
			"owner": h.ownerDoes(), "process": h.processDoes(), "store": h.storeDoes(),
			"disk": h.diskDoes(), "stop": h.stops(), "settings": h.settingsDo(),
			"clock": h.clockDoes(), "overlap": h.overlaps(), "tiering": h.tieringDoes(),
		}[kind] {
			out[kind+" "+name] = do
		}
	}
	return out
}

func (h *chance) ownerDoes() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"rolls": func(t *rapid.T) {
			h.must(h.w.Append(h.log(t), rapid.IntRange(1, 3).Draw(t, "segments")))
		},
		"writes a second file": func(t *rapid.T) {
			if id, base, ok := h.segment(t); ok {
				h.must(h.w.WriteCompanion(id, base, fmt.Appendf(nil, "%s %d", id, base)))
			}
		},
		"removes a segment": func(t *rapid.T) {
			if id, base, ok := h.segment(t); ok {
				h.must(h.w.Remove(id, base))
			}
		},
		"rewrites a segment": func(t *rapid.T) {
			if id, base, ok := h.segment(t); ok {
				h.w.Advance(time.Millisecond)
				version := rapid.IntRange(1, 3).Draw(t, "version")
				h.must(h.w.Write(id, base, Content(id, base, version)))
			}
		},
		"appends to a closed segment": func(t *rapid.T) {
			if id, base, ok := h.segment(t); ok {
				h.w.Advance(time.Millisecond)
				h.must(h.w.Grow(id, base, []byte("more\n")))
			}
		},
		"loses its mount": func(t *rapid.T) { h.must(h.w.Vanish()) },
		"has its mount":   func(t *rapid.T) { h.must(h.w.Return()) },
	}
}

func (h *chance) processDoes() map[string]func(*rapid.T) {
	perform := func(t *rapid.T) {
		if n := len(h.w.Queued()); n > 0 {
			h.alive(t, h.w.Perform(rapid.IntRange(0, n-1).Draw(t, "effect")))
		}
	}
	scan := func(t *rapid.T) {
		_, err := h.w.Scan()
		if err == nil {
			h.w.step(engine.Tick{})
		}
		h.alive(t, err)
	}
	return map[string]func(*rapid.T){
		"scans": scan, "scans again": scan,
		"performs one effect": perform, "performs another": perform, "performs a third": perform,
		"runs":  func(t *rapid.T) { h.alive(t, h.w.Run()) },
		"waits": func(t *rapid.T) { h.w.Advance(time.Minute) },
		"waits long": func(t *rapid.T) {
			h.w.Advance(time.Duration(rapid.IntRange(1, 150).Draw(t, "minutes")) * time.Minute)
		},
	}
}

func (h *chance) clockDoes() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"goes back": func(t *rapid.T) {
			h.w.Advance(-time.Duration(rapid.IntRange(1, 5000).Draw(t, "seconds")) * time.Second)
		},
		"leaps": func(t *rapid.T) { h.w.Advance(100 * time.Hour) },
	}
}

func (h *chance) settingsDo() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"change a TTL": func(t *rapid.T) {
			minutes := rapid.SampledFrom([]int{0, 1, 60, 600}).Draw(t, "minutes")
			h.change(t, func() { h.table.LocalTTL = time.Duration(minutes) * time.Minute })
		},
		"change the TTL of all": func(t *rapid.T) {
			hours := rapid.SampledFrom([]int{0, 2, 30, 200}).Draw(t, "hours")
			h.change(t, func() { h.table.TTL = time.Duration(hours) * time.Hour })
		},
		"change a count": func(t *rapid.T) {
			n := rapid.Int64Range(0, 3).Draw(t, "local segments")
			h.change(t, func() { h.table.LocalSegments = tier.Limit{Set: n > 0, Value: n} })
		},
		"change a size": func(t *rapid.T) {
			n := rapid.Int64Range(0, 60).Draw(t, "local bytes")
			h.change(t, func() { h.table.LocalBytes = tier.Limit{Set: n > 0, Value: n} })
		},
		"change the policy": func(t *rapid.T) {
			h.change(t, func() { h.hold = !h.hold; h.w.Config.Policies = h.policies() })
		},
		"change the brake": func(t *rapid.T) {
			n := rapid.Int64Range(1, 4).Draw(t, "segments")
			h.change(t, func() { h.w.Config.Brake.MaxSegments = n })
		},
		"pause":  func(t *rapid.T) { h.w.SetPaused(!h.w.Paused) },
		"resume": func(t *rapid.T) { h.resume(t, h.log(t).Table) },
		"forbid": func(t *rapid.T) {
			h.w.Config.Delete = tier.LocalDeleteNever
			h.restart(t) // the way to delete is the source's, and read once
		},
	}
}

func (h *chance) policies() *rego.Set {
	if h.hold {
		return onHold()
	}
	return builtin()
}

func (h *chance) resume(t *rapid.T, table string) {
	if err := h.w.Resume(table); err != nil && !errors.Is(err, tier.ErrRefused) {
		h.alive(t, err)
	}
}

func (h *chance) storeDoes() map[string]func(*rapid.T) {
	arm := func(kinds ...fault.OpKind) func(*rapid.T) {
		return func(t *rapid.T) {
			kind := rapid.SampledFrom(kinds).Draw(t, "call")
			key := rapid.SampledFrom([]string{"", ".log", "manifest"}).Draw(t, "of")
			names := slices.Sorted(maps.Keys(storeFaults[kind]))
			name := rapid.SampledFrom(names).Draw(t, "fault")
			h.store = append(h.store, armed{kind: kind, key: key, effect: storeFaults[kind][name]})
		}
	}
	return map[string]func(*rapid.T){
		"fails an upload": arm(fault.OpUpload),
		"fails a read":    arm(fault.OpGet, fault.OpGetRange, fault.OpAttributes),
		"lands what is late": func(t *rapid.T) {
			if n := len(h.w.Bucket.Late()); n > 0 {
				i := rapid.IntRange(0, n-1).Draw(t, "late upload")
				h.must(h.w.Bucket.Land(context.Background(), i))
			}
		},
		"works again": func(t *rapid.T) { h.store = nil },
	}
}

// storeFaults are what a call of the store can come to, by kind of call.
var storeFaults = map[fault.OpKind]map[string]fault.Effect{
	fault.OpUpload: {
		"has no effect":                   {Err: errInjected},
		"takes effect, and reports none":  {Err: errInjected, Applied: true},
		"comes late":                      {Err: errInjected, Late: true},
		"comes late, and says it is done": {Late: true},
		"takes effect twice":              {Twice: true},
		"is cut, and says it is whole":    {Mangle: fault.Cut(4)},
		"rots, and says it is well":       {Mangle: fault.Flip(3)},
	},
	fault.OpGet: {
		"gives no answer":   {Err: errInjected},
		"gives less":        {Mangle: fault.Cut(5)},
		"gives other bytes": {Mangle: fault.Flip(2)},
		"finds nothing":     {Err: fault.ErrNotFound},
	},
	fault.OpGetRange: {
		"gives no answer": {Err: errInjected},
		"gives less":      {Mangle: fault.Cut(5)},
	},
	fault.OpAttributes: {
		"gives no answer": {Err: errInjected},
		"finds nothing":   {Err: fault.ErrNotFound},
	},
}

func (h *chance) diskDoes() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"will fail": func(t *rapid.T) {
			h.disk = rapid.IntRange(1, 25).Draw(t, "after points")
			h.fate = rapid.SampledFrom([]Fate{Fail, FailAfter}).Draw(t, "fate")
		},
	}
}

func (h *chance) stops() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"now": h.restart,
		"later": func(t *rapid.T) {
			h.disk = rapid.IntRange(1, 40).Draw(t, "after points")
			h.fate = rapid.SampledFrom([]Fate{StopBefore, StopAfter}).Draw(t, "fate")
		},
	}
}

// overlaps lets something happen in the middle of an effect, while it asks the store: as workers
// do, and as callers do that wait no more.
func (h *chance) overlaps() map[string]func(*rapid.T) {
	arm := func(meet func()) func(*rapid.T) {
		return func(t *rapid.T) {
			h.inside = rapid.IntRange(1, 12).Draw(t, "calls of the store before")
			h.meet = meet
		}
	}
	// What ends the process in the middle is found when the effect around it has ended.
	scan := func() {
		if _, err := h.w.Scan(); err == nil {
			h.w.step(engine.Tick{})
		}
	}
	run := func() { _ = h.w.Run() }
	owner := func(t *rapid.T) {
		id, i := h.log(t), rapid.IntRange(0, 3).Draw(t, "segment")
		version := rapid.IntRange(0, 3).Draw(t, "version; 0 for one more segment")
		h.aside = rapid.IntRange(1, 40).Draw(t, "points before")
		h.deed = func() {
			bases, err := h.w.Bases(id)
			h.must(err)
			h.w.Advance(time.Millisecond)
			if version == 0 {
				h.must(h.w.Append(id, 1))
			} else if i < len(bases)-1 {
				h.must(h.w.Write(id, bases[i], Content(id, bases[i], version)))
			}
		}
	}
	return map[string]func(*rapid.T){
		"with its owner": owner,
		"with a pause": func(t *rapid.T) {
			h.brake = rapid.IntRange(1, 8).Draw(t, "operations on the audit log before")
		},
		"with a scan":     arm(scan),
		"with a run":      arm(run),
		"and is given up": arm(h.w.GiveUp),
		"and is given up, and looked at": arm(func() {
			h.w.GiveUp()
			h.w.Advance(time.Minute)
			run()
		}),
		"with another effect": arm(func() {
			if len(h.w.Queued()) > 0 {
				_ = h.w.Perform(0)
			}
		}),
	}
}

// heal ends all faults and stops, lets time pass, and asks the oracle for what is due.
func (h *chance) heal() {
	h.store, h.disk, h.inside, h.aside, h.brake = nil, 0, 0, 0, 0
	h.must(h.w.Return())
	forbidden := h.w.Config.Delete != tier.LocalDeleteUnlink
	h.w.Config.Delete = tier.LocalDeleteUnlink
	h.w.Config.Brake.MaxSegments = 1000
	h.w.SetPaused(false)
	h.hold, h.w.Config.Policies = false, builtin()
	h.must(h.w.Reload())
	// The way to delete is the source's, and read once; what could not be looked at when a process
	// began is looked at when it is needed, or when the next one begins.
	if forbidden || rapid.Bool().Draw(h.t, "a new process") {
		h.w.Kill()
		h.must(h.w.Start())
	}
	for _, table := range []string{"orders", "payroll"} {
		h.resume(h.t, table)
	}
	h.w.Advance(200 * time.Hour)
	for range settleRounds {
		h.must(h.w.Run())
		h.w.Advance(time.Minute)
	}
	h.oracle.Quiet()
}
