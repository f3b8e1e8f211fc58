package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want tier.Code
	}{
		{ErrDamaged, tier.CodeDamaged},
		{fmt.Errorf("put x: %w", ErrChanged), tier.CodeChanged},
		{fmt.Errorf("get x: %w", ErrVanished), tier.CodeVanished},
		{errors.Join(ErrVanished, ErrDamaged), tier.CodeDamaged}, // the worse one
		{errOut, tier.CodeStoreError},
		{context.DeadlineExceeded, tier.CodeStoreError},
	} {
		if got := classify(c.err, tier.CodeStoreError); got.Code != c.want ||
			got.Text != c.err.Error() {
			t.Errorf("%v: got %+v, want %s", c.err, got, c.want)
		}
	}
}

func TestSameContent(t *testing.T) {
	t.Parallel()
	content := func(base tier.Offset, files ...tier.FileDigest) tier.Content {
		c := tier.Content{Range: tier.Range{Base: base, Next: base + 10}}
		for i, d := range files {
			stat := tier.Stat{Inode: uint64(i)} // never compared
			c.Files = append(c.Files, tier.SourceFile{FileDigest: d, Stat: stat})
		}
		return c
	}
	log := tier.FileDigest{Name: "0.log", Size: 5, SHA256: tier.SHA256{1}, CRC32C: 1}
	index := tier.FileDigest{Name: "0.index", Size: 2, SHA256: tier.SHA256{2}, CRC32C: 2}
	other, short, renamed := log, log, log
	other.SHA256[31]++
	short.Size--
	renamed.Name = "00.log"
	a := content(0, log, index)
	for name, b := range map[string]tier.Content{
		"another base":   content(10, log, index),
		"a file less":    content(0, log),
		"a file more":    content(0, log, index, index),
		"another order":  content(0, index, log),
		"other bytes":    content(0, other, index),
		"another size":   content(0, short, index),
		"another name":   content(0, renamed, index),
		"nothing at all": content(0),
	} {
		if sameContent(a, b) || sameContent(b, a) {
			t.Errorf("%s: taken for the same", name)
		}
	}
	if !sameContent(a, content(0, log, index)) {
		t.Error("the same content was not known again")
	}
	if sameContent(content(0), content(0)) {
		t.Error("two contents without files prove each other")
	}
}

func TestACopyIsOnRecordBeforeItsFirstByte(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(1)
	r.opened()
	r.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpIter {
			return fault.Effect{} // the look at the manifest, before anything is written
		}
		a, err := r.ledger.Attempt(orders, 0)
		if err != nil || !strings.Contains(op.Key, a.ID.String()) {
			t.Errorf("%s of %s, and the attempt on record is %s (%v)", op.Kind, op.Key, a.ID, err)
		}
		if now, ok := r.x.Attempt(2); !ok || now.ID != a.ID {
			t.Errorf("the executor names %+v as under way, want %s", now, a.ID)
		}
		return fault.Effect{}
	})
	r.copied(0)
	if _, ok := r.x.Attempt(2); ok {
		t.Error("the attempt is still said to be under way")
	}
}

// TestAFileThatChangesIsNotCopied changes the segment at each moment of its copy.
func TestAFileThatChangesIsNotCopied(t *testing.T) {
	t.Parallel()
	change := func(r *rig) { r.now++; r.write(fileName(0), "another content\n") }
	for name, c := range map[string]struct {
		at      func(*rig)
		attempt bool // an attempt was begun
	}{
		"before it is read": {change, false},
		"once it was read": {func(r *rig) {
			r.source.read = func() error { r.source.read = nil; change(r); return nil }
		}, true},
		"while it is uploaded": {func(r *rig) {
			r.bucket.SetHook(func(op fault.Op) fault.Effect {
				if op.Kind == fault.OpUpload {
					change(r)
				}
				return fault.Effect{}
			})
		}, true},
		"before it is looked at again": {func(r *rig) {
			r.bucket.SetHook(func(op fault.Op) fault.Effect {
				if op.Kind == fault.OpGetRange {
					change(r)
				}
				return fault.Effect{}
			})
		}, true},
		"a file comes to it": {func(r *rig) { r.write("00000000000000000000.sum", "sum") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.roll(1)
			r.opened()
			f := r.copyEffect(0)
			c.at(r)
			failed := want[engine.Failed](r, r.do(f))
			if failed.Reason.Code != tier.CodeChanged || (failed.Attempt != nil) != c.attempt {
				t.Errorf("got %+v, want it changed, with an attempt: %t", failed, c.attempt)
			}
			r.uncounted()
		})
	}
}

// uncounted expects that no copy counts.
func (r *rig) uncounted() {
	r.t.Helper()
	state, _ := r.ledger.Log(orders)
	facts, err := r.ledger.Facts(orders, 0, state.Next)
	r.must(err)
	if state.Copied != state.Start || len(facts) > 0 {
		r.t.Errorf("copied offset %d, facts %+v; want nothing copied", state.Copied, facts)
	}
}

// TestWhatTheStoreSaysIsChecked: an upload that the store calls done counts only if it is.
func TestWhatTheStoreSaysIsChecked(t *testing.T) {
	t.Parallel()
	cut, rot := fault.Effect{Mangle: fault.Cut(4)}, fault.Effect{Mangle: fault.Flip(2)}
	late := fault.Effect{Late: true}
	for name, c := range map[string]struct {
		key    string
		effect fault.Effect
		code   tier.Code
	}{
		"a file that is cut":    {".log", cut, tier.CodeDamaged},
		"a file that rots":      {".log", rot, tier.CodeDamaged},
		"a file that is late":   {".log", late, tier.CodeVanished},
		"an entry that is cut":  {"manifest", cut, tier.CodeDamaged},
		"an entry that rots":    {"manifest", rot, tier.CodeDamaged},
		"an entry that is late": {"manifest", late, tier.CodeVanished},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.roll(1)
			r.opened()
			r.bucket.SetHook(func(op fault.Op) fault.Effect {
				if op.Kind == fault.OpUpload && strings.Contains(op.Key, c.key) {
					return c.effect
				}
				return fault.Effect{}
			})
			failed := want[engine.Failed](r, r.do(r.copyEffect(0)))
			if failed.Reason.Code != c.code || failed.Attempt == nil || failed.Quarantine {
				t.Errorf("got %+v, want %s with its attempt", failed, c.code)
			}
			r.uncounted()
		})
	}
}

// TestACopyOfAnAbandonedAttemptNeverCounts: a copy that hung was given up, looked at and abandoned;
// then it goes on, and comes to its end.
func TestACopyOfAnAbandonedAttemptNeverCounts(t *testing.T) {
	t.Parallel()
	for _, part := range []string{".log", "manifest"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.roll(1)
			r.opened()
			f := r.copyEffect(0)
			var attempt tier.Attempt
			hung := func(op fault.Op) fault.Effect {
				if op.Kind != fault.OpUpload || !strings.Contains(op.Key, part) {
					return fault.Effect{}
				}
				r.bucket.SetHook(nil)
				attempt, _ = r.x.Attempt(f.ID)
				resolve := engine.Resolve{ID: 4, Log: orders, Source: "wal", Attempt: attempt}
				if part == "manifest" { // its file is there: make the look fail to find it
					r.bucket.SetHook(fault.On(fault.OpAttributes,
						fault.Effect{Err: fault.ErrNotFound}))
				}
				want[engine.Abandoned](r, r.do(resolve))
				r.bucket.SetHook(nil)
				return fault.Effect{}
			}
			r.bucket.SetHook(hung)
			want[engine.Abandoned](r, r.do(f))
			r.uncounted()
			if !slices.ContainsFunc(r.tombstones(), func(x offsets.Tombstone) bool {
				return x.ID == attempt.ID
			}) {
				t.Error("the attempt has no tombstone")
			}
			again := engine.Resolve{ID: 5, Log: orders, Source: "wal", Attempt: attempt}
			want[engine.Abandoned](r, r.do(again))
			r.copied(0) // under another name
		})
	}
}

// TestALookThatFailsDecidesNothing: an attempt stays under way until the store has said of each of
// its objects whether it is there.
func TestALookThatFailsDecidesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		upload string // what did not arrive
		look   fault.OpKind
	}{
		"for the entry":             {"manifest", fault.OpGet},
		"at a file":                 {"manifest", fault.OpAttributes},
		"into a file":               {"manifest", fault.OpGetRange},
		"at a file that is missing": {".log", fault.OpAttributes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.roll(1)
			r.opened()
			r.bucket.SetHook(func(op fault.Op) fault.Effect {
				if op.Kind == fault.OpUpload && strings.Contains(op.Key, c.upload) {
					return fault.Effect{Err: errOut}
				}
				return fault.Effect{}
			})
			failed := want[engine.Failed](r, r.do(r.copyEffect(0)))
			resolve := engine.Resolve{ID: 4, Log: orders, Source: "wal", Attempt: *failed.Attempt}
			r.bucket.SetHook(fault.On(c.look, fault.Effect{Err: errOut}))
			again := want[engine.Failed](r, r.do(resolve))
			if again.Attempt == nil || again.Attempt.ID != failed.Attempt.ID {
				t.Errorf("got %+v, want the same attempt still under way", again)
			}
			if list := r.tombstones(); len(list) > 0 {
				t.Errorf("abandoned all the same: %+v", list)
			}
			r.bucket.SetHook(nil)
			if c.upload == ".log" {
				want[engine.Abandoned](r, r.do(resolve))
				return
			}
			want[engine.Copied](r, r.do(resolve))
		})
	}
}

// Damage is for an operator; whatever else keeps a segment from being read may pass.
func TestOnlyDamageIsQuarantined(t *testing.T) {
	t.Parallel()
	for err, quarantined := range map[error]bool{ErrDamaged: true, ErrChanged: false,
		ErrVanished: false, errOut: false} {
		r := newRig(t)
		r.roll(1)
		r.opened()
		f := r.copyEffect(0)
		r.source.read = func() error { return fmt.Errorf("read: %w", err) }
		failed := want[engine.Failed](r, r.do(f))
		whose := failed.Segment == f.Segment && failed.Attempt == nil
		if failed.Quarantine != quarantined || !whose {
			t.Errorf("%v: got %+v, want quarantine: %t", err, failed, quarantined)
		}
	}
}

// TestALossIsKnownByItsBytes: a damaged file whose loss was accepted blocks nothing, whatever its
// times and inode are now, and another one does. Where it cannot be read nobody knows yet.
func TestALossIsKnownByItsBytes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(1)
	r.opened()
	r.source.read = func() error { return fmt.Errorf("read: %w", ErrDamaged) }
	ev, why, err := r.x.AcceptLoss(context.Background(), "wal", orders, r.segment(0))
	if err := errors.Join(why, err); err != nil || ev.Segment != r.segment(0) {
		t.Fatalf("%+v, %v", ev, err)
	}
	if res := want[engine.LossKnown](r, r.do(r.copyEffect(0))); res.Segment != r.segment(0) {
		t.Errorf("got %+v", res)
	}
	data := []byte("segment 0\n")
	r.write(fileName(0), string(data)) // with another inode
	if s := r.segment(0); s.Log == ev.Segment.Log {
		t.Fatal("it is the same file")
	}
	want[engine.LossKnown](r, r.do(r.copyEffect(0)))
	data[0] ^= 1
	r.write(fileName(0), string(data))
	if f := want[engine.Failed](r, r.do(r.copyEffect(0))); !f.Quarantine {
		t.Errorf("other bytes: %+v, want it quarantined", f)
	}
	f := r.copyEffect(0)
	f.Segment.Log.ModTime++
	if f := want[engine.Failed](r, r.do(f)); f.Quarantine || f.Reason.Code != tier.CodeChanged {
		t.Errorf("changed meanwhile: %+v, want it tried again", f)
	}
}

func (r *rig) tombstones() []offsets.Tombstone {
	r.t.Helper()
	list, err := r.ledger.Tombstones(orders)
	r.must(err)
	return list
}

// A copy that was given up, and came to its end all the same before anybody looked, counts.
func TestACopyThatFinishedMeanwhileIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(1)
	r.opened()
	f := r.copyEffect(0)
	var attempt tier.Attempt
	r.bucket.SetHook(func(fault.Op) fault.Effect {
		attempt, _ = r.x.Attempt(f.ID)
		return fault.Effect{}
	})
	r.do(f)
	resolve := engine.Resolve{ID: 4, Log: orders, Source: "wal", Attempt: attempt}
	if c := want[engine.Copied](r, r.do(resolve)); c.Offset != 10 {
		t.Errorf("got %+v, want it copied up to 10", c)
	}
}

// A copy whose caller gave up while the segment was read begins no attempt that nobody hears of.
func TestACopyThatWasGivenUpBeginsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(1)
	r.opened()
	ctx, giveUp := context.WithCancel(context.Background())
	r.source.read = func() error { giveUp(); return nil }
	res, err := r.x.Do(ctx, r.copyEffect(0))
	r.must(err)
	if f := want[engine.Failed](r, res); f.Reason.Code != tier.CodeRetry || f.Attempt != nil {
		t.Errorf("got %+v, want it tried again, without an attempt", f)
	}
	if state, _ := r.ledger.Log(orders); state.Next != 0 {
		t.Errorf("%d positions were handed out, want none", state.Next)
	}
}

// A look at the source that fails decides nothing about an attempt.
func TestALookThatFailsAbandonsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(1)
	r.opened()
	r.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpUpload && strings.Contains(op.Key, "/manifest/") {
			return fault.Effect{Err: errOut}
		}
		return fault.Effect{}
	})
	failed := want[engine.Failed](r, r.do(r.copyEffect(0)))
	r.bucket.SetHook(nil)
	resolve := engine.Resolve{ID: 4, Log: orders, Source: "wal", Attempt: *failed.Attempt}
	r.source.read = func() error { return errOut }
	if f := want[engine.Failed](r, r.do(resolve)); f.Attempt == nil || len(r.tombstones()) > 0 {
		t.Fatalf("got %+v, want the attempt to stay", f)
	}
	r.source.read = nil
	want[engine.Copied](r, r.do(resolve))
}

// What a call that was given up removed first is removed; what is still part of the log is not.
func TestARemovalIsRecordedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(1)
	r.opened()
	pos := r.copied(0)
	ctx := context.Background()
	if err := r.x.recordRemoved(ctx, orders, pos); !errors.Is(err, ErrRefused) {
		t.Errorf("a copy in the log: got %v, want an error that ends the process", err)
	}
	_, err := r.ledger.Append(ctx, tier.StartMoved{Log: orders, Start: 10, At: r.now,
		Expired: tier.RangeSet{{Base: 0, Next: 10}}, Cause: tier.MoveExpired})
	r.must(err)
	for range 2 {
		r.must(r.x.recordRemoved(ctx, orders, pos))
	}
}

// TestAHoleIsLookedForAgain: what is there after all is no hole.
func TestAHoleIsLookedForAgain(t *testing.T) {
	t.Parallel()
	hole := func(r *rig) engine.RecordHole {
		return engine.RecordHole{ID: 6, Log: orders, Source: "wal", Cause: tier.HoleSourceGone,
			Range: tier.Range{Base: 0, Next: 10}}
	}
	for name, c := range map[string]struct {
		spoil func(*rig)
		code  tier.Code
	}{
		"it is there": {func(*rig) {}, tier.CodeRetry},
		"nobody can look": {func(r *rig) {
			r.source.look = func() error { return errOut }
		}, tier.CodeSourceUnread},
		"the log is gone": {func(r *rig) {
			r.must(r.disk.Rename("wal/orders/0", "wal/orders/1"))
		}, tier.CodeVanished},
		"nothing is there": {func(r *rig) {
			r.source.seen = func(s *tier.Scan) { s.Segments = nil }
		}, tier.CodeSourceUnread},
		"not everything can be read": {func(r *rig) {
			r.must(r.disk.Symlink("x", "wal/orders/0/"+fileName(5)))
		}, tier.CodeSourceUnread},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.roll(1)
			r.opened()
			c.spoil(r)
			if f := want[engine.Failed](r, r.do(hole(r))); f.Reason.Code != c.code {
				t.Errorf("got %+v, want %s", f, c.code)
			}
			if state, _ := r.ledger.Log(orders); len(state.Holes) > 0 {
				t.Errorf("recorded all the same: %+v", state.Holes)
			}
		})
	}
	t.Run("it is gone", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.roll(1)
		r.opened()
		r.must(r.disk.Remove("wal/orders/0/" + fileName(0)))
		if h := want[engine.HoleDone](r, r.do(hole(r))); h.Offset != 10 || !h.Published {
			t.Errorf("got %+v, want the hole published and passed", h)
		}
	})
}

// TestAHoleIsNotAnother: one is on record, and what is missing behind it is not.
func TestAHoleIsNotAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(3)
	r.opened()
	for i, base := range []tier.Offset{0, 10} {
		r.must(r.disk.Remove("wal/orders/0/" + fileName(base)))
		h := want[engine.HoleDone](r, r.do(engine.RecordHole{ID: 6, Log: orders, Source: "wal",
			Cause: tier.HoleSourceGone, Range: tier.Range{Base: base, Next: base + 10}}))
		if state, _ := r.ledger.Log(orders); h.Hole.Base != base || len(state.Holes) != i+1 {
			t.Errorf("%+v; on record are %+v", h, state.Holes)
		}
	}
}

// A hole may be on record already, by a call that was given up while it asked the store: it is
// done, once, and published if it is not yet.
func TestAHoleOfACallThatWasGivenUpIsDone(t *testing.T) {
	t.Parallel()
	for _, published := range []bool{true, false} {
		r := newRig(t)
		r.roll(1)
		r.opened()
		r.must(r.disk.Remove("wal/orders/0/" + fileName(0)))
		f := engine.RecordHole{ID: 6, Log: orders, Source: "wal", Cause: tier.HoleSourceGone,
			Range: tier.Range{Base: 0, Next: 10}}
		if !published {
			r.bucket.SetHook(fault.On(fault.OpUpload, fault.Effect{Err: errOut}))
		}
		first := want[engine.HoleDone](r, r.do(f))
		again := want[engine.HoleDone](r, r.do(f))
		if published {
			again.Position = first.Position // there is nothing left to publish
		}
		if again != first {
			t.Errorf("published %t: got %+v, want %+v again", published, again, first)
		}
		if state, _ := r.ledger.Log(orders); len(state.Holes) != 1 {
			t.Errorf("published %t: holes %+v, want one", published, state.Holes)
		}
	}
}

// TestALedgerThatFailsEndsTheProcess: after an error of a commit nothing is known to be durable, so
// none of the effects may answer as if it were.
func TestALedgerThatFailsEndsTheProcess(t *testing.T) {
	t.Parallel()
	for name, effect := range map[string]func(*rig) engine.Effect{
		"open":  func(r *rig) engine.Effect { return r.openEffect() },
		"copy":  func(r *rig) engine.Effect { r.opened(); return r.copyEffect(0) },
		"pause": func(r *rig) engine.Effect { r.opened(); return engine.Pause{Table: "orders"} },
		"delete": func(r *rig) engine.Effect {
			r.opened()
			return r.deleteEffect(r.copied(0))
		},
		"delete what was touched": func(r *rig) engine.Effect {
			r.opened()
			f := r.deleteEffect(r.copied(0))
			r.now++
			r.write(fileName(0), "segment 0\n")
			return f
		},
		"resolve": func(r *rig) engine.Effect {
			r.opened()
			r.bucket.SetHook(fault.On(fault.OpUpload, fault.Effect{Err: errOut}))
			failed := want[engine.Failed](r, r.do(r.copyEffect(0)))
			r.bucket.SetHook(nil)
			return engine.Resolve{Log: orders, Source: "wal", Attempt: *failed.Attempt}
		},
		"record a hole": func(r *rig) engine.Effect {
			r.opened()
			r.must(r.disk.Remove("wal/orders/0/" + fileName(0)))
			return engine.RecordHole{Log: orders, Source: "wal", Cause: tier.HoleSourceGone,
				Range: tier.Range{Base: 0, Next: 10}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, how := range []offsets.Fault{offsets.FailBefore, offsets.FailAfter} {
				r := newRig(t)
				r.roll(1)
				f := effect(r)
				r.medium.Inject(func(uint64) offsets.Fault { return how })
				if res, err := r.x.Do(context.Background(), f); err == nil {
					t.Errorf("got %T %+v, want an error", res, res)
				} else if strings.Count(err.Error(), "ledger") != 1 {
					t.Errorf("%v: want the ledger named once", err)
				}
				if _, err := r.x.Do(context.Background(), r.openEffect()); err == nil {
					t.Error("the next effect went well: want an error for ever")
				}
			}
		})
	}
}

// An audit log that cannot be written ends the process too, and nothing is deleted.
func TestAnAuditLogThatFailsEndsTheProcess(t *testing.T) {
	t.Parallel()
	r, f := ready(t)
	r.audit.intend = func() error { return errOut }
	if res, err := r.x.Do(context.Background(), f); err == nil {
		t.Errorf("got %+v, want an error", res)
	}
	if !r.there(fileName(0)) {
		t.Error("the segment went without a record")
	}
}

// TestACopyThatWasGivenUpLeavesNoAttempt that nobody knows of: whoever gave it up before its
// attempt was on record cannot have it resolved.
func TestACopyThatWasGivenUpLeavesNoAttempt(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(*rig, func()){
		"while it reads": func(r *rig, giveUp func()) { r.source.read = giveUpAt(giveUp) },
		"while it asks the store": func(r *rig, giveUp func()) {
			r.bucket.SetHook(func(fault.Op) fault.Effect { giveUp(); return fault.Effect{} })
		},
		"while it is put on record": func(r *rig, giveUp func()) {
			r.medium.Inject(func(uint64) offsets.Fault { giveUp(); return offsets.NoFault })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.roll(1)
			r.opened()
			f := r.copyEffect(0)
			ctx, giveUp := context.WithCancel(context.Background())
			defer giveUp()
			at(r, giveUp)
			if res, err := r.x.Do(ctx, f); err != nil {
				t.Fatalf("got %+v, %v", res, err)
			}
			r.bucket.SetHook(nil)
			r.medium.Inject(nil)
			r.source.read = nil
			if a, err := r.ledger.Attempt(orders, 0); err == nil {
				t.Errorf("the attempt %+v is under way, and nobody knows of it", a)
			}
			r.uncounted()
			r.copied(0)
		})
	}
}
