package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// mark is the key of the newest entry that is of no copy.
func (r *rig) mark() (key string) {
	r.t.Helper()
	for _, k := range r.w.Objects.Keys() {
		if strings.Contains(k, "manifest/") && strings.Contains(k, "-"+strings.Repeat("0", 32)) {
			key = k
		}
	}
	if key == "" {
		r.t.Fatalf("no mark in %v", r.w.Objects.Keys())
	}
	return key
}

// TestTheOracleSeesWhatIsNotSaidAgain commits, in the world of TestTheOracleSees, what a scrub must
// not leave undone, or do.
func TestTheOracleSeesWhatIsNotSaidAgain(t *testing.T) {
	t.Parallel()
	week := 7 * 24 * time.Hour
	seen(t, map[string]crime{
		"a lost entry is not said again": {CopiedSound, func(r *rig) {
			r.w.Lose(r.entry())
			r.oracle.mended(orders)
		}},
		"an entry that rotted is not said again": {CopiedSound, func(r *rig) {
			r.w.Rot(r.entry())
			r.oracle.mended(orders)
		}},
		"a lost mark is not said again": {Settled, func(r *rig) {
			r.expired(week)
			r.w.Lose(r.mark())
			r.oracle.mended(orders)
			r.oracle.Quiet()
		}},
		"an object goes, and no scrub has said again where the log starts": {StartFirst, func(r *rig) {
			r.expired(week)
			r.w.Lose(r.mark())
			r.oracle.mended(orders)
			r.w.Advance(10 * time.Minute)
			r.deletes(r.object(0))
		}},
		"an entry is said again of what left the log": {PersistBeforeAct, func(r *rig) {
			r.expired(week)
			key := r.entry()
			r.w.Lose(key)
			r.sees(Point{Place: InStore, Kind: string(fault.OpUpload), Name: key})
		}},
		"an entry is said again of an epoch that is over, before its log is in the next one": {
			PersistBeforeAct, func(r *rig) {
				r.leaves(tier.Disabling, tier.Disabled, tier.Enabled)
				r.sees(Point{Place: InStore, Kind: string(fault.OpUpload), Name: r.entry()})
			}},
		"an entry is said again at another position": {PersistBeforeAct, func(r *rig) {
			key := strings.Replace(r.entry(), "manifest/0000000000000000-", "manifest/0000000000000001-", 1)
			r.sees(Point{Place: InStore, Kind: string(fault.OpUpload), Name: key})
		}},
	})
}

// leaves makes steps of turning tiering off by delete, and on again. The last one does not bring
// the log into the new epoch.
func (r *rig) leaves(steps ...tier.TierState) {
	r.t.Helper()
	for _, s := range steps {
		change := tier.TierChanged{Table: orders.Table, State: s, Epoch: 2, At: r.w.Now,
			Policy: tier.PolicyDelete}
		if s == tier.Enabled {
			change.Epoch, change.Policy = 3, ""
		}
		r.appends(change)
	}
}

// TestALossIsAnExcuseUntilAScrub, and no more of one than that.
func TestALossIsAnExcuseUntilAScrub(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*rig){
		"an entry": func(r *rig) { r.w.Lose(r.entry()) },
		"one rots": func(r *rig) { r.w.Rot(r.entry()) },
		"a mark": func(r *rig) {
			r.expired(7 * 24 * time.Hour)
			r.w.Lose(r.mark())
		},
	} {
		if v := judged(t, lose); len(v) > 0 {
			t.Errorf("%s: %v", name, v)
		}
		if v := judged(t, func(r *rig) {
			lose(r)
			r.do(r.w.Scrub())
			if r.w.mended != 1 || len(r.oracle.lostKeys) > 0 {
				r.t.Errorf("%s: %d were said again; left are %v", name, r.w.mended, r.oracle.lostKeys)
			}
		}); len(v) > 0 {
			t.Errorf("%s, and a scrub: %v", name, v)
		}
	}
}

// TestWhatLeavesIsNotMissed: nobody says an entry again of what is about to leave its log, and none
// is asked for where the table tiers anew and the log is not in its epoch yet.
func TestWhatLeavesIsNotMissed(t *testing.T) {
	t.Parallel()
	if v := judged(t, func(r *rig) {
		r.oracle.leave[orders.Table] = true // as somebody wanted
		later := strings.Replace(r.entry(), "0000000000000000-", "0000000000000001-", 1)
		later = strings.Replace(later, "001.json", "002.json", 1)
		r.w.Lose(r.entry())
		r.leaves(tier.Disabling)
		r.do(r.w.Scrub())
		r.leaves(tier.Disabled, tier.Enabled)
		if _, there := r.w.Objects.Object(later); !there {
			r.t.Fatalf("no entry %s", later)
		}
		r.w.Lose(later)
		r.do(r.w.Scrub())
		if r.w.mended > 0 || len(r.oracle.lostKeys) > 0 {
			r.t.Errorf("%d were said again; left are %v", r.w.mended, r.oracle.lostKeys)
		}
	}); len(v) > 0 {
		t.Error(v)
	}
}

// withoutManifest leaves a log of copies, a hole and a checkpoint, and a store that lost all that
// was said of it.
func withoutManifest(r *rig) {
	r.copied(2)
	r.w.Kill()
	_, err := r.w.Rebuild() // which begins behind the first block
	r.do(err)
	r.start()
	r.do(r.w.Append(orders, 3))
	r.do(r.w.Remove(orders, 20))
	r.run()
	kinds := map[string]bool{}
	for _, key := range r.w.Objects.Keys() {
		if _, name, ok := strings.Cut(key, "manifest/"); ok {
			kinds[name[:2]] = true
			r.w.Lose(key)
		}
	}
	if state, _ := r.w.Ledger().Log(orders); len(kinds) != 2 || len(state.Holes) != 1 {
		r.t.Fatalf("lost are %v, holes %v; want a checkpoint, and a hole", kinds, state.Holes)
	}
}

// TestEveryStepOfAMend: at each call of the store the look fails, or the process or the machine
// stops. The next look finds what is still missing, and nothing of the log is another one.
func TestEveryStepOfAMend(t *testing.T) {
	t.Parallel()
	want, runs := "", 0
	play := func(n int, fate Fate, c crash) (fired bool) {
		r := newRig(t)
		withoutManifest(r)
		r.n, r.fate, r.armed = n, fate, true
		_ = r.w.Scrub() // whatever becomes of it shows in the world
		r.armed = false
		if r.w.Ended() != nil {
			r.restart(c)
		}
		r.do(r.w.Scrub())
		r.settle()
		at := disturbed{&history{name: "mend"}, Point{}, fate, c.name}
		if r.fired {
			at.point = r.met[n]
		}
		for _, v := range r.oracle.Violations() {
			t.Errorf("%s\n%s", at, v)
		}
		got := outcome(r.w) + "\n" + summary(r.w.storeNow(r.w.Ledger().ID()).listed(orders))
		if want == "" {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\nthe outcome is not the undisturbed one (-want +got):\n%s", at, diff)
		}
		runs++
		return r.fired
	}
	play(-1, Proceed, crashes[0])
	if strings.Count(want, "copy ") < 4 {
		t.Fatalf("the manifest says %s", want)
	}
	for n := 0; !t.Failed(); n++ {
		if !play(n, Fail, crashes[0]) {
			break
		}
		play(n, StopBefore, crashes[n%len(crashes)])
		play(n, StopAfter, crashes[(n+1)%len(crashes)])
		play(n, FailAfter, crashes[0])
	}
	if runs < 80 {
		t.Errorf("only %d runs", runs)
	}
}

// TestARebuildWithoutAnEntry: the store lost the entry of a copy, and then the ledger went. What is
// on disk is copied once more, under names of its own, and nothing of it counts twice.
func TestARebuildWithoutAnEntry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.copied(3)
	lost := r.entry()
	r.w.Lose(lost)
	before := r.object(0)
	data, _ := r.w.Objects.Object(before)
	r.w.Kill()
	_, err := r.w.Rebuild()
	r.do(err)
	r.start()
	r.run()
	r.do(r.w.Scrub())
	r.run()
	ledger, err := r.w.ledgerNow()
	r.do(err)
	l := ledger.log(orders)
	copies := 0
	for _, f := range l.facts {
		if f.Add != nil && l.counts(f.Add, ledger.table(orders.Table)) {
			copies++
		}
	}
	if copies != 3 || l.state.Copied != 30 {
		t.Errorf("%d copies up to %d, want 3 up to 30", copies, l.state.Copied)
	}
	if now, _ := r.w.Objects.Object(before); string(now) != string(data) {
		t.Errorf("%s is %q, was %q", before, now, data)
	}
	if _, there := r.w.Objects.Object(lost); there {
		t.Errorf("%s is there again, and no ledger knows it", lost)
	}
	var adds int
	for _, f := range r.w.storeNow(ledger.id).listed(orders) {
		if f.Add != nil && f.Add.Content.Range.Base == 0 {
			adds++
		}
	}
	if adds != 1 {
		t.Errorf("the manifest has %d copies of the segment, want 1", adds)
	}
	r.w.Advance(49 * time.Hour)
	r.settle()
	if v := r.oracle.Violations(); len(v) > 0 {
		t.Error(v)
	}
	if _, there := r.w.Objects.Object(before); there {
		t.Errorf("%s is an orphan, and still there", before)
	}
	if tier.Offset(0) != l.state.LogStart {
		t.Errorf("the log starts at %d", l.state.LogStart)
	}
}
