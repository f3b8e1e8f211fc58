package objstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/deadline"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/objstore/limit"
	"github.com/tierd/tierd/objstore/retry"
	"github.com/tierd/tierd/runtime/tier"
)

var errBoom = errors.New("boom")

func TestPutFileStoresByteForByte(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 1000, 3 << 20} {
		content := noise(size)
		k := file(100, "00000000000000000100.log")
		for name, s := range map[string]*Store{"mem": newBench(t).Store, "thanos": overThanos(t)} {
			if err := s.PutFile(t.Context(), k, at(content), int64(size)); err != nil {
				t.Fatalf("%s, %d bytes: %v", name, size, err)
			}
			if err := s.StatFile(t.Context(), k, int64(size)); err != nil {
				t.Errorf("%s, %d bytes: %v", name, size, err)
			}
			for _, mode := range []tier.VerifyMode{tier.VerifySize, tier.VerifySample, tier.VerifyFull} {
				err := s.VerifyFile(t.Context(), k, digest(k.Name, content), mode, at(content))
				if err != nil {
					t.Errorf("%s, %d bytes, verify %s: %v", name, size, mode, err)
				}
			}
		}
	}
}

// dropper is a file in the page cache.
type dropper struct {
	readerAt
	dropped int64
}

func (d *dropper) DropCache(_, n int64) { d.dropped += n }

func TestPutFileDropsThePageCache(t *testing.T) {
	t.Parallel()
	content := noise(2<<20 + 17)
	d := &dropper{readerAt: at(content)}
	if err := newBench(t).PutFile(t.Context(), file(0, "f"), d, int64(len(content))); err != nil {
		t.Fatal(err)
	}
	if d.dropped != int64(len(content)) {
		t.Errorf("dropped %d of %d bytes", d.dropped, len(content))
	}
}

func TestPutFileOfAFileThatShrank(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	k := file(0, "f")
	err := b.PutFile(t.Context(), k, at(noise(10)), 11)
	if !errors.Is(err, tier.ErrChanged) || !strings.Contains(err.Error(), fileKey(t, b.Store, k)) {
		t.Errorf("error %v, want ErrChanged with the key", err)
	}
	if len(b.mem.Keys()) != 0 {
		t.Errorf("stored %v", b.mem.Keys())
	}
	if err := b.PutFile(t.Context(), k, at(nil), -1); err == nil {
		t.Error("a negative size: no error")
	}
}

// A client that takes the early end for the end, and says that all is well.
func TestPutFileDoesNotTrustAClient(t *testing.T) {
	t.Parallel()
	s, err := New(careless{thanos.NewInMemBucket()}, ledger)
	if err != nil {
		t.Fatal(err)
	}
	err = s.PutFile(t.Context(), file(0, "f"), at(noise(10)), 11)
	if !errors.Is(err, tier.ErrChanged) {
		t.Errorf("error %v, want ErrChanged", err)
	}
}

type careless struct{ thanos.Bucket }

func (c careless) Upload(ctx context.Context, key string, r io.Reader,
	opts ...thanos.ObjectUploadOption) error {
	data, _ := io.ReadAll(r)
	return c.Bucket.Upload(ctx, key, bytes.NewReader(data), opts...)
}

// What an upload past its deadline did is not known: the error says so, nothing is deleted, and
// looking gives the answer whenever it comes.
func TestUnknownOutcomeIsResolvedByLooking(t *testing.T) {
	t.Parallel()
	content := noise(1000)
	k := file(0, "f")
	d := digest("f", content)
	b := newBench(t)
	for _, e := range []fault.Effect{
		{Err: context.DeadlineExceeded},
		{Err: context.DeadlineExceeded, Applied: true},
		{Err: context.DeadlineExceeded, Mangle: fault.Cut(500)},
		{Err: context.DeadlineExceeded, Late: true},
	} {
		var deletions int
		b.faults.SetHook(func(op fault.Op) fault.Effect {
			switch op.Kind {
			case fault.OpUpload:
				return e
			case fault.OpDelete:
				deletions++
			}
			return fault.Effect{}
		})
		err := b.PutFile(t.Context(), k, at(content), 1000)
		if !errors.Is(err, context.DeadlineExceeded) || deletions != 0 {
			t.Errorf("%+v: %v, %d deletions", e, err, deletions)
		}
		err = b.VerifyFile(t.Context(), k, d, tier.VerifyFull, nil)
		want := tier.ErrVanished
		if e.Mangle != nil {
			want = tier.ErrDamaged
		}
		if e.Applied != (err == nil) || err != nil && !errors.Is(err, want) {
			t.Errorf("looking after %+v: %v", e, err)
		}
		b.mem.Remove(fileKey(t, b.Store, k))
	}
	if err := b.faults.Land(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := b.VerifyFile(t.Context(), k, d, tier.VerifyFull, nil); err != nil {
		t.Errorf("looking after the late upload has landed: %v", err)
	}
}

// A client that reports the end of its context in its own words.
func TestDeadlineIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	b.faults.SetHook(func(fault.Op) fault.Effect { return fault.Effect{Err: errBoom} })
	d := digest("f", noise(10))
	for name, err := range map[string]error{
		"put":    b.PutFile(ctx, file(0, "f"), at(noise(10)), 10),
		"fact":   b.PutFact(ctx, orders, attempt(1), add(1)),
		"stat":   b.StatFile(ctx, file(0, "f"), 10),
		"verify": b.VerifyFile(ctx, file(0, "f"), d, tier.VerifyFull, nil),
	} {
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errBoom) ||
			!strings.Contains(err.Error(), ledger+"/logs/orders/0/") {
			t.Errorf("%s: %v: want the deadline, the cause and the key", name, err)
		}
	}
}

// As the daemon stacks them: a storm ends in one error that says where and how often.
func TestStormThroughAllDecorators(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := func() time.Time { return time.Unix(0, 0) }
	sleep := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	limiter, err := limit.New(0, now, sleep)
	if err != nil {
		t.Fatal(err)
	}
	timed, err := deadline.Wrap(limit.Wrap(b.faults, limiter), deadline.Options{Call: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	patient, err := retry.Wrap(timed, retry.Options{Attempts: 4, Base: time.Second, Max: time.Second,
		Total: time.Hour, Now: now, Sleep: sleep, Rand: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(patient, ledger)
	if err != nil {
		t.Fatal(err)
	}
	content := noise(1000)
	k := file(0, "f")
	b.faults.SetHook(fault.Storm(3))
	if err := s.PutFile(t.Context(), k, at(content), 1000); err != nil {
		t.Errorf("a storm of 3: %v", err)
	}
	b.faults.SetHook(fault.Storm(1 << 30))
	err = s.PutFile(t.Context(), k, at(content), 1000)
	var status fault.StatusError
	if !errors.As(err, &status) || !strings.Contains(err.Error(), fileKey(t, s, k)) ||
		!strings.Contains(err.Error(), "given up after 4 attempts") {
		t.Errorf("a storm without end: %v", err)
	}
	b.faults.SetHook(nil)
	if err := s.VerifyFile(t.Context(), k, digest("f", content), tier.VerifyFull, nil); err != nil {
		t.Error(err)
	}
	if err := s.StatFile(t.Context(), file(1, "f"), 1); !errors.Is(err, tier.ErrVanished) {
		t.Errorf("a missing object through all decorators: %v", err)
	}
	shrunk := s.PutFile(t.Context(), k, at(content), 1001)
	if !errors.Is(shrunk, tier.ErrChanged) || strings.Contains(shrunk.Error(), "attempts") {
		t.Errorf("a file that shrank, through all decorators: %v", shrunk)
	}
}

func TestFactRoundTrip(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*Store{"mem": newBench(t).Store, "thanos": overThanos(t)} {
		for _, f := range []tier.Fact{add(5), hole(6, 1, 2), start(7, 3), clip(8, 4)} {
			id := attempt(uint64(f.Position))
			if _, err := s.Fact(t.Context(), orders, f.Position, id); !errors.Is(err, tier.ErrVanished) {
				t.Errorf("%s: before it is put: %v", name, err)
			}
			if err := s.PutFact(t.Context(), orders, id, f); err != nil {
				t.Fatal(err)
			}
			got, err := s.Fact(t.Context(), orders, f.Position, id)
			if !reflect.DeepEqual(got, f) || err != nil {
				t.Errorf("%s: got %+v, %v; want %+v", name, got, err, f)
			}
		}
	}
}

// TestProveFact: only the entry that was put is well, not one that is sound and says something
// else.
func TestProveFact(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	prove := func() error { return b.ProveFact(t.Context(), orders, attempt(5), add(5)) }
	if err := prove(); err != nil {
		t.Fatal(err)
	}
	key := entryKey(t, b.Store, 5)
	b.published(t, add(5))
	sound, _ := b.mem.Object(key)
	if err := prove(); err != nil {
		t.Errorf("over what PutFact writes: %v", err)
	}
	other := add(5)
	other.Copied++
	b.published(t, other)
	otherwise, _ := b.mem.Object(key)
	for name, kept := range map[string][]byte{
		"of another fact": otherwise, "cut": sound[:len(sound)-1],
		"rotten": bytes.Replace(sound, []byte(ledger), bytes.ToUpper([]byte(ledger)), 1),
	} {
		b.faults.SetHook(fault.On(fault.OpUpload,
			fault.Effect{Mangle: func([]byte) []byte { return kept }}))
		if err := prove(); !errors.Is(err, tier.ErrDamaged) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.mem.Remove(key)
	b.faults.SetHook(fault.On(fault.OpUpload, fault.Effect{Late: true}))
	if err := prove(); !errors.Is(err, tier.ErrVanished) {
		t.Errorf("not there yet: %v", err)
	}
}

func TestFactIsChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.published(t, add(5), hole(6, 1, 2))
	fact := func(pos tier.Position) error {
		_, err := b.Fact(t.Context(), orders, pos, attempt(uint64(pos)))
		return err
	}
	five, six := entryKey(t, b.Store, 5), entryKey(t, b.Store, 6)
	sound, _ := b.mem.Object(five)
	if err := b.PutFact(t.Context(), orders, attempt(6), add(5)); err == nil {
		t.Error("put under another attempt: no error")
	}

	b.mem.Put(six, sound) // misplaced
	if err := fact(6); !errors.Is(err, tier.ErrDamaged) || !strings.Contains(err.Error(), six) {
		t.Errorf("misplaced: %v", err)
	}
	b.mem.Put(five, make([]byte, entryBytesMax+1))
	err := fact(5)
	if !errors.Is(err, tier.ErrDamaged) || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("too large: %v", err)
	}
	b.mem.Put(five, sound)
	for name, mangle := range map[string]func([]byte) []byte{
		"wrong": fault.Flip(300), "short": fault.Cut(300), "empty": fault.Cut(0), "long": fault.Pad(1),
	} {
		b.faults.SetHook(fault.On(fault.OpGet, fault.Effect{Mangle: mangle}))
		if err := fact(5); !errors.Is(err, tier.ErrDamaged) || !strings.Contains(err.Error(), five) {
			t.Errorf("%s read: %v", name, err)
		}
	}
	// A read that breaks off says nothing about the object.
	torn := fault.Effect{Mangle: fault.Cut(300), Err: io.ErrUnexpectedEOF}
	b.faults.SetHook(fault.On(fault.OpGet, torn))
	if err := fact(5); !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tier.ErrDamaged) {
		t.Errorf("broken off: %v", err)
	}
	b.faults.SetHook(nil)
	if err := fact(5); err != nil {
		t.Error(err)
	}
}

func TestCheckpointCanBePutAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.checkpointed(t, 1, 0, add(1), hole(2, 200, 300), add(3))
	key, err := b.keys.Checkpoint(orders, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := b.mem.Object(key)
	b.checkpointed(t, 1, 0, add(3), hole(2, 200, 300), add(1))
	if second, _ := b.mem.Object(key); !bytes.Equal(first, second) {
		t.Error("the bytes differ")
	}
	if err := b.PutCheckpoint(t.Context(), orders, tier.CheckpointLevelMax+1, 0, nil); err == nil {
		t.Error("a level too high: no error")
	}
	if err := b.PutCheckpoint(t.Context(), orders, 1, 0, []tier.Fact{add(64)}); err == nil {
		t.Error("a fact of another block: no error")
	}
}

// Every call on the bucket that a method makes fails once, each in turn. The method says so, and
// leaves the store such that doing it again succeeds.
func TestSweepOfFailures(t *testing.T) {
	t.Parallel()
	content := noise(1000)
	d := digest("f", content)
	methods := map[string]func(*bench) error{
		"put file": func(b *bench) error {
			return b.PutFile(t.Context(), file(1, "f"), at(content), 1000)
		},
		"put fact": func(b *bench) error { return b.PutFact(t.Context(), orders, attempt(2), add(2)) },
		"put checkpoint": func(b *bench) error {
			return b.PutCheckpoint(t.Context(), orders, 1, 0, []tier.Fact{add(1)})
		},
		"fact": func(b *bench) error {
			_, err := b.Fact(t.Context(), orders, 1, attempt(1))
			return err
		},
		"prove fact": func(b *bench) error {
			return b.ProveFact(t.Context(), orders, attempt(1), add(1))
		},
		"stat": func(b *bench) error { return b.StatFile(t.Context(), file(0, "f"), 1000) },
		"verify sample": func(b *bench) error {
			return b.VerifyFile(t.Context(), file(0, "f"), d, tier.VerifySample, at(content))
		},
		"verify full": func(b *bench) error {
			return b.VerifyFile(t.Context(), file(0, "f"), d, tier.VerifyFull, nil)
		},
		"manifest": func(b *bench) error {
			facts, problems, err := b.Manifest(t.Context(), orders)
			if err == nil && (len(facts) != 3 || len(problems) != 0) {
				return errors.New("incomplete")
			}
			return err
		},
		"probe": func(b *bench) error {
			_, err := b.Probe(t.Context(), "n", func() tier.Time { return 1 })
			return err
		},
	}
	for name, method := range methods {
		for n := 0; ; n++ {
			if n > 20 {
				t.Fatalf("%s: more than 20 calls", name)
			}
			b := newBench(t)
			b.published(t, add(1), add(70), add(4096))
			b.checkpointed(t, 2, 0, add(1), add(70))
			if err := b.PutFile(t.Context(), file(0, "f"), at(content), 1000); err != nil {
				t.Fatal(err)
			}
			nth := &fault.Nth{N: n, Effect: fault.Effect{Err: errBoom}}
			b.faults.SetHook(nth.Hook)
			err := method(b)
			if !nth.Fired() {
				if err != nil || n == 0 {
					t.Errorf("%s: %v after %d calls", name, err, n)
				}
				break
			}
			if !errors.Is(err, errBoom) || !strings.Contains(err.Error(), ledger+"/") {
				t.Errorf("%s, call %d fails: %v; want the cause and the key", name, n, err)
			}
			b.faults.SetHook(nil)
			if err := method(b); err != nil {
				t.Errorf("%s, again after call %d failed: %v", name, n, err)
			}
		}
	}
}

func TestNewIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := New(thanos.NewInMemBucket(), "a/b"); err == nil {
		t.Error("a ledger id with a slash: no error")
	}
	bad := tier.LogID{Table: "..", Name: "0"}
	b := newBench(t)
	k := file(0, "f")
	k.Log = bad
	for name, err := range map[string]error{
		"put file":       b.PutFile(t.Context(), k, at(nil), 0),
		"stat":           b.StatFile(t.Context(), k, 0),
		"verify":         b.VerifyFile(t.Context(), k, tier.FileDigest{}, tier.VerifySize, nil),
		"put fact":       b.PutFact(t.Context(), bad, attempt(1), add(1)),
		"prove fact":     b.ProveFact(t.Context(), bad, attempt(1), add(1)),
		"put checkpoint": b.PutCheckpoint(t.Context(), bad, 1, 0, nil),
		"fact": func() error {
			_, err := b.Fact(t.Context(), bad, 0, attempt(1))
			return err
		}(),
		"manifest": func() error {
			_, _, err := b.Manifest(t.Context(), bad)
			return err
		}(),
	} {
		if err == nil {
			t.Errorf("%s of the log %q: no error", name, bad)
		}
	}
	if got := b.mem.Keys(); !slices.Equal(got, []string{}) {
		t.Errorf("stored %v", got)
	}
}
