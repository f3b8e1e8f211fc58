package sim

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/read"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// crime is one that the oracle must see, as a breach of the property.
type crime struct {
	property Property
	commit   func(*rig)
}

// TestTheOracleSees commits each crime by hand, in a world where two segments are copied and the
// third is not: an oracle that never speaks shows nothing.
func TestTheOracleSees(t *testing.T) {
	t.Parallel()
	seen(t, map[string]crime{
		"an uncopied segment is unlinked": {NoUncopiedDelete, func(r *rig) {
			r.does(func() error { return r.w.Disk.Remove(SegmentPath(orders, 20)) })
		}},
		"an uncopied segment is dropped": {NoUncopiedDelete, func(r *rig) { r.drops(20) }},
		"a segment that rotted goes, and the store has nothing of it": {NoUncopiedDelete, func(r *rig) {
			r.do(r.w.Rots(orders, segmentName(20), rotBit, 0))
			r.does(func() error { return r.w.Disk.Remove(SegmentPath(orders, 20)) })
		}},
		"a closed segment is lost, and nobody saw it go": {NoUncopiedDelete, func(r *rig) {
			r.do(r.w.Disk.Remove(SegmentPath(orders, 20)))
			r.oracle.changed = true
		}},
		"a copied object is gone": {CopiedSound, func(r *rig) { r.w.Objects.Remove(r.object(0)) }},
		"a copied object rots": {CopiedSound, func(r *rig) {
			r.w.Objects.Put(r.object(0), []byte("orders/0 0 v9 \n"))
		}},
		"the copied offset runs ahead": {CopiedSound, func(r *rig) {
			r.appends(tier.HoleRecorded{Log: orders, Hole: tier.Hole{
				Range: tier.Range{Base: 20, Next: 30}, Cause: tier.HoleSourceGone}})
			r.copiesNothing(30)
		}},
		"what no other replica has is copied": {CopiedSound, func(r *rig) {
			r.oracle.replicated(orders, 10)
		}},
		"a clip takes what its owner kept": {CopiedMonotone, func(r *rig) {
			r.appends(tier.Diverged{Log: orders, Offset: 10, At: r.w.Now})
		}},
		"the ledger is an old one": {CopiedMonotone, func(r *rig) {
			before := r.w.Medium.Clone()
			r.w.Kill()
			r.start()
			r.run()
			r.w.Medium = before
			r.w.Kill()
		}},
		"an upload that no record names": {PersistBeforeAct, func(r *rig) {
			r.does(func() error {
				body := thanos.NopCloserWithSize(strings.NewReader("x"))
				return r.w.door.Upload(context.Background(), r.key(tier.AttemptID{9}), body)
			})
		}},
		"an object that no record names": {PersistBeforeAct, func(r *rig) {
			r.w.Objects.Put(r.key(tier.AttemptID{9}), []byte("x"))
		}},
		"the engine is ahead of its ledger": {PersistBeforeAct, func(r *rig) {
			r.w.step(engine.Restored{State: tier.LogState{Log: orders, Source: SourceName,
				Epoch: 1, Copied: 1000}})
		}},
		"a deletion that was not announced": {PersistBeforeAct, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.drops(0)
		}},
		"the log was opened above its beginning": {NoGap, func(r *rig) {
			other := tier.LogID{Table: "orders", Name: "9"}
			r.do(r.w.Append(other, 1))
			r.appends(tier.LogOpened{Log: other, Source: SourceName, Layout: tier.LayoutPlain,
				Epoch: 1, Start: 10, At: r.w.Now})
		}},
		"a segment in the middle goes": {ActiveUntouched, func(r *rig) { r.trash(10) }},
		"the active segment goes":      {ActiveUntouched, func(r *rig) { r.trash(30) }},
		"tierd writes into its source": {ActiveUntouched, func(r *rig) {
			r.does(func() error {
				_, err := r.w.Disk.Append(SegmentPath(orders, 30))
				return err
			})
		}},
		"a deletion that the brake does not count": {CountedOnce, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			seq := r.announce(0)
			r.drops(0)
			r.concludes(seq, tier.OutcomeDeleted)
		}},
		"a deletion whose bytes the brake does not count": {CountedOnce, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.goes(0, tier.BrakeWindow{Since: r.w.Now, Segments: 1})
		}},
		"a window of the brake that is over before its time": {CountedOnce, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.goes(0, tier.BrakeWindow{Since: r.w.Now, Segments: 1, Bytes: 100})
			r.w.Advance(59 * time.Minute)
			r.goes(10, tier.BrakeWindow{Since: r.w.Now, Segments: 1, Bytes: 100})
		}},
		"a window of the brake that does not end": {CountedOnce, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			w := tier.BrakeWindow{Since: r.w.Now, Segments: 1, Bytes: 100}
			r.goes(0, w)
			r.w.Advance(2 * time.Hour)
			r.goes(10, w.Plus(1, 100))
		}},
		"a deletion that the audit log calls none": {AuditTrue, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			seq := r.announce(0)
			r.drops(0)
			r.concludes(seq, tier.OutcomeKept)
			r.oracle.Quiet()
		}},
		"what ended after its epoch is a copy": {EpochFence, func(r *rig) {
			r.opens(tier.PolicyRetain)
			r.oracle.fence.known = map[tier.AttemptID]bool{} // as if they were new
		}},
		"a segment goes on the proof of an epoch that is over": {EpochFence, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.opens(tier.PolicyDelete)
			r.announce(0)
			r.drops(0)
		}},
		"a reader is given other bytes": {ReadBack, func(r *rig) {
			r.oracle.readBack(orders, 0, read.Chunk{Batches: Content(orders, 0, 9), Next: 10})
		}},
		"a reader is sent round in circles": {ReadBack, func(r *rig) {
			r.oracle.readBack(orders, 10, read.Chunk{Batches: Content(orders, 10, 1), Base: 10,
				Next: 10})
		}},
		"a reader gets an error for ever": {ReadBack, func(r *rig) {
			r.do(r.w.Vanish())
			r.w.Objects.Remove(r.object(0))
			r.oracle.readable(r.oracle.record(orders))
		}},
	})
}

// TestTheOracleSeesWhatNothingLetGo commits deletions, in that world, that something spoke against.
func TestTheOracleSeesWhatNothingLetGo(t *testing.T) {
	t.Parallel()
	seen(t, map[string]crime{
		"a deletion before its time": {Gated, func(r *rig) {
			r.allows(tier.DeleteLocal, 0)
			r.announce(0)
			r.drops(0)
		}},
		"a deletion that no policy let go": {Gated, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.announce(0)
			r.drops(0)
		}},
		"a deletion that policies of another configuration let go": {Gated, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.allows(tier.DeleteLocal, 0)
			r.do(r.w.Reload())
			r.announce(0)
			r.drops(0)
		}},
		"a deletion while paused": {Gated, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.allows(tier.DeleteLocal, 0)
			r.w.Paused = true
			r.announce(0)
			r.drops(0)
		}},
		"a deletion for which the brake has no room": {Gated, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.w.Config.Brake = tier.Brake{MaxSegments: 0, Per: time.Hour}
			r.appends(tier.TableResumed{Table: orders.Table, At: r.w.Now})
			r.allows(tier.DeleteLocal, 0)
			r.announce(0)
			r.drops(0)
		}},
		"a deletion without a proof after the clock leapt": {Gated, func(r *rig) {
			r.appends(tier.TierChanged{Table: orders.Table, State: tier.Disabling, Epoch: 2,
				Policy: tier.PolicyRetain, At: r.w.Now})
			r.steps(24 * time.Hour)
			r.w.Advance(8 * 24 * time.Hour)
			r.allows(tier.DeleteLocal, 0)
			r.announce(0)
			r.drops(0)
		}},
		"a deletion for whose bytes the brake has no room": {Gated, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.w.Config.Brake.MaxBytes = sizeAt(0) - 1
			r.allows(tier.DeleteLocal, 0)
			r.announce(0)
			r.drops(0)
		}},
		"a deletion that a policy denies": {Gated, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.oracle.Denied = func(tier.LogID) bool { return true }
			r.allows(tier.DeleteLocal, 0)
			r.announce(0)
			r.drops(0)
		}},
	})
}

// TestTheOracleSeesBeforeItHappens: what is about to happen is judged by itself, and not only by
// what it leaves behind.
func TestTheOracleSeesBeforeItHappens(t *testing.T) {
	t.Parallel()
	// moves is of the oldest segment, from its place or from the trash, where it has the suffix.
	moves := func(suffix, to string) func(r *rig) {
		return func(r *rig) {
			from := SegmentPath(orders, 0)
			if suffix != "" {
				from = path.Join(path.Dir(from), trashDir, segmentName(0)+suffix)
			}
			r.sees(Point{Place: OnDisk, Kind: string(vfs.OpRename), Name: from, To: to})
		}
	}
	unlinks := func(r *rig) {
		r.sees(Point{Place: OnDisk, Kind: string(vfs.OpRemove), Name: SegmentPath(orders, 20)})
	}
	seen(t, map[string]crime{
		"an uncopied segment is to be unlinked": {NoUncopiedDelete, unlinks},
		"a segment is to be unlinked that is announced, and not shown to be the one meant": {
			PersistBeforeAct, func(r *rig) { r.announce(20); unlinks(r) }},
		"a file of the trash is to come back as another segment": {ActiveUntouched, moves(pendingSuffix,
			SegmentPath(orders, 10))},
		"a file of the trash is to come back to another log": {ActiveUntouched, moves(pendingSuffix,
			SegmentPath(logsOf[1], 0))},
		"a file is to leave as another segment": {ActiveUntouched, moves("",
			path.Join(path.Dir(SegmentPath(orders, 0)), trashDir, segmentName(10)+pendingSuffix))},
		"a file is to leave to the trash of another log": {ActiveUntouched, moves("",
			path.Join(path.Dir(SegmentPath(logsOf[1], 0)), trashDir, segmentName(0)+pendingSuffix))},
		"the deletion of another segment is to be decided": {ActiveUntouched, moves(pendingSuffix,
			path.Join(path.Dir(SegmentPath(orders, 0)), trashDir, segmentName(10)+deadSuffix))},
		"what is to go for good comes back": {ActiveUntouched, moves(deadSuffix,
			SegmentPath(orders, 0))},
		"an upload that no record names": {PersistBeforeAct, func(r *rig) {
			r.sees(Point{Place: InStore, Kind: string(fault.OpUpload), Name: r.key(tier.AttemptID{9})})
		}},
	})
}

// TestTheOracleSeesEachTouch: tierd moves files of segments into the trash, within it, or back to
// their own name, and removes them there. Whatever else it did in its source would be a breach.
func TestTheOracleSeesEachTouch(t *testing.T) {
	t.Parallel()
	bin := path.Join(path.Dir(SegmentPath(orders, 0)), trashDir)
	gone := path.Join(bin, segmentName(0))
	pending, dead := gone+pendingSuffix, gone+deadSuffix
	for name, p := range map[string]Point{
		"back to another name": {Kind: string(vfs.OpRename), Name: pending,
			To: SegmentPath(orders, 40)},
		"back, although it is dead": {Kind: string(vfs.OpRename), Name: dead,
			To: SegmentPath(orders, 0)},
		"to another name": {Kind: string(vfs.OpRename), Name: SegmentPath(orders, 30),
			To: SegmentPath(orders, 40)},
		"from nowhere": {Kind: string(vfs.OpRename), Name: path.Join(sourceDir, "x"),
			To: SegmentPath(orders, 40)},
		"a directory is made":         {Kind: string(vfs.OpMkdir), Name: path.Dir(bin)},
		"a directory is removed":      {Kind: string(vfs.OpRemoveDir), Name: path.Dir(bin)},
		"another file goes":           {Kind: string(vfs.OpRemove), Name: path.Join(sourceDir, "x")},
		"a file is made":              {Kind: string(vfs.OpCreate), Name: SegmentPath(orders, 40)},
		"a file in the trash is made": {Kind: string(vfs.OpCreate), Name: bin},
	} {
		p.Place = OnDisk
		said := judged(t, func(r *rig) { r.sees(p) })
		if !slices.ContainsFunc(said, func(v Violation) bool { return v.Property == ActiveUntouched }) {
			t.Errorf("%s: the oracle says %v", name, said)
		}
	}
	for name, p := range map[string]Point{
		"back to its name":      {Kind: string(vfs.OpRename), Name: pending, To: SegmentPath(orders, 0)},
		"the trash is made":     {Kind: string(vfs.OpMkdir), Name: bin},
		"the trash is removed":  {Kind: string(vfs.OpRemoveDir), Name: bin},
		"a directory is synced": {Kind: string(vfs.OpSyncDir), Name: path.Dir(bin)},
	} {
		p.Place = OnDisk
		said := judged(t, func(r *rig) { r.sees(p) })
		if slices.ContainsFunc(said, func(v Violation) bool { return v.Property == ActiveUntouched }) {
			t.Errorf("%s: the oracle says %v", name, said)
		}
	}
}

// sees shows the oracle an operation that then does not happen.
func (r *rig) sees(p Point) {
	r.t.Helper()
	r.does(func() error { r.oracle.see(p); return nil })
}

// TestTheOracleMisses leaves undone what must come about in the end.
func TestTheOracleMisses(t *testing.T) {
	t.Parallel()
	seen(t, map[string]crime{
		"a closed segment is not copied": {EligibleCopied, func(r *rig) { r.oracle.Quiet() }},
		"an expired segment stays": {ExpiredDeleted, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.oracle.Quiet()
		}},
		"an expired remote segment stays": {ExpiredDeleted, func(r *rig) {
			r.onlyRemote()
			r.oracle.Quiet() // the process never looks
		}},
		"an expired remote segment stays that is on disk as well": {ExpiredDeleted, func(r *rig) {
			r.run()
			r.tables(func(t *tier.Table) { t.LocalTTL = 0 })
			r.w.Advance(7*24*time.Hour + doubt + time.Hour)
			r.oracle.Quiet()
		}},
		"an expired remote segment stays of a log that was cut off above it": {ExpiredDeleted,
			func(r *rig) {
				r.onlyRemote()
				r.oracle.cuts(orders, 25)
				r.appends(tier.Diverged{Log: orders, Offset: 25, At: r.w.Now})
				r.oracle.Quiet()
			}},
		"a remote segment stays that is beyond table.log.bytes": {ExpiredDeleted, func(r *rig) {
			r.run()
			r.tables(func(t *tier.Table) {
				t.TTL, t.LocalTTL, t.Bytes = 0, 0, tier.Limit{Set: true, Value: sizeAt(10) + sizeAt(20)}
			})
			r.oracle.Quiet()
		}},
		"the objects of a copy that left its log stay": {ExpiredDeleted, func(r *rig) {
			r.onlyRemote()
			for base := tier.Offset(0); base < 30; base += 10 {
				r.allows(tier.DeleteRemote, base)
			}
			r.movesStart(30)
			r.w.Advance(doubt + time.Hour)
			r.oracle.Quiet()
		}},
		"something is left in the trash": {Settled, func(r *rig) { r.trash(0); r.oracle.Quiet() }},
		"an attempt is left under way":   {Settled, func(r *rig) { r.uploading(); r.oracle.Quiet() }},
		"a probe left its object": {Settled, func(r *rig) {
			keys, err := objstore.NewKeys(r.w.Ledger().ID())
			r.do(err)
			key, err := keys.Probe("left")
			r.do(err)
			r.w.Objects.Put(key, []byte("x"))
			r.w.Advance(49 * time.Hour)
			r.oracle.Quiet()
		}},
		"the manifest lacks what is copied": {Settled, func(r *rig) {
			r.w.Objects.Remove(r.entry())
			r.oracle.Quiet()
		}},
		"a disablement does not end": {DisablementDrains, func(r *rig) {
			r.appends(tier.TierChanged{Table: orders.Table, State: tier.Disabling, Epoch: 2,
				Policy: tier.PolicyRetain, At: r.w.Now})
			r.w.Advance(time.Hour)
			r.oracle.Quiet()
		}},
		"a stop leaves something unsynced": {CleanStop, func(r *rig) {
			f, err := r.w.Disk.Append(auditDir + "/audit-000001.jsonl")
			r.do(err)
			_, err = f.Write([]byte("{}\n"))
			r.do(err)
			r.w.Stop()
			r.start()
		}},
		"an expired segment stays, and nobody says why": {DeniedIsReported, func(r *rig) {
			r.w.Advance(2 * time.Hour)
			r.oracle.Denied = func(tier.LogID) bool { return true }
			r.oracle.Quiet() // nobody asked the process to look
		}},
		"what failed is tried again, and nothing fails any more": {NoLivelock, func(r *rig) {
			r.fails(".log", false)
			r.run()
			r.oracle.Quiet()
		}},
		"readers are offered what another leader has written anew": {CopiedSound, func(r *rig) {
			r.oracle.leads(orders, []tier.EpochStart{{Epoch: 2, Start: 0}}, 20)
			r.oracle.Current()
		}},
		"a rebuilt ledger lacks a copy": {Rebuilt, func(r *rig) {
			old, err := r.w.ledgerNow()
			r.do(err)
			r.forgets()
			r.oracle.rebuilt(old)
		}},
		"a rebuilt ledger lacks what was copied before it went back": {Rebuilt, func(r *rig) {
			r.oracle.bury()
			r.forgets()
			r.oracle.resurrected()
		}},
		"a rebuilt ledger counts no older epoch, and nobody let that go": {Rebuilt, func(r *rig) {
			r.oracle.bury()
			r.opens(tier.PolicyDelete)
			r.oracle.resurrected()
		}},
		"a rebuilt ledger lacks a copy of the epoch that it counts": {Rebuilt, func(r *rig) {
			r.oracle.leave[orders.Table] = true
			r.opens(tier.PolicyDelete)
			older := r.w.Medium.Clone()
			r.w.Kill()
			r.start()
			r.run()
			r.oracle.bury()
			r.oracle.buried[0].left[orders.Table] = true // of what the epochs before had
			r.w.Kill()
			r.w.Medium = older
			r.w.wire()
			r.oracle.resurrected()
		}},
		"the process does not run": {Recovered, func(r *rig) { r.w.Kill(); r.oracle.Quiet() }},
	})
}

// seen commits each crime, and has the oracle judge it.
func seen(t *testing.T, crimes map[string]crime) {
	t.Helper()
	for name, c := range crimes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := judged(t, c.commit)
			if !slices.ContainsFunc(said, func(v Violation) bool { return v.Property == c.property }) {
				t.Errorf("the oracle says %v, want %s", said, c.property)
			}
		})
	}
}

// judged commits a crime, and gives what the oracle says of it.
func judged(t *testing.T, commit func(*rig)) []Violation {
	t.Helper()
	r := newRig(t)
	r.copied(2)
	r.do(r.w.Append(orders, 1))
	if v := r.oracle.Violations(); len(v) > 0 {
		t.Fatalf("before the crime: %v", v)
	}
	commit(r)
	r.oracle.changed = true
	r.oracle.rest()
	return r.oracle.Violations()
}

// onlyRemote lets the process copy and delete what is closed, and the copies' time be over.
func (r *rig) onlyRemote() {
	r.t.Helper()
	r.w.Advance(2 * time.Hour)
	r.run()
	if n := len(r.oracle.gone()); n != 3 {
		r.t.Fatalf("%d segments went, want 3", n)
	}
	r.w.Advance(7*24*time.Hour + doubt)
}

// does lets the process do what it never would.
func (r *rig) does(crime func() error) {
	r.t.Helper()
	r.do(r.w.act(crime))
}

func (r *rig) appends(record tier.Record) {
	r.t.Helper()
	r.does(func() error {
		_, err := r.w.process.ledger.Append(context.Background(), record)
		return err
	})
}

// copiesNothing finishes a copy of the segment from base on that was never uploaded.
func (r *rig) copiesNothing(base tier.Offset) {
	r.t.Helper()
	name := segmentName(base)
	a := tier.Attempt{ID: tier.AttemptID{7}, Epoch: 1, Names: []string{name},
		Range: tier.Range{Base: base, Next: base + 10}}
	r.does(func() (err error) {
		a.Position, err = r.w.process.ledger.Append(context.Background(),
			tier.CopyStarted{Log: orders, Attempt: a})
		return err
	})
	file := tier.SourceFile{FileDigest: tier.FileDigest{Name: name, Size: 1}}
	r.appends(tier.CopyFinished{Log: orders, Copy: tier.Copy{Attempt: a.ID, Position: a.Position,
		Epoch: 1, Verified: tier.VerifyFull,
		Content: tier.Content{Range: a.Range, Files: []tier.SourceFile{file}}}})
}

// allows lets the policies that are in force let a segment go.
func (r *rig) allows(action tier.Action, base tier.Offset) {
	r.oracle.answers[question{action, orders, base}] = answer{true, r.w.generation}
}

// forgets ends the process, and replaces its ledger by an empty one.
func (r *rig) forgets() {
	r.w.Kill()
	r.w.Medium = offsets.NewMemory([16]byte{1})
	r.w.wire()
}

// opens ends the log's tier epoch with the policy, and begins another one.
func (r *rig) opens(p tier.DisablePolicy) {
	r.t.Helper()
	change := func(s tier.TierState, epoch tier.TierEpoch, p tier.DisablePolicy) {
		r.appends(tier.TierChanged{Table: orders.Table, State: s, Epoch: epoch, Policy: p, At: r.w.Now})
	}
	change(tier.Disabling, 2, p)
	change(tier.Disabled, 2, p)
	change(tier.Enabled, 3, "")
	r.appends(tier.EpochOpened{Log: orders, Epoch: 3, Fresh: p == tier.PolicyDelete,
		At: r.w.Now})
}

func (r *rig) trash(base tier.Offset) {
	r.t.Helper()
	at := SegmentPath(orders, base)
	bin := path.Join(path.Dir(at), trashDir)
	r.does(func() error {
		if err := r.w.Disk.Mkdir(bin); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return r.w.Disk.Rename(at, path.Join(bin, path.Base(at)+pendingSuffix))
	})
}

// drops lets a segment go to the end, by the steps that a drop takes.
func (r *rig) drops(base tier.Offset) {
	r.t.Helper()
	r.trash(base)
	bin := path.Join(path.Dir(SegmentPath(orders, base)), trashDir)
	name := path.Join(bin, segmentName(base))
	r.does(func() error { return r.w.Disk.Rename(name+pendingSuffix, name+deadSuffix) })
	r.does(func() error { return r.w.Disk.Remove(name + deadSuffix) })
}

// goes lets a segment go to the end, and be counted like that by the brake.
func (r *rig) goes(base tier.Offset, w tier.BrakeWindow) {
	r.t.Helper()
	r.allows(tier.DeleteLocal, base)
	seq := r.announce(base)
	r.drops(base)
	r.appends(tier.LocalDeleted{Log: orders, Range: tier.Range{Base: base, Next: base + 10},
		Window: w, Bytes: sizeAt(base), At: r.w.Now})
	r.concludes(seq, tier.OutcomeDeleted)
}

// announce puts a deletion on record.
func (r *rig) announce(base tier.Offset) (seq uint64) {
	r.t.Helper()
	files := r.w.files(orders)
	i := slices.IndexFunc(files, func(f file) bool { return f.base == base })
	r.does(func() (err error) {
		seq, err = r.w.process.audit.Intend(context.Background(), tier.Deletion{
			Action: tier.DeleteLocal, Log: orders, Range: tier.Range{Base: base, Next: base + 10},
			SHA256: sha256.Sum256(files[i].data)})
		return err
	})
	return seq
}

func (r *rig) concludes(seq uint64, result tier.OutcomeResult) {
	r.t.Helper()
	r.does(func() error {
		return r.w.process.audit.Conclude(context.Background(), seq, tier.Outcome{Result: result})
	})
}

// object is the key of the copy's file with the base; entry that of the first manifest entry.
func (r *rig) object(base tier.Offset) string { return r.find("/" + segmentName(base)) }
func (r *rig) entry() string                  { return r.find("/manifest/0000") }

func (r *rig) find(part string) string {
	r.t.Helper()
	keys := r.w.Objects.Keys()
	i := slices.IndexFunc(keys, func(key string) bool { return strings.Contains(key, part) })
	if i < 0 {
		r.t.Fatalf("no object has %q in its key: %v", part, keys)
	}
	return keys[i]
}

func (r *rig) key(attempt tier.AttemptID) string {
	r.t.Helper()
	keys, err := objstore.NewKeys(r.w.Ledger().ID())
	r.do(err)
	key, err := keys.File(tier.ObjectKey{Log: orders, Epoch: 1, Attempt: attempt, Name: "x.log"})
	r.do(err)
	return key
}

// TestTheOracleIsSilent where nothing is wrong, over a whole life of a segment.
func TestTheOracleIsSilent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.copied(3)
	r.w.Advance(2 * time.Hour)
	r.run()
	r.settle()
	if v := r.oracle.Violations(); len(v) > 0 {
		t.Fatal(v)
	}
	if n := len(r.oracle.gone()); n != 3 {
		t.Fatalf("the oracle saw %d deletions, want 3", n)
	}
	if !strings.Contains(outcome(r.w), "audited as deleted: 20") {
		t.Fatalf("the outcome lacks the last deletion:\n%s", outcome(r.w))
	}
}

// TestAResumeCountsIfItIsDurable: its record fails, and the process ends. Whether the brake has a
// new window shows in the ledger alone; only if it has does it forget what went before.
func TestAResumeCountsIfItIsDurable(t *testing.T) {
	t.Parallel()
	for name, fate := range map[string]Fate{"it is": FailAfter, "it is not": Fail} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.copied(2)
			r.w.Advance(2 * time.Hour)
			r.run()
			r.armed, r.n, r.fate = true, 0, fate
			if err := r.w.Resume(orders.Table); err == nil || !r.fired {
				t.Fatalf("the record did not fail: %v", err)
			}
			r.armed = false
			for _, d := range r.oracle.deletions {
				if durable := fate == FailAfter; d.forgiven != durable {
					t.Errorf("the deletion of %d is forgiven: %t", d.base, d.forgiven)
				}
			}
			r.w.Kill()
			r.do(r.w.Start())
			r.settle()
			if v := r.oracle.Violations(); len(v) > 0 {
				t.Error(v)
			}
		})
	}
}
