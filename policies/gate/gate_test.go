package gate_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
)

const now = tier.Time(1_800_000_000_000_000_000)

// good gives facts that the guard has nothing against.
func good() *gate.Facts {
	return &gate.Facts{
		Action: tier.DeleteLocal,
		Now:    now,
		Table:  tier.Table{Name: "orders", Tiering: true},
		Log: gate.LogFacts{
			ID: tier.LogID{Table: "orders", Name: "0"}, State: tier.Enabled, Copied: 100,
			HighWatermark: 100, HasHighWatermark: true,
		},
		Seg: gate.SegmentFacts{
			Range: tier.Range{Base: 0, Next: 100}, Bytes: 1000,
			File: tier.Stat{Inode: 7, Size: 1000},
		},
		Safety: gate.SafetyFacts{
			Closed: tier.Yes, FirstLocal: tier.Yes, EpochCurrent: tier.Yes, SourceWhole: tier.Yes,
			NotPaused: tier.Yes, OwnsSource: tier.Yes, DropWay: tier.LocalDeleteUnlink,
			Brake:  tier.Brake{MaxSegments: 10, MaxBytes: 10_000, Per: time.Hour},
			Window: tier.BrakeWindow{Since: now, Segments: 10, Bytes: 10_000},
			Proof: gate.Proof{Recorded: tier.Yes, Identity: tier.Yes, Manifest: tier.Yes,
				Objects: tier.Yes, Lineage: tier.Yes, Sound: tier.Yes},
		},
	}
}

// goods are facts of every kind of deletion against which the guard has nothing.
func goods() map[string]*gate.Facts {
	untiered := good()
	untiered.Log.State, untiered.Table.Tiering = tier.Disabled, false
	untiered.Safety.Proof, untiered.Safety.EpochCurrent = gate.Proof{}, tier.Unknown
	untiered.Safety.Remote.Clocks = tier.Yes
	object := func(a tier.Action) *gate.Facts {
		f := good()
		f.Action, f.Seg.Object = a, "ledger/logs/orders/0/00000001/attempt/"
		f.Safety = gate.SafetyFacts{NotPaused: tier.Yes, Brake: f.Safety.Brake,
			Window: f.Safety.Window, Remote: gate.RemoteSafety{Clocks: tier.Yes, LedgerKnows: tier.Yes}}
		return f
	}
	leaving := object(tier.DeleteRemote)
	leaving.Safety.Remote.Logical, leaving.Safety.Remote.Oldest = true, tier.Yes
	remote := object(tier.DeleteRemote)
	remote.Safety.Remote.OutOfLog, remote.Safety.Remote.GraceOver = tier.Yes, tier.Yes
	disable := object(tier.DisableDelete)
	disable.Log.State, disable.Table.DisablePolicy = tier.Disabling, tier.PolicyDelete
	disable.Safety.Remote.OutOfLog, disable.Safety.Remote.GraceOver = tier.Yes, tier.Yes
	orphan := object(tier.DeleteOrphan)
	orphan.Safety.Remote.Unnamed, orphan.Safety.Remote.OldEnough = tier.Yes, tier.Yes
	records := good()
	records.Safety.DropWay, records.Safety.OwnsSource = tier.LocalDeleteRecords, tier.No
	records.Safety.Owner = gate.OwnerFacts{Asked: tier.Yes, SameLog: tier.Yes, Leads: tier.Yes,
		Deletes: tier.Yes, Begins: tier.Yes, Covers: tier.Yes, Lineage: tier.Yes}
	return map[string]*gate.Facts{"local": good(), "local, not tiered": untiered, "records": records,
		"leaving the log": leaving, "remote": remote, "disable": disable, "orphan": orphan}
}

func TestGoodFactsOfEveryKind(t *testing.T) {
	t.Parallel()
	for name, f := range goods() {
		if got := gate.Guard(f); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestGuardObjectsToRemoteFacts turns one fact of a deletion from the store at a time.
func TestGuardObjectsToRemoteFacts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, name string
		want       tier.Code
		change     func(*gate.Facts)
	}{
		{"local, not tiered", "clocks", tier.CodeClock, func(f *gate.Facts) {
			f.Safety.Remote.Clocks = tier.No
		}},
		{"leaving the log", "oldest", tier.CodePrefixBlocked, func(f *gate.Facts) {
			f.Safety.Remote.Oldest = tier.Unknown
		}},
		{"leaving the log", "brake", tier.CodeBrake, func(f *gate.Facts) { f.Safety.Window.Segments++ }},
		{"leaving the log", "clocks", tier.CodeClock, func(f *gate.Facts) {
			f.Safety.Remote.Clocks = tier.Unknown
		}},
		{"remote", "out of log", tier.CodePrefixBlocked, func(f *gate.Facts) {
			f.Safety.Remote.OutOfLog = tier.No
		}},
		{"remote", "grace", tier.CodeGrace, func(f *gate.Facts) { f.Safety.Remote.GraceOver = tier.No }},
		{"remote", "ledger", tier.CodeLedgerStale, func(f *gate.Facts) {
			f.Safety.Remote.LedgerKnows = tier.No
		}},
		{"remote", "object", tier.CodeNotProved, func(f *gate.Facts) { f.Seg.Object = "" }},
		{"remote", "range", tier.CodeNotProved, func(f *gate.Facts) { f.Seg.Range.Next = 0 }},
		{"orphan", "object", tier.CodeNotProved, func(f *gate.Facts) { f.Seg.Object = "" }},
		{"disable", "state", tier.CodeTierState, func(f *gate.Facts) { f.Log.State = tier.Enabled }},
		{"disable", "policy", tier.CodeTierState, func(f *gate.Facts) {
			f.Table.DisablePolicy = tier.PolicyRetain
		}},
		{"orphan", "named", tier.CodeNotProved, func(f *gate.Facts) {
			f.Safety.Remote.Unnamed = tier.Unknown
		}},
		{"orphan", "young", tier.CodeGrace, func(f *gate.Facts) { f.Safety.Remote.OldEnough = tier.No }},
		{"orphan", "paused", tier.CodePaused, func(f *gate.Facts) { f.Safety.NotPaused = tier.No }},
	} {
		f := goods()[c.kind]
		c.change(f)
		demand(t, c.kind+": "+c.name, f, c.want)
	}
}

// set changes the truth at a dotted path below Facts.Safety.
func set(t *testing.T, f *gate.Facts, path string, truth tier.Truth) {
	t.Helper()
	v := reflect.ValueOf(&f.Safety).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if v = v.FieldByName(name); !v.IsValid() {
			t.Fatalf("the safety facts have no %s", path)
		}
	}
	v.Set(reflect.ValueOf(truth))
}

// demand wants just one objection, of the code.
func demand(t *testing.T, name string, f *gate.Facts, want tier.Code) {
	t.Helper()
	got := gate.Guard(f)
	if len(got) != 1 || got[0].Code != want || got[0].Text == "" {
		t.Errorf("%s: %+v, want one objection %s", name, got, want)
	}
}

// TestGuardObjectsToTruths turns one truth at a time from yes to unknown and to no, and demands
// just the objection that belongs to it.
func TestGuardObjectsToTruths(t *testing.T) {
	t.Parallel()
	for path, codes := range map[string]struct{ unknown, no tier.Code }{
		"Closed":         {tier.CodeActiveSegment, tier.CodeActiveSegment},
		"FirstLocal":     {tier.CodePrefixBlocked, tier.CodePrefixBlocked},
		"EpochCurrent":   {tier.CodeTierEpoch, tier.CodeTierEpoch},
		"SourceWhole":    {tier.CodeSourceUnread, tier.CodeSourceUnread},
		"NotPaused":      {tier.CodePaused, tier.CodePaused},
		"OwnsSource":     {tier.CodeSourceInUse, tier.CodeSourceInUse},
		"Proof.Recorded": {tier.CodeNotCopied, tier.CodeNotCopied},
		"Proof.Identity": {tier.CodeChanged, tier.CodeChanged},
		"Proof.Manifest": {tier.CodeNotProved, tier.CodeStoreLost},
		"Proof.Objects":  {tier.CodeNotProved, tier.CodeStoreLost},
		"Proof.Sound":    {tier.CodeNotProved, tier.CodeStoreLost},
		"Proof.Lineage":  {tier.CodeLineage, tier.CodeLineage},
	} {
		f := good()
		set(t, f, path, tier.Unknown)
		demand(t, path+" unknown", f, codes.unknown)
		f = good()
		set(t, f, path, tier.No)
		demand(t, path+" no", f, codes.no)
	}
	if got := gate.Guard(good()); len(got) > 0 {
		t.Errorf("good facts: %v", got)
	}
}

// TestGuardObjectsToFacts is the same for whatever is no truth.
func TestGuardObjectsToFacts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		want   tier.Code
		change func(*gate.Facts)
	}{
		{"no time", tier.CodeClock, func(f *gate.Facts) { f.Now = 0 }},
		{"no inode", tier.CodeNotProved, func(f *gate.Facts) { f.Seg.File.Inode = 0 }},
		{"empty", tier.CodeNotProved, func(f *gate.Facts) { f.Seg.Range.Base = f.Seg.Range.Next }},
		{"watermark", tier.CodeHighWatermark, func(f *gate.Facts) { f.Log.HighWatermark = 99 }},
		{"copied", tier.CodeNotCopied, func(f *gate.Facts) { f.Log.Copied = 99 }},
		{"tiering", tier.CodeTierState, func(f *gate.Facts) { f.Table.Tiering = false }},
		{"no state", tier.CodeTierState, func(f *gate.Facts) { f.Log.State = "" }},
		{"no way", tier.CodeLocalDelete, func(f *gate.Facts) { f.Safety.DropWay = "" }},
		{"never", tier.CodeLocalDelete, func(f *gate.Facts) {
			f.Safety.DropWay = tier.LocalDeleteNever
		}},
		{"brake, segments", tier.CodeBrake, func(f *gate.Facts) { f.Safety.Window.Segments++ }},
		{"brake, bytes", tier.CodeBrake, func(f *gate.Facts) { f.Safety.Window.Bytes++ }},
		{"below the start", tier.CodeBelowStart, func(f *gate.Facts) { f.Log.EpochStart = 1 }},
		{"changelog", tier.CodeLocalDelete, func(f *gate.Facts) { f.Safety.Changelog = true }},
		{"no brake", tier.CodeBrake, func(f *gate.Facts) { f.Safety.Brake = tier.Brake{} }},
		{"no action", tier.CodeTierState, func(f *gate.Facts) { f.Action = "" }},
	} {
		f := good()
		c.change(f)
		demand(t, c.name, f, c.want)
	}
}

// TestGuardObjectsToTheOwner: where the broker is to delete, each condition of its own is needed.
func TestGuardObjectsToTheOwner(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]tier.Code{
		"Owner.Asked":   tier.CodeBroker,
		"Owner.SameLog": tier.CodeOtherLog,
		"Owner.Leads":   tier.CodeNotLeader,
		"Owner.Deletes": tier.CodeBroker,
		"Owner.Begins":  tier.CodePrefixBlocked,
		"Owner.Covers":  tier.CodeSourceUnread,
		"Owner.Lineage": tier.CodeLineage,
	} {
		for _, truth := range []tier.Truth{tier.Unknown, tier.No} {
			f := goods()["records"]
			set(t, f, path, truth)
			demand(t, path, f, want)
		}
	}
	given := goods()["records"]
	given.Safety.Owner.Given = true
	demand(t, "given up", given, tier.CodeDropping)
	off := goods()["records"]
	off.Log.State, off.Table.Tiering = tier.Disabled, false
	off.Safety.Remote.Clocks = tier.Yes
	demand(t, "tiering off", off, tier.CodeLocalDelete)
	seen := goods()["records"]
	seen.Safety.Owner.Leads, seen.Safety.Owner.Objection = tier.No, "node 2 leads"
	if got := gate.Guard(seen); !strings.Contains(got[0].Text, "node 2 leads") {
		t.Errorf("%+v", got)
	}
}

// TestGuardLooksAtEveryTruth finds the truths by reflection, so that none that is added later goes
// unasked: whatever is yes in the good facts of a kind of deletion is something that this kind
// needs. Those of the table are what its owner declares, not what was found out.
func TestGuardLooksAtEveryTruth(t *testing.T) {
	t.Parallel()
	found := 0
	var visit func(path []int, typ reflect.Type)
	visit = func(path []int, typ reflect.Type) {
		for i := range typ.NumField() {
			at := append(append([]int{}, path...), i)
			switch ft := typ.Field(i).Type; {
			case ft == reflect.TypeFor[tier.Truth]():
				found++
				for _, truth := range []tier.Truth{tier.Unknown, tier.No} {
					asked := false
					for kind, f := range goods() {
						is := reflect.ValueOf(f).Elem().FieldByIndex(at)
						if is.Interface() != tier.Yes {
							continue
						}
						asked = true
						is.Set(reflect.ValueOf(truth))
						if len(gate.Guard(f)) == 0 {
							t.Errorf("%s, %s %s: nothing against it", kind, typ.Field(i).Name, truth)
						}
					}
					if !asked {
						t.Errorf("%s: no deletion needs it", typ.Field(i).Name)
					}
				}
			case ft.Kind() == reflect.Struct && ft != reflect.TypeFor[tier.Table]():
				visit(at, ft)
			}
		}
	}
	visit(nil, reflect.TypeFor[gate.Facts]())
	if found < 18 {
		t.Errorf("found %d truths", found)
	}
}

// TestNothingKnown: the zero facts, with the action alone, have every objection of the guard.
func TestNothingKnown(t *testing.T) {
	t.Parallel()
	got := gate.Guard(&gate.Facts{Action: tier.DeleteLocal})
	codes := map[tier.Code]bool{}
	for _, r := range got {
		codes[r.Code] = true
	}
	for _, c := range []tier.Code{tier.CodeClock, tier.CodeNotProved, tier.CodeSourceUnread,
		tier.CodeActiveSegment, tier.CodePrefixBlocked, tier.CodeTierState, tier.CodeLocalDelete,
		tier.CodeSourceInUse, tier.CodePaused} {
		if !codes[c] {
			t.Errorf("no objection %s in %v", c, got)
		}
	}
}

// TestGuardLetsGo: what the guard has nothing against, beside the good facts.
func TestGuardLetsGo(t *testing.T) {
	t.Parallel()
	plain := good()
	plain.Log.HasHighWatermark, plain.Log.HighWatermark = false, 0
	outstanding := goods()["disable"]
	outstanding.Log.State = tier.Disabled
	for name, f := range map[string]*gate.Facts{"a log without a high watermark": plain,
		"what was denied when the table was disabled": outstanding} {
		if got := gate.Guard(f); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestPauseIsToldInItsOwnWords: whoever paused said why, and until when.
func TestPauseIsToldInItsOwnWords(t *testing.T) {
	t.Parallel()
	f := good()
	f.Safety.NotPaused = tier.No
	f.Safety.Pause = &tier.Reason{Code: tier.CodeClock, Text: "paused by hand", Until: 9}
	demand(t, "paused", f, tier.CodeClock)
	yes := policies(func() (gate.Decision, error) { return gate.Decision{}, nil })
	if v := gate.New(yes).Judge(context.Background(), f); v.Delete || v.Due != 9 {
		t.Errorf("%+v, want due 9", v)
	}
	f.Safety.Pause.Until = 0
	if v := gate.New(yes).Judge(context.Background(), f); v.Due != 0 {
		t.Errorf("%+v, want no due time", v)
	}
}

// TestStoreThatWasNotAsked is not accused of having lost the copy.
func TestStoreThatWasNotAsked(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]tier.Code{"Identity": tier.CodeChanged,
		"Recorded": tier.CodeNotCopied} {
		f := good()
		f.Safety.Proof = gate.Proof{Recorded: tier.Yes, Identity: tier.Yes}
		set(t, f, "Proof."+path, tier.No)
		demand(t, path, f, want)
		f.Safety.Proof.Lineage = tier.No
		if got := gate.Guard(f); len(got) != 2 || got[1].Code != tier.CodeLineage {
			t.Errorf("%s, and another lineage: %+v", path, got)
		}
	}
}

// TestWhatWasNeverCopiedHasNoCopy has nothing said of a copy where there is none.
func TestWhatWasNeverCopiedHasNoCopy(t *testing.T) {
	t.Parallel()
	f := good()
	f.Safety.Proof, f.Safety.EpochCurrent = gate.Proof{Recorded: tier.No}, tier.Unknown
	demand(t, "never copied", f, tier.CodeNotCopied)
}

func TestObjectionSaysWhatWasSeen(t *testing.T) {
	t.Parallel()
	f := good()
	f.Safety.Proof.Objects, f.Safety.Proof.Objection = tier.No, "404 for 00000.log"
	if got := gate.Guard(f); !strings.Contains(got[0].Text, "404 for 00000.log") {
		t.Errorf("%+v", got)
	}
}

// policies is gate.Policies as a function.
type policies func() (gate.Decision, error)

func (p policies) Decide(context.Context, *gate.Facts) (gate.Decision, error) { return p() }

// TestAsk: the permit and the verdict agree, and whatever is not a clear yes keeps.
func TestAsk(t *testing.T) {
	t.Parallel()
	why := []tier.Reason{{Code: tier.CodeLocalTTL, Text: "over"}}
	for _, c := range []struct {
		name   string
		answer gate.Decision
		err    error
		want   tier.Code
		delete bool
	}{
		{"yes", gate.Decision{Delete: true, Reasons: why}, nil, tier.CodeLocalTTL, true},
		{"no", gate.Decision{Reasons: why, Due: now + 5}, nil, tier.CodeLocalTTL, false},
		{"no, and silent", gate.Decision{}, nil, tier.CodePolicyError, false},
		{"error", gate.Decision{}, errors.New("x.rego:3: broken"), tier.CodePolicyError, false},
		{"yes, late", gate.Decision{Delete: true}, errors.New("late"), tier.CodePolicyError, false},
	} {
		c.answer.Digest = "d"
		g := gate.New(policies(func() (gate.Decision, error) { return c.answer, c.err }))
		f := good()
		permit, v := g.Ask(context.Background(), f)
		if v.Delete != c.delete || v.Digest != "d" || len(v.Guard) > 0 {
			t.Errorf("%s: %+v", c.name, v)
		}
		if len(v.Reasons) != 1 || v.Reasons[0].Code != c.want {
			t.Errorf("%s: reasons %+v, want %s", c.name, v.Reasons, c.want)
		}
		if c.err != nil && !strings.Contains(v.Reasons[0].Text, c.err.Error()) {
			t.Errorf("%s: %q does not say what went wrong", c.name, v.Reasons[0].Text)
		}
		if c.err == nil && v.Due != c.answer.Due {
			t.Errorf("%s: due %s", c.name, v.Due)
		}
		if err := permit.Spend(f.Target()); (err == nil) != c.delete {
			t.Errorf("%s: spend: %v", c.name, err)
		}
	}
}

// TestPoliciesAreNotAskedAboveTheGuard: an objection of the guard ends the question.
func TestPoliciesAreNotAskedAboveTheGuard(t *testing.T) {
	t.Parallel()
	asked := false
	g := gate.New(policies(func() (gate.Decision, error) {
		asked = true
		return gate.Decision{Delete: true}, nil
	}))
	f := good()
	f.Safety.Closed = tier.Unknown
	permit, v := g.Ask(context.Background(), f)
	if asked || v.Delete || len(v.Guard) != 1 || len(v.Reasons) != 1 || v.Digest != "" {
		t.Errorf("asked %t, %+v", asked, v)
	}
	if permit.Spend(f.Target()) == nil {
		t.Error("the permit can be spent")
	}
}

// TestExplain: what the guard keeps is kept, and what the policies would say is said as well.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		guard  bool
		answer gate.Decision
		err    error
		want   []tier.Code
		delete bool
	}{
		{"yes", false, gate.Decision{Delete: true}, nil, nil, true},
		{"both keep", true, gate.Decision{Reasons: []tier.Reason{{Code: tier.CodeLocalTTL}}, Due: 5,
			Digest: "policies", Data: "data"}, nil,
			[]tier.Code{tier.CodeActiveSegment, tier.CodeLocalTTL}, false},
		{"the guard alone", true, gate.Decision{Delete: true,
			Reasons: []tier.Reason{{Code: tier.CodeLocalTTL}}}, nil,
			[]tier.Code{tier.CodeActiveSegment}, false},
		{"late", true, gate.Decision{Delete: true}, errors.New("late"),
			[]tier.Code{tier.CodeActiveSegment, tier.CodePolicyError}, false},
	} {
		g := gate.New(policies(func() (gate.Decision, error) { return c.answer, c.err }))
		f := good()
		if c.guard {
			f.Safety.Closed = tier.No
		}
		v := g.Explain(context.Background(), f)
		var got []tier.Code
		for _, r := range v.Reasons {
			got = append(got, r.Code)
		}
		if v.Delete != c.delete || !reflect.DeepEqual(got, c.want) || v.Due != c.answer.Due ||
			v.Digest != c.answer.Digest || v.Data != c.answer.Data {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

func TestNewNeedsPolicies(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	gate.New(nil)
}

func permitFor(f *gate.Facts) gate.Permit {
	yes := func() (gate.Decision, error) { return gate.Decision{Delete: true}, nil }
	permit, _ := gate.New(policies(yes)).Ask(context.Background(), f)
	return permit
}

func TestZeroPermitPermitsNothing(t *testing.T) {
	t.Parallel()
	for _, target := range []gate.Target{{}, good().Target()} {
		if err := (gate.Permit{}).Spend(target); err == nil {
			t.Errorf("%+v: spent", target)
		}
	}
}

// TestPermitIsForOneTarget: any other is refused, which does not use the permit up; the right one
// is granted once, also to copies of the permit.
func TestPermitIsForOneTarget(t *testing.T) {
	t.Parallel()
	f := good()
	permit := permitFor(f)
	for name, change := range map[string]func(*gate.Target){
		"action": func(x *gate.Target) { x.Action = tier.DeleteRemote },
		"table":  func(x *gate.Target) { x.Log.Table = "users" },
		"log":    func(x *gate.Target) { x.Log.Name = "1" },
		"base":   func(x *gate.Target) { x.Range.Base++ },
		"next":   func(x *gate.Target) { x.Range.Next++ },
		"object": func(x *gate.Target) { x.Object = "other" },
		"inode":  func(x *gate.Target) { x.File.Inode++ },
		"size":   func(x *gate.Target) { x.File.Size++ },
		"mtime":  func(x *gate.Target) { x.File.ModTime++ },
	} {
		other := f.Target()
		change(&other)
		if err := permit.Spend(other); err == nil {
			t.Errorf("%s: the permit serves another target", name)
		}
	}
	same := permit
	if err := permit.Spend(f.Target()); err != nil {
		t.Error(err)
	}
	if err := same.Spend(f.Target()); err == nil {
		t.Error("a copy of the permit was spent again")
	}
}

// TestPermitIsForTheFilesAsTheyWere: what was judged was these files, at this leader's term.
func TestPermitIsForTheFilesAsTheyWere(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*gate.Facts){
		"bytes": func(f *gate.Facts) { f.Seg.Bytes++ },
		"rest":  func(f *gate.Facts) { f.Seg.Rest++ },
		"term":  func(f *gate.Facts) { f.Safety.Owner.Term++ },
	} {
		f := good()
		permit := permitFor(f)
		change(f)
		if err := permit.Spend(f.Target()); err == nil {
			t.Errorf("%s: the permit serves another target", name)
		}
	}
}

func TestPermitIsSpentOnceByMany(t *testing.T) {
	t.Parallel()
	f := good()
	permit := permitFor(f)
	var granted atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				if permit.Spend(f.Target()) == nil {
					granted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := granted.Load(); n != 1 {
		t.Errorf("spent %d times", n)
	}
}

// TestAge: which timestamp is used, from both sides of every bound.
func TestAge(t *testing.T) {
	t.Parallel()
	const tolerance = 10
	for _, c := range []struct {
		max, mtime tier.Time
		age        tier.Time
		source     string
	}{
		{now - 5, now - 9, 5, "record"},
		{now, 0, 0, "record"},
		{now + tolerance, now - 9, 0, "record"},
		{now + tolerance + 1, now - 9, 9, "mtime"},
		{now + tolerance + 1, 0, 0, "none"},
		{0, now - 9, 9, "mtime"},
		{-1, now - 9, 9, "mtime"},
		{0, now + 9, 0, "mtime"},
		{0, 0, 0, "none"},
		{-1, -1, 0, "none"},
	} {
		s := gate.SegmentFacts{MaxTime: c.max, ModTime: c.mtime}
		if age, source := s.Age(now, tolerance); age != c.age || source != c.source {
			t.Errorf("max %d, mtime %d: %d by %s, want %d by %s",
				c.max-now, c.mtime-now, age, source, c.age, c.source)
		}
	}
}
