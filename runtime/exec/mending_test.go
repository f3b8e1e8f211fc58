package exec

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// mended looks at all of the manifest, and returns what each object came to.
func (r *rig) mended() (out []Mending) {
	r.t.Helper()
	_, err := r.x.MendManifest(context.Background(), orders, MendAt{}, func(m Mended) error {
		if (m.Why == nil) != (m.Mending == MendSound) {
			r.t.Errorf("%+v", m)
		}
		out = append(out, m.Mending)
		return nil
	})
	r.must(err)
	return out
}

// manifest are the keys of the log's manifest that contain the text.
func (r *rig) manifest(text string) []string {
	return slices.DeleteFunc(r.keys.Keys(), func(key string) bool {
		return !strings.Contains(key, "/manifest/") || !strings.Contains(key, text)
	})
}

// consumed is what a consumer of the manifest alone sees of it: bases of copies.
func (r *rig) consumed() (bases []tier.Offset) {
	r.t.Helper()
	store, err := objstore.New(r.bucket, r.ledger.ID())
	r.must(err)
	facts, problems, err := store.Manifest(context.Background(), orders)
	r.must(err)
	if len(problems) > 0 {
		r.t.Errorf("problems: %v", problems)
	}
	for _, f := range facts {
		if f.Add != nil {
			bases = append(bases, f.Add.Content.Range.Base)
		}
	}
	return bases
}

// archive copies so many segments, and deletes them locally.
func (r *rig) archive(segments int) {
	r.t.Helper()
	r.roll(segments)
	r.opened()
	var at []tier.Position
	for i := range segments {
		at = append(at, r.copied(tier.Offset(10*i)))
	}
	r.now += tier.Time(2 * time.Hour)
	if d := want[engine.Deleted](r, r.do(r.deleteEffect(at...))); len(d.Gone) != segments {
		r.t.Fatalf("%+v", d)
	}
}

// expires moves the start of the log over its first segment.
func (r *rig) expires() engine.RemoteCandidate {
	r.t.Helper()
	c, err := r.ledger.Copy(orders, 0)
	r.must(err)
	first := engine.RemoteCandidate{Remote: c.Remote()}
	moved := want[engine.Moved](r, r.do(engine.Expire{ID: 8, Log: orders, Source: "wal",
		Segments: []engine.RemoteCandidate{first}}))
	if moved.Start != 10 || len(moved.Unpublished) > 0 {
		r.t.Fatalf("%+v", moved)
	}
	return first
}

// TestALostEntryIsSaidAgain: nothing asks for the deletion of anything, the files are all there,
// and who reads the manifest alone would never see the segment again.
func TestALostEntryIsSaidAgain(t *testing.T) {
	t.Parallel()
	damage := map[string]func(r *rig, key string){
		"lost":  func(r *rig, key string) { r.keys.Remove(key) },
		"empty": func(r *rig, key string) { r.keys.Put(key, nil) },
		"a bit": func(r *rig, key string) {
			data, _ := r.keys.Object(key)
			data = slices.Clone(data)
			data[len(data)/2] ^= 1
			r.keys.Put(key, data)
		},
		"of another log": func(r *rig, key string) {
			data, _ := r.keys.Object(key)
			r.keys.Put(key, []byte(strings.ReplaceAll(string(data), "orders/0", "orders/1")))
		},
	}
	for name, spoil := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.archive(3)
			before := map[string]string{}
			for _, key := range r.keys.Keys() {
				data, _ := r.keys.Object(key)
				before[key] = string(data)
			}
			state, _ := r.ledger.Log(orders)
			spoil(r, r.manifest("0000001-")[0])
			if got := r.mended(); !slices.Equal(got, []Mending{MendSound, MendAgain, MendSound}) {
				t.Fatalf("%v", got)
			}
			if got := r.consumed(); !slices.Equal(got, []tier.Offset{0, 10, 20}) {
				t.Errorf("consumers see %v", got)
			}
			for _, key := range r.keys.Keys() {
				if data, _ := r.keys.Object(key); before[key] != string(data) {
					t.Errorf("%s was %q, is %q", key, before[key], data)
				}
			}
			if now, _ := r.ledger.Log(orders); now.Next != state.Next || len(r.keys.Keys()) != len(before) {
				t.Errorf("something new: %+v, %v", now, r.keys.Keys())
			}
			if got := r.mended(); slices.Contains(got, MendAgain) {
				t.Errorf("once more: %v", got)
			}
		})
	}
}

// TestWhatLeftTheLogIsNotSaidAgain: of a copy below the log's start, or of a tier epoch that
// is over, the entry stays away; the mark that says so does not.
func TestWhatLeftTheLogIsNotSaidAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.archive(2)
	first := r.expires()
	for _, key := range r.manifest("") {
		r.keys.Remove(key)
	}
	if got := r.mended(); !slices.Equal(got, []Mending{MendAgain, MendAgain}) {
		t.Fatalf("%v, want the entry of [10, 20) and the mark", got)
	}
	if got := r.consumed(); !slices.Equal(got, []tier.Offset{10}) {
		t.Errorf("consumers see %v", got)
	}
	r.now += tier.Time(time.Hour)
	want[engine.Removed](r, r.do(engine.Remove{ID: 9, Log: orders, Action: tier.DeleteRemote,
		Copies: []engine.RemoteCandidate{first}}))
	_, err := r.ledger.Append(context.Background(), tier.TierChanged{Table: "orders",
		State: tier.Disabling, Epoch: 2, Policy: tier.PolicyDelete, At: r.now})
	r.must(err)
	r.keys.Remove(r.manifest("0000001-")[0])
	if got := r.mended(); !slices.Equal(got, []Mending{MendSound}) {
		t.Errorf("%v, want the mark alone", got)
	}
	for _, change := range []tier.Record{
		tier.TierChanged{Table: "orders", State: tier.Disabled, Epoch: 2, Policy: tier.PolicyDelete,
			At: r.now},
		tier.TierChanged{Table: "orders", State: tier.Enabled, Epoch: 3, At: r.now},
		tier.EpochOpened{Log: orders, Epoch: 3, Fresh: true, Start: 20, At: r.now},
	} {
		_, err := r.ledger.Append(context.Background(), change)
		r.must(err)
		if r.mended(); len(r.manifest("0000001-")) > 0 {
			t.Errorf("after %+v the entry of the epoch before is said again", change)
		}
	}
	for _, key := range r.manifest("") {
		r.keys.Remove(key)
	}
	if got := r.mended(); !slices.Equal(got, []Mending{MendAgain}) || len(r.consumed()) > 0 {
		t.Errorf("%v, want the mark of the start; that of the epoch was never there: %v", got,
			r.manifest(""))
	}
}

// TestALostEntryProvesNothing: also where all files of the copy are there.
func TestALostEntryProvesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.roll(1)
	r.opened()
	pos := r.copied(0)
	r.now += tier.Time(2 * time.Hour)
	r.keys.Remove(r.manifest("")[0])
	r.kept(r.do(r.deleteEffect(pos)), tier.CodeStoreLost)
	r.mended()
	if d := want[engine.Deleted](r, r.do(r.deleteEffect(pos))); len(d.Gone) != 1 {
		t.Errorf("%+v", d)
	}
}

// TestAnExpiryNeedsNoEntry: what the ledger holds is enough to let go of what is over.
func TestAnExpiryNeedsNoEntry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.archive(2)
	r.keys.Remove(r.manifest("0000000-")[0])
	first := r.expires()
	r.now += tier.Time(time.Hour)
	done := want[engine.Removed](r, r.do(engine.Remove{ID: 9, Log: orders,
		Action: tier.DeleteRemote, Copies: []engine.RemoteCandidate{first}}))
	if len(done.Positions) != 1 || len(done.Kept) > 0 {
		t.Errorf("%+v", done)
	}
	if got := r.mended(); slices.Contains(got, MendAgain) || len(r.consumed()) != 1 {
		t.Errorf("%v, %v", got, r.consumed())
	}
}

// TestACopyThatLeavesWhileItIsLookedAt: the start moves between the look and the upload.
func TestACopyThatLeavesWhileItIsLookedAt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.archive(2)
	r.keys.Remove(r.manifest("0000000-")[0])
	once := true
	r.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpGet && once {
			once = false
			r.expires()
		}
		return fault.Effect{}
	})
	if got := r.mended(); !slices.Equal(got, []Mending{MendSound}) {
		t.Errorf("%v, want the entry of [10, 20) alone", got)
	}
	if got := r.manifest("0000000-"); len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// TestALostCheckpointIsWrittenAgain: with what the first one said.
func TestALostCheckpointIsWrittenAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.answer = gate.Decision{}
	r.roll(65)
	r.opened()
	for i := range 65 {
		r.copied(tier.Offset(10 * i))
	}
	r.do(engine.Checkpoint{ID: 5, Log: orders, Level: 1, Block: 0})
	key := r.manifest("/L1-")[0]
	before, _ := r.keys.Object(key)
	for name, spoil := range map[string]func(){
		"lost":   func() { r.keys.Remove(key) },
		"rotten": func() { r.keys.Put(key, append(slices.Clone(before[:40]), before[41:]...)) },
	} {
		spoil()
		got := r.mended()
		if n := len(got); n != 66 || got[n-1] != MendAgain || slices.Contains(got[:n-1], MendAgain) {
			t.Errorf("%s: %v", name, got)
		}
		if now, _ := r.keys.Object(key); !slices.Equal(now, before) {
			t.Errorf("%s: %q, was %q", name, now, before)
		}
	}
	// Hidden by its checkpoint, and yet what a deletion asks for by its name.
	r.keys.Remove(r.manifest("0000003-")[0])
	if got := r.mended(); got[3] != MendAgain {
		t.Errorf("%v", got)
	}
}

// TestWhatIsSoundIsNotWrittenOver: an entry of a newer tierd, or one that says otherwise.
func TestWhatIsSoundIsNotWrittenOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.archive(2)
	store, err := objstore.New(r.bucket, r.ledger.ID())
	r.must(err)
	facts, err := r.ledger.Facts(orders, 0, 2)
	r.must(err)
	key := r.manifest("0000000-")[0]
	data, _ := r.keys.Object(key)
	newer := strings.Replace(string(data), `{"version":1,`, `{"version":99,`, 1)
	other := *facts[1].Add
	other.Content.Range.Next++
	facts[1].Add = &other
	r.keys.Put(key, []byte(newer))
	r.must(store.PutFact(context.Background(), orders, other.Attempt, facts[1]))
	otherwise, _ := r.keys.Object(r.manifest("0000001-")[0])
	if got := r.mended(); !slices.Equal(got, []Mending{MendStrays, MendStrays}) {
		t.Errorf("%v", got)
	}
	_, err = r.x.MendManifest(context.Background(), orders, MendAt{}, func(m Mended) error {
		name := other.Attempt.String() // each says which object it is
		if !strings.Contains(m.Why.Error(), key) && !strings.Contains(m.Why.Error(), name) {
			t.Error(m.Why)
		}
		return nil
	})
	r.must(err)
	if now, _ := r.keys.Object(key); string(now) != newer {
		t.Errorf("%q", now)
	}
	if now, _ := r.keys.Object(r.manifest("0000001-")[0]); !slices.Equal(now, otherwise) {
		t.Errorf("%q", now)
	}
}

// TestAnOlderLedgerSaysNothingAgain: what it holds may have left the log since.
func TestAnOlderLedgerSaysNothingAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.archive(2)
	r.boot()
	key := r.manifest("0000000-")[0]
	data, _ := r.keys.Object(key)
	r.keys.Remove(key)
	r.keys.Put(strings.Replace(key, "000000-", "000007-", 1), data)
	_, err := r.x.MendManifest(context.Background(), orders, MendAt{}, func(Mended) error {
		return nil
	})
	if !errors.Is(err, ErrRefused) || len(r.manifest("0000000000000000-")) > 0 {
		t.Errorf("%v", err)
	}
}

// TestWhatIsGivenShortOnceIsSound: nothing is written in the place of what is there.
func TestWhatIsGivenShortOnceIsSound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.archive(1)
	once := true
	r.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpUpload {
			t.Errorf("%s is uploaded", op.Key)
		}
		if op.Kind == fault.OpGet && once {
			once = false
			return fault.Effect{Mangle: fault.Cut(30)}
		}
		return fault.Effect{}
	})
	if got := r.mended(); once || !slices.Equal(got, []Mending{MendSound}) {
		t.Errorf("%v", got)
	}
}

// TestALookThatFailsGoesOn: from where it came to, and no failure of the store passes for a loss.
func TestALookThatFailsGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.archive(4)
	r.keys.Remove(r.manifest("0000003-")[0])
	for i, kind := range []fault.OpKind{fault.OpGet, fault.OpUpload} {
		r.bucket.SetHook(func(op fault.Op) fault.Effect {
			if op.Kind == kind && strings.Contains(op.Key, []string{"0000002-", "0000003-"}[i]) {
				return fault.Effect{Err: errOut}
			}
			return fault.Effect{}
		})
		n := 0
		from := MendAt{Position: 1}
		at, err := r.x.MendManifest(context.Background(), orders, from, func(Mended) error {
			n++
			return nil
		})
		if !errors.Is(err, errOut) || !errors.As(err, new(*WithheldError)) ||
			at != (MendAt{Position: tier.Position(2 + i)}) || n != 1+i {
			t.Errorf("%s: at %+v after %d: %v", kind, at, n, err)
		}
	}
	r.bucket.SetHook(nil)
	enough := errors.New("enough")
	if _, err := r.x.MendManifest(context.Background(), orders, MendAt{}, func(Mended) error {
		return enough
	}); !errors.Is(err, enough) {
		t.Error(err)
	}
	if at, err := r.x.MendManifest(context.Background(), tier.LogID{Table: "none", Name: "0"},
		MendAt{}, nil); at.Position != 0 || err != nil {
		t.Errorf("a log that is not known: %+v %v", at, err)
	}
	if got := r.mended(); got[3] != MendAgain {
		t.Errorf("%v", got)
	}
}

// TestALookAmongCheckpointsGoesOn: from the one that it came to, and not with the entries again.
// One that the store does not give can be left out, and each is counted for what it is.
func TestALookAmongCheckpointsGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.answer = gate.Decision{}
	r.roll(3 * tier.CheckpointRadix)
	r.opened()
	for i := range 3 * tier.CheckpointRadix {
		r.copied(tier.Offset(10 * i))
	}
	for i := range uint64(2) {
		r.do(engine.Checkpoint{ID: 5, Log: orders, Level: 1, Block: i})
	}
	r.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpGet && strings.Contains(op.Key, "/L1-0000000000000001") {
			return fault.Effect{Err: fault.ErrDenied}
		}
		return fault.Effect{}
	})
	var told []Mended
	look := func(from MendAt) (MendAt, error) {
		told = nil
		return r.x.MendManifest(context.Background(), orders, from, func(m Mended) error {
			told = append(told, m)
			return nil
		})
	}
	second := MendAt{Level: 1, Block: 1}
	at, err := look(MendAt{})
	if !errors.Is(err, fault.ErrDenied) || !errors.As(err, new(*WithheldError)) || at != second ||
		len(told) != 3*tier.CheckpointRadix+1 {
		t.Fatalf("at %+v after %d: %v", at, len(told), err)
	}
	key := r.manifest("/L1-")[0]
	data, _ := r.keys.Object(key)
	if last := told[len(told)-1]; last.Bytes != int64(len(data)) || told[0].Bytes != 0 {
		t.Errorf("%+v, want the %d bytes of %s", last, len(data), key)
	}
	if at, err = look(second); at != second || err == nil || len(told) > 0 {
		t.Errorf("once more: at %+v after %d: %v", at, len(told), err)
	}
	r.do(engine.Checkpoint{ID: 5, Log: orders, Level: 1, Block: 2})
	if _, err = look(at.Behind()); err != nil || len(told) != 1 || told[0].At.Block != 2 {
		t.Errorf("behind it: %+v: %v", told, err)
	}
	r.bucket.SetHook(nil)
	if _, err = look(second); err != nil || len(told) != 2 {
		t.Errorf("given again: %d: %v", len(told), err)
	}
}

// TestACheckpointThatCameIsLookedAt: it was written while the entries were looked at.
func TestACheckpointThatCameIsLookedAt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.answer = gate.Decision{}
	r.roll(tier.CheckpointRadix)
	r.opened()
	for i := range tier.CheckpointRadix {
		r.copied(tier.Offset(10 * i))
	}
	once := true
	r.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpGet && once {
			once = false
			r.do(engine.Checkpoint{ID: 5, Log: orders, Level: 1, Block: 0})
			r.keys.Remove(r.manifest("/L1-")[0])
		}
		return fault.Effect{}
	})
	if got := r.mended(); len(got) != tier.CheckpointRadix+1 || got[len(got)-1] != MendAgain {
		t.Errorf("%v", got)
	}
}

// grownLedger has so many checkpoints of orders/0, once it has any.
type grownLedger struct {
	Ledger
	blocks []uint64
}

func (l *grownLedger) Log(id tier.LogID) (tier.LogState, bool) {
	state, ok := l.Ledger.Log(id)
	if l.blocks != nil {
		state.Checkpoints = l.blocks
	}
	return state, ok
}

// TestASupersededCheckpointIsNotWrittenAgain: a higher one came while it was looked at.
func TestASupersededCheckpointIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.archive(2)
	grown := &grownLedger{Ledger: r.x.c.Ledger, blocks: []uint64{1}}
	r.x.c.Ledger = grown
	looks := 0
	r.bucket.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpGet && strings.Contains(op.Key, "/L1-") {
			if looks++; looks == 2 {
				grown.blocks = []uint64{tier.CheckpointRadix, 1}
			}
		}
		return fault.Effect{}
	})
	r.mended()
	low, high := r.manifest("/L1-"), r.manifest("/L2-")
	if looks != 2 || len(low) > 0 || len(high) != 1 {
		t.Errorf("%d looks, %v, %v", looks, low, high)
	}
}

// TestWhichCheckpointIsNext: a higher one stands for those below it.
func TestWhichCheckpointIsNext(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		at     MendAt
		blocks []uint64
		want   MendAt
		more   bool
	}{
		{MendAt{Level: 1}, nil, MendAt{Level: 1}, false},
		{MendAt{Level: 1}, []uint64{3}, MendAt{Level: 1}, true},
		{MendAt{Level: 1, Block: 2}, []uint64{3}, MendAt{Level: 1, Block: 2}, true},
		{MendAt{Level: 1, Block: 3}, []uint64{3}, MendAt{Level: 2}, false},
		{MendAt{Level: 1}, []uint64{130, 2}, MendAt{Level: 1, Block: 128}, true},
		{MendAt{Level: 1}, []uint64{128, 2}, MendAt{Level: 2}, true},
		{MendAt{Level: 1, Block: 130}, []uint64{130, 2}, MendAt{Level: 2}, true},
		{MendAt{Level: 2, Block: 2}, []uint64{130, 2}, MendAt{Level: 3}, false},
		{MendAt{Level: 3, Block: 1}, []uint64{130, 2}, MendAt{Level: 3, Block: 1}, false},
	} {
		if got, more := tc.at.block(tc.blocks); got != tc.want || more != tc.more {
			t.Errorf("%+v of %v: %+v %t", tc.at, tc.blocks, got, more)
		}
	}
}
