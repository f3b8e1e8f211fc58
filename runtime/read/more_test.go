package read

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

// FuzzRecords: whatever a batch claims, decoding it ends, in an error or in records of its range.
func FuzzRecords(f *testing.F) {
	for _, set := range sets {
		logs, err := filepath.Glob(filepath.Join(fixtures, set, "*", "*.log"))
		if err != nil {
			f.Fatal(err)
		}
		for _, log := range logs {
			data, err := os.ReadFile(log)
			if err != nil || len(data) == 0 {
				continue
			}
			b, err := kbatch.Parse(data, 0, int64(len(data)))
			if err == nil && b.Size < 4096 {
				f.Add(data[:b.Size])
			}
		}
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		err := decode(p, func(r *Record) error {
			if r.Offset < 0 && len(p) > 16 && p[16] == 2 {
				t.Errorf("offset %d", r.Offset)
			}
			return nil
		})
		_ = err // whichever
	})
}

// TestABombIsNotDecompressed: a batch that claims to be gigabytes is an error, not memory.
func TestABombIsNotDecompressed(t *testing.T) {
	t.Parallel()
	bomb := binary.AppendUvarint(nil, 1<<40) // a snappy block that says so
	p := kbatchtest.V2(nil, kbatchtest.Spec{Last: 0, Codec: kbatch.Snappy})
	p = append(p, bomb...)
	binary.BigEndian.PutUint32(p[8:], uint32(len(p)-12))
	if err := decode(p, func(*Record) error { return nil }); !errors.Is(err, tier.ErrDamaged) {
		t.Errorf("%v, want damaged", err)
	}
}

// TestReadingAhead: behind a sequential reader the next chunks are there before it asks.
func TestReadingAhead(t *testing.T) {
	t.Parallel()
	w, id, content := plainLog(t, logdir.NextBaseSize, 20<<20, 10)
	w.archive(id)
	w.dropPlain(1)
	w.scan()
	w.reader.c.Ahead = 2
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.reader.Run(ctx) }()
	c, err := w.reader.Read(t.Context(), id, 0, 1<<20)
	w.must(err)
	for range 3 {
		if c, err = w.reader.Read(t.Context(), id, c.Next, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	give := time.After(10 * time.Second)
	for w.cache.Stats().FetchedBytes < 3*ChunkBytes {
		select {
		case <-give:
			t.Fatalf("%+v", w.cache.Stats())
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := w.readAll(id, 0, 3<<20); !bytes.Equal(got, content) {
		t.Errorf("%d bytes, want %d", len(got), len(content))
	}
}

// TestDisablingByDeleteEndsAReader: its copies leave the log at once; who was reading has the
// grace.
func TestDisablingByDeleteEndsAReader(t *testing.T) {
	t.Parallel()
	w := remoteWorld(t, epochs)
	local := w.look(epochs).Segments[0].Base
	c, err := w.reader.Open(epochs, 0)
	w.must(err)
	w.append(tier.TierChanged{Table: epochs.Table, State: tier.Disabling, Epoch: 2,
		Policy: tier.PolicyDelete, At: w.now})
	w.append(tier.StartMoved{Log: epochs, Start: local, At: w.now, Cause: tier.MoveDisabled,
		Expired: tier.RangeSet{{Base: 0, Next: local}}})
	_, err = w.reader.Read(t.Context(), epochs, 0, 1)
	wantRange(t, err, local, 320)
	first, err := c.Next(t.Context(), 1)
	if err != nil || len(first.Batches) == 0 {
		t.Errorf("within the grace: %v", err)
	}
	w.now += grace
	if _, err = c.Next(t.Context(), 1); !errors.Is(err, ErrGone) {
		t.Errorf("after the grace: %v", err)
	}
	if got := w.readAll(epochs, local, 1<<20); len(got) == 0 {
		t.Error("what is on disk is not read")
	}
}

// TestWhatADisablementRemovedIsNotLookedFor: the log begins where its source did when tiering was
// turned off with delete. When the copies are removed, and then the local segments, a reader who
// saw both is not sent to either.
func TestWhatADisablementRemovedIsNotLookedFor(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4", epochs)
	copies := w.archive(epochs)
	state, _ := w.ledger.Log(epochs)
	read := func(offsets ...tier.Offset) {
		t.Helper()
		for _, o := range offsets {
			_, err := w.reader.Read(t.Context(), epochs, o, 1)
			w.must(err)
		}
		_, err := w.reader.Counted(epochs)
		w.must(err)
	}
	read(0, state.Copied)
	w.append(tier.TierChanged{Table: epochs.Table, State: tier.Disabling, Epoch: 2,
		Policy: tier.PolicyDelete, At: w.now})
	w.append(tier.StartMoved{Log: epochs, Start: 0, At: w.now, Cause: tier.MoveDisabled})
	read(0, state.Copied)
	for pos := range copies {
		w.append(tier.CopyRemoved{Log: epochs, Position: tier.Position(pos), At: w.now})
	}
	w.drop(epochs, len(copies))
	w.scan()
	read(0, state.Copied)
}

// TestWhatLeftDoesNotComeBack with the tier epoch that follows, also before its log is in that: its
// source may be away for long.
func TestWhatLeftDoesNotComeBack(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4", epochs)
	w.archive(epochs)
	count := func(want bool) {
		t.Helper()
		if got, err := w.reader.Counted(epochs); err != nil || len(got) > 0 != want {
			t.Errorf("%v, %v; want any: %t", got, err, want)
		}
	}
	change := func(s tier.TierState, e tier.TierEpoch, p tier.DisablePolicy) {
		w.append(tier.TierChanged{Table: epochs.Table, State: s, Epoch: e, Policy: p, At: w.now})
	}
	change(tier.Disabling, 2, tier.PolicyRetain)
	change(tier.Disabled, 2, tier.PolicyRetain)
	change(tier.Enabled, 3, "")
	count(true)
	change(tier.Disabling, 4, tier.PolicyDelete)
	w.append(tier.StartMoved{Log: epochs, Start: 0, At: w.now, Cause: tier.MoveDisabled})
	change(tier.Disabled, 4, tier.PolicyDelete)
	count(false)
	change(tier.Enabled, 5, "")
	count(false)
}

// TestAnObjectThatGoesWithinTheGraceIsGone: whoever removed it, the reader is told the right thing.
func TestAnObjectThatGoesWithinTheGraceIsGone(t *testing.T) {
	t.Parallel()
	w := remoteWorld(t, epochs)
	c, err := w.reader.Open(epochs, 0)
	w.must(err)
	w.append(tier.StartMoved{Log: epochs, Start: 140, At: w.now, Cause: tier.MoveExpired,
		Expired: tier.RangeSet{{Base: 0, Next: 140}}})
	for _, key := range w.mem.Keys() {
		if strings.HasSuffix(key, name(0, ".log")) {
			w.mem.Remove(key)
		}
	}
	if _, err := c.Next(t.Context(), 1); !errors.Is(err, ErrGone) {
		t.Errorf("%v, want %v", err, ErrGone)
	}
	if len(w.suspects) > 0 {
		t.Errorf("it was taken for a loss: %v", w.suspects)
	}
}

// TestACopyThatEndsLateIsFound: copies of one log that finish out of their order.
func TestACopyThatEndsLateIsFound(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4", epochs)
	scan := w.look(epochs)
	w.append(tier.LogOpened{Log: epochs, Source: scan.Source, Layout: scan.Layout,
		Incarnation: scan.Incarnation, Epoch: 1, State: tier.Enabled, At: w.now})
	first := scan.Segments[0].Range
	content, err := w.src.Read(t.Context(), epochs, first)
	w.must(err)
	late := tier.Attempt{ID: tier.AttemptID{9}, Epoch: 1, Range: first, StartedAt: w.now,
		Names: []string{content.Files[0].Name}}
	content.Files = content.Files[:1]
	late.Position = w.append(tier.CopyStarted{Log: epochs, Attempt: late})
	w.copySegment(epochs, scan.Segments[1].Range)
	if c, err := w.reader.Read(t.Context(), epochs, 0, 1); err != nil || c.Base != 0 {
		t.Fatalf("%+v %v", c, err)
	}
	file, err := w.src.Open(t.Context(), epochs, content.Files[0].Name)
	w.must(err)
	w.must(w.store.PutFile(t.Context(), tier.ObjectKey{Log: epochs, Epoch: 1, Base: first.Base,
		Attempt: late.ID, Name: content.Files[0].Name}, file, content.Files[0].Size))
	w.must(file.Close())
	w.append(tier.CopyFinished{Log: epochs, Copy: tier.Copy{Attempt: late.ID, Position: late.Position,
		Epoch: 1, Content: content, ModTime: w.now, Verified: tier.VerifyFull, FinishedAt: w.now}})
	w.drop(epochs, 2)
	w.scan()
	n, _ := digest(t, w.readAll(epochs, 0, 1<<20), 0)
	if n != 320 {
		t.Errorf("%d records, want 320", n)
	}
}

// TestAWaitingReaderEndsWithItsContext, though the store never answers.
func TestAWaitingReaderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := remoteWorld(t, epochs)
	w.useCache(nil)
	hold := make(chan struct{})
	asked := make(chan struct{}, 8)
	w.bucket.SetHook(func(fault.Op) fault.Effect {
		asked <- struct{}{}
		<-hold
		return fault.Effect{}
	})
	first := make(chan error, 1)
	go func() {
		_, err := w.reader.Read(context.WithoutCancel(t.Context()), epochs, 0, 1)
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() {
		_, err := w.reader.Read(ctx, epochs, 0, 1)
		second <- err
	}()
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(hold)
	if err := <-first; err != nil {
		t.Errorf("the other reader: %v", err)
	}
}
