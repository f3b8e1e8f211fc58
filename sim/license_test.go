package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// TestTheOracleSeesWhatNobodyWanted commits, in the world of TestTheOracleSees, what neither
// configuration nor operator allows of a table. The oracle has to say just that.
func TestTheOracleSeesWhatNobodyWanted(t *testing.T) {
	t.Parallel()
	const wanted, governs = "nor an operator wanted that", "no entry of the configuration governs"
	leave := func(r *rig) {
		r.appends(tier.TierChanged{Table: orders.Table, State: tier.Disabling, Epoch: 2,
			Policy: tier.PolicyDelete, At: r.w.Now})
	}
	for name, c := range map[string]struct {
		says   string
		commit func(*rig)
	}{
		"a table leaves that is tiered": {wanted, leave},
		"a table leaves whose remote data were to be retained": {wanted, func(r *rig) {
			r.tables(func(t *tier.Table) { t.Tiering, t.DisablePolicy = false, tier.PolicyRetain })
			leave(r)
		}},
		"a table leaves after that was taken back": {wanted, func(r *rig) {
			r.tables(func(t *tier.Table) { t.Tiering, t.DisablePolicy = false, tier.PolicyDelete })
			r.w.process.queue = nil
			r.tables(func(*tier.Table) {})
			leave(r)
		}},
		"a table is dropped that an entry governs": {wanted, func(r *rig) {
			r.appends(tier.TableDropped{Table: orders.Table, At: r.w.Now})
		}},
		"a table is dropped, and what an operator wanted of it failed": {wanted, func(r *rig) {
			r.ungoverned()
			r.w.Watch = func(Point) Fate { return Fail }
			if err := r.w.Drop(orders.Table); err == nil {
				r.t.Fatal("the ledger does not fail")
			}
			r.w.Watch = nil
			r.w.Kill()
			r.do(r.w.Start())
			r.appends(tier.TableDropped{Table: orders.Table, At: r.w.Now})
		}},
		"a copy is begun of a table without an entry": {governs, func(r *rig) {
			r.ungoverned()
			r.performs(func() { r.uploading() })
		}},
		"the start of a table without an entry moves": {governs, func(r *rig) {
			r.w.Advance(8 * 24 * time.Hour)
			r.ungoverned()
			r.performs(func() { r.movesStart(10) })
		}},
		"an object of a table without an entry goes": {governs, func(r *rig) {
			r.expired(7 * 24 * time.Hour)
			r.w.Advance(time.Hour)
			r.ungoverned()
			r.performs(func() { r.deletes(r.object(0)) })
		}},
		"a segment of a table without an entry goes": {"no entry governs", func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.ungoverned()
			r.announce(0)
			r.drops(0)
		}},
		"a table falls to the defaults, and the ledger forgets its entry": {"no entry governs",
			func(r *rig) {
				governs := func(entry string) {
					r.tables(func(t *tier.Table) { t.Governor = entry })
					r.appends(tier.TableGoverned{Table: orders.Table, Entry: entry, At: r.w.Now})
				}
				governs("tables/orders")
				governs("defaults")
				r.w.Advance(2 * time.Hour)
				r.announce(0)
				r.drops(0)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := judged(t, c.commit)
			if !slices.ContainsFunc(said, func(v Violation) bool {
				return v.Property == Gated && strings.Contains(v.Text, c.says)
			}) {
				t.Errorf("the oracle says %v, want %q", said, c.says)
			}
		})
	}
}

// performs lets something happen as a part of an effect that the settings in force decided.
func (r *rig) performs(do func()) {
	r.w.current = &call{effect: engine.Copy{ID: r.w.emitted + 1}, generation: r.w.generation}
	do()
	r.w.current = nil
}

// TestAFrozenTable: nothing of it is copied or deleted, also not in a new process, until it has an
// entry again; once it was dropped its remote data go, and it begins anew when it comes back.
func TestAFrozenTable(t *testing.T) {
	t.Parallel()
	for _, p := range []*Project{plainProject(t), kafkaProject(t)} {
		for _, gone := range []string{"none", "the defaults"} {
			day := "time: passes, and the process runs; time: a day"
			entry := func(name string) string {
				return "settings: change the entry of a table; entry: " + name
			}
			out := scripted(t, p, entry("one of its own"), "owner: rolls", "process: runs", // 3
				entry(gone), "owner: rolls", day, "stop: cleanly", day, // 8
				entry("one of its own"), day, // 10
				entry(gone), "operator: drops a table; table: orders", "process: runs", day, // 14
				entry("as it was"), "owner: rolls", "process: runs", day) // 18
			if out.Violation != nil {
				t.Fatalf("%s, %s: %s", p.Config.Layout, gone, out.Violation)
			}
			frozen, was := after(t, out, 8), after(t, out, 3)
			if frozen.Copied != was.Copied || frozen.Local[0] != was.Local[0] {
				t.Errorf("%s, %s: frozen it stands at %+v, and stood at %+v", p.Config.Layout, gone,
					frozen, was)
			}
			if l := after(t, out, 10); l.Copied == was.Copied || l.Local[0] == was.Local[0] {
				t.Errorf("%s, %s: with its entry it stands at %+v, want it copied and gone",
					p.Config.Layout, gone, l)
			}
			if l := after(t, out, 14); len(l.Remote) > 0 || l.State == tier.Disabling {
				t.Errorf("%s, %s: dropped it stands at %+v, want nothing remote", p.Config.Layout, gone, l)
			}
			l := after(t, out, 18)
			if l.State != tier.Enabled || len(l.Remote) == 0 || out.Met[Dropped] != 1 {
				t.Errorf("%s, %s: it came back, and stands at %+v, want it tiered anew", p.Config.Layout,
					gone, l)
			}
		}
	}
}
