package objstore

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// positions is what a manifest holds, in short.
func positions(facts []tier.Fact) (out []tier.Position) {
	for _, f := range facts {
		out = append(out, f.Position)
	}
	return out
}

func (b *bench) manifest(t *testing.T) ([]tier.Fact, []Problem) {
	t.Helper()
	facts, problems, err := b.Manifest(t.Context(), orders)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.Contains(p.Err.Error(), p.Key) {
			t.Errorf("problem %v does not name its key %s", p.Err, p.Key)
		}
	}
	return facts, problems
}

func TestManifestOfNothing(t *testing.T) {
	t.Parallel()
	if facts, problems := newBench(t).manifest(t); len(facts) != 0 || len(problems) != 0 {
		t.Errorf("%v, %v", facts, problems)
	}
	facts, problems, err := overThanos(t).Manifest(t.Context(), orders)
	if len(facts) != 0 || len(problems) != 0 || err != nil {
		t.Errorf("over thanos: %v, %v, %v", facts, problems, err)
	}
}

func TestManifestOfEntries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	want := []tier.Fact{add(1), hole(2, 200, 300), add(3), start(9, 200), clip(10, 350)}
	b.published(t, want[3], want[0], want[4], want[2], want[1])
	// Another log, whose name begins alike.
	other := tier.LogID{Table: "orders", Name: "01"}
	if err := b.PutFact(t.Context(), other, attempt(4), add(4)); err != nil {
		t.Fatal(err)
	}
	if facts, problems := b.manifest(t); !reflect.DeepEqual(facts, want) || len(problems) != 0 {
		t.Errorf("%v, %v", facts, problems)
	}
}

func TestManifestOfCheckpointsAndEntries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var facts []tier.Fact
	for pos := range tier.Position(4096 + 2*64 + 5) {
		facts = append(facts, hole(pos, 1, 2))
	}
	b.published(t, facts...)
	for block := range uint64(4096/64 + 2) {
		b.checkpointed(t, 1, block, facts[block*64:(block+1)*64]...)
	}
	b.checkpointed(t, 2, 0, facts[:4096]...)
	before := b.faults.Calls()
	got, problems := b.manifest(t)
	if !reflect.DeepEqual(got, facts) || len(problems) != 0 {
		t.Errorf("%d facts of %d, problems %v", len(got), len(facts), problems)
	}
	// The list, one checkpoint of level 2, two of level 1, five entries.
	if n := b.faults.Calls() - before; n != 1+1+2+5 {
		t.Errorf("read in %d calls, want 9", n)
	}
}

// What a checkpoint stands for and does not hold was abandoned.
func TestManifestLeavesOutLateEntries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.published(t, add(1), add(2), add(64))
	b.checkpointed(t, 1, 0, add(1))
	facts, problems := b.manifest(t)
	if got := positions(facts); !slices.Equal(got, []tier.Position{1, 64}) || len(problems) != 0 {
		t.Errorf("positions %v, problems %v", got, problems)
	}
	// An empty checkpoint is one, too.
	b.checkpointed(t, 1, 1)
	if facts, _ := b.manifest(t); !slices.Equal(positions(facts), []tier.Position{1}) {
		t.Errorf("positions %v", positions(facts))
	}
}

func TestManifestWithDamage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.published(t, add(1), add(64), add(65), add(4096))
	b.checkpointed(t, 1, 0, add(1))
	b.checkpointed(t, 1, 1, add(64), add(65))
	b.checkpointed(t, 2, 0, add(1), add(64), add(65))
	key := func(level uint8, block uint64) string {
		key, err := b.keys.Checkpoint(orders, level, block)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	damage := func(key string, mangle func([]byte) []byte) {
		data, ok := b.mem.Object(key)
		if !ok {
			t.Fatalf("%s is not there", key)
		}
		b.mem.Put(key, mangle(data))
	}
	check := func(problems []Problem, want ...error) {
		t.Helper()
		if len(problems) != len(want) {
			t.Fatalf("problems %v, want %v", problems, want)
		}
		for i, p := range problems {
			if !errors.Is(p.Err, want[i]) {
				t.Errorf("problem %v, want %v", p.Err, want[i])
			}
		}
	}
	all := []tier.Position{1, 64, 65, 4096}

	// Below a damaged checkpoint the lower ones serve, and below those the entries.
	damage(key(2, 0), fault.Flip(200))
	facts, problems := b.manifest(t)
	check(problems, tier.ErrDamaged)
	if got := positions(facts); !slices.Equal(got, all) {
		t.Errorf("level 2 damaged: %v", got)
	}
	damage(key(1, 1), fault.Cut(200))
	facts, problems = b.manifest(t)
	check(problems, tier.ErrDamaged, tier.ErrDamaged)
	if got := positions(facts); !slices.Equal(got, all) {
		t.Errorf("level 1 damaged as well: %v", got)
	}
	// A damaged entry is missing then, and nothing else.
	damage(entryKey(t, b.Store, 65), fault.Flip(-10))
	facts, problems = b.manifest(t)
	check(problems, tier.ErrDamaged, tier.ErrDamaged, tier.ErrDamaged)
	if got := positions(facts); !slices.Equal(got, []tier.Position{1, 64, 4096}) {
		t.Errorf("an entry damaged as well: %v", got)
	}
	// A newer one says that it is newer.
	damage(entryKey(t, b.Store, 4096), func(data []byte) []byte {
		return bytes.Replace(data, []byte(`"version":1`), []byte(`"version":2`), 1)
	})
	facts, problems = b.manifest(t)
	check(problems, tier.ErrDamaged, tier.ErrDamaged, tier.ErrDamaged, tier.ErrNewer)
	if got := positions(facts); !slices.Equal(got, []tier.Position{1, 64}) {
		t.Errorf("a newer entry as well: %v", got)
	}
}

func TestManifestWithForeignObjects(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.published(t, add(1))
	dir, err := b.keys.Manifest(orders)
	if err != nil {
		t.Fatal(err)
	}
	one, _ := b.mem.Object(entryKey(t, b.Store, 1))
	stray, err := b.keys.Entry(orders, 2, attempt(9))
	if err != nil {
		t.Fatal(err)
	}
	b.mem.Put(dir+"README", []byte("hello"))
	b.mem.Put(dir+"old/x.json", one)
	b.mem.Put(dir+"L7-0000000000000000.json", one)
	b.mem.Put(stray, one) // a copy of another entry
	facts, problems := b.manifest(t)
	if got := positions(facts); !slices.Equal(got, []tier.Position{1}) {
		t.Errorf("positions %v", got)
	}
	var foreign, damaged int
	for _, p := range problems {
		if errors.Is(p.Err, ErrForeign) {
			foreign++
		} else if errors.Is(p.Err, tier.ErrDamaged) {
			damaged++
		}
	}
	if foreign != 3 || damaged != 1 || len(problems) != 4 {
		t.Errorf("problems %v", problems)
	}
}

// A ledger that was put back to an older state hands positions out again. Both facts count, since
// facts commute and objects are unique, but it is reported.
func TestManifestWithTwoEntriesAtOnePosition(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	again := add(1)
	again.Add.Attempt = attempt(99)
	b.published(t, add(1), add(2))
	if err := b.PutFact(t.Context(), orders, attempt(99), again); err != nil {
		t.Fatal(err)
	}
	facts, problems := b.manifest(t)
	if want := []tier.Fact{add(1), again, add(2)}; !reflect.DeepEqual(facts, want) {
		t.Errorf("facts %v", facts)
	}
	if len(problems) != 1 || !errors.Is(problems[0].Err, ErrSecondEntry) {
		t.Errorf("problems %v", problems)
	}
}

// Where an object cannot be read, what the manifest says is not known.
func TestManifestThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.published(t, add(1), add(2))
	nth := &fault.Nth{N: 2, Effect: fault.Effect{Err: fault.StatusError{Code: 503}}}
	b.faults.SetHook(nth.Hook)
	facts, _, err := b.Manifest(t.Context(), orders)
	if err == nil || facts != nil {
		t.Errorf("%v, %v", facts, err)
	}
	// Listed, but gone: that is an answer.
	nth = &fault.Nth{N: 2, Effect: fault.Effect{Err: fault.ErrNotFound}}
	b.faults.SetHook(nth.Hook)
	facts, problems := b.manifest(t)
	if len(facts) != 1 || len(problems) != 1 || !errors.Is(problems[0].Err, tier.ErrVanished) {
		t.Errorf("%v, %v", facts, problems)
	}
	// A list that lags behind hides what it hides, and invents nothing.
	hide := func(name string) bool { return name == entryKey(t, b.Store, 1) }
	b.faults.SetHook(fault.On(fault.OpIter, fault.Effect{Hide: hide}))
	if facts, problems := b.manifest(t); len(facts) != 1 || len(problems) != 0 {
		t.Errorf("%v, %v", facts, problems)
	}
}

// TestManifestPastWhatIsNotGiven: an entry that the store does not give is a problem, and the
// others are read, for those who want that; without it, any error is the end.
func TestManifestPastWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.published(t, add(1), add(2), add(3))
	key, err := b.keys.Entry(orders, 2, attempt(2))
	if err != nil {
		t.Fatal(err)
	}
	b.faults.SetHook(func(op fault.Op) fault.Effect {
		if op.Key == key {
			return fault.Effect{Err: fault.ErrDenied}
		}
		return fault.Effect{}
	})
	past := func(err error) error { return fmt.Errorf("%w: %w", tier.ErrUnread, err) }
	facts, problems, err := b.ManifestPast(t.Context(), orders, past)
	if err != nil || !slices.Equal(positions(facts), []tier.Position{1, 3}) || len(problems) != 1 ||
		problems[0].Key != key || !errors.Is(problems[0].Err, fault.ErrDenied) {
		t.Errorf("%v, %v, %v", facts, problems, err)
	}
	if facts, _, err := b.Manifest(t.Context(), orders); !errors.Is(err, fault.ErrDenied) {
		t.Errorf("%v, %v", facts, err)
	}
}

// Whichever facts are published, whichever complete blocks have checkpoints and whichever of these
// are damaged: reading gives every fact, and no late entry that a sound checkpoint stands for.
func TestManifestIsTheUnion(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(t)
		const end = 3 * 64
		abandoned := rapid.SliceOfDistinct(rapid.Uint64Range(0, end-1), rapid.ID[uint64]).
			Draw(t, "abandoned")
		var facts []tier.Fact
		late := map[tier.Position]bool{}
		for pos := range tier.Position(end) {
			if slices.Contains(abandoned, uint64(pos)) {
				late[pos] = rapid.Bool().Draw(t, "lands late")
			} else {
				facts = append(facts, hole(pos, 1, 2))
			}
			if f := hole(pos, 1, 2); late[pos] || !slices.Contains(abandoned, uint64(pos)) {
				b.published(t, f)
			}
		}
		covered := map[uint64]bool{}
		for _, level := range []uint8{1, 2} {
			for block := range blockOf(level, end-1) + 1 {
				var within []tier.Fact
				for _, f := range facts {
					if blockOf(level, f.Position) == block {
						within = append(within, f)
					}
				}
				what := rapid.SampledFrom([]string{"none", "sound", "damaged"}).Draw(t, "checkpoint")
				if what == "none" {
					continue
				}
				b.checkpointed(t, level, block, within...)
				if what == "damaged" {
					key, _ := b.keys.Checkpoint(orders, level, block)
					b.mem.Put(key, []byte("rotten"))
					continue
				}
				for pos := range tier.Position(end) {
					if blockOf(level, pos) == block {
						covered[uint64(pos)] = true
					}
				}
			}
		}
		var want []tier.Position
		for pos := range tier.Position(end) {
			if !slices.Contains(abandoned, uint64(pos)) || late[pos] && !covered[uint64(pos)] {
				want = append(want, pos)
			}
		}
		got, _, err := b.Manifest(t.Context(), orders)
		if err != nil || !slices.Equal(positions(got), want) {
			t.Fatalf("positions %v, %v; want %v", positions(got), err, want)
		}
	})
}
