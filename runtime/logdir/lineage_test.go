package logdir_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

// epochSegment writes a segment of batches with ten records, of one leader epoch after the other.
func (b *broker) epochSegment(dir string, base tier.Offset, epochs ...tier.LeaderEpoch) {
	b.t.Helper()
	var log []byte
	for i, e := range epochs {
		o := base + tier.Offset(10*i)
		log = kbatchtest.V2(log, kbatchtest.Spec{Base: o, Last: o + 9, Epoch: e, MaxTimestamp: 1,
			Body: 20})
	}
	b.put(file(dir, base, "log"), log)
}

// TestAScanSaysWhatTheSourceHasOnRecordOfItsLeaderEpochs: and keeps silent where that is missing or
// cannot be read, which is a problem and hides no segment.
func TestAScanSaysWhatTheSourceHasOnRecordOfItsLeaderEpochs(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		b := newBroker(w)
		b.seg("orders-0", 0, 100)
		b.seg("orders-0", 100, 150)
		s := b.open(tier.LayoutKafka)
		if got := scan(t, s, now).Scans[0]; got.Lineage != nil || !got.Whole {
			t.Fatalf("got %+v, want no lineage", got)
		}
		b.put("orders-0/leader-epoch-checkpoint", []byte("0\n2\n4 0\n7 120\n"))
		want := []tier.EpochStart{{Epoch: 4, Start: 0}, {Epoch: 7, Start: 120}}
		if got := look(t, s, "orders/0"); !slices.Equal(got.Lineage, want) {
			t.Fatalf("got %v, want %v", got.Lineage, want)
		}
		b.put("orders-0/leader-epoch-checkpoint", []byte("0\n2\n4 0\n"))
		got := look(t, s, "orders/0")
		if got.Lineage != nil || !got.Whole ||
			codes(got.Problems) != "orders-0/leader-epoch-checkpoint:unreadable" {
			t.Fatalf("got %v, whole %t, %s", got.Lineage, got.Whole, codes(got.Problems))
		}
	})
}

// TestBatchesAreWalkedAcrossSegments: those that have an offset in the range, also the active
// segment's, up to what is no batch.
func TestBatchesAreWalkedAcrossSegments(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		b := newBroker(w)
		b.epochSegment("orders-0", 0, 1, 1)
		b.epochSegment("orders-0", 20, 1, 3)
		b.epochSegment("orders-0", 40, 3)
		b.add(file("orders-0", 40, "log"), make([]byte, 100)) // a batch that is being written
		s := b.open(tier.LayoutKafka)
		walk := func(base, next tier.Offset, fn func(string) error) (string, error) {
			var seen []string
			err := s.Batches(context.Background(), logID(t, "orders/0"), tier.Range{Base: base, Next: next},
				func(r tier.Range, e tier.LeaderEpoch) error {
					seen = append(seen, fmt.Sprintf("%s:%d", r, e))
					return fn(seen[len(seen)-1])
				})
			return strings.Join(seen, " "), err
		}
		all := func(string) error { return nil }
		for _, c := range []struct {
			base, next tier.Offset
			want       string
		}{
			{0, 1000, "[0, 10):1 [10, 20):1 [20, 30):1 [30, 40):3 [40, 50):3"},
			{15, 31, "[10, 20):1 [20, 30):1 [30, 40):3"},
			{20, 30, "[20, 30):1"},
			{50, 60, ""},
		} {
			if got, err := walk(c.base, c.next, all); got != c.want || err != nil {
				t.Errorf("[%d, %d): %s, %v; want %s", c.base, c.next, got, err, c.want)
			}
		}
		enough := errors.New("enough")
		got, err := walk(0, 1000, func(string) error { return enough })
		if got != "[0, 10):1" || !errors.Is(err, enough) {
			t.Errorf("got %s, %v; want the walk to end at once", got, err)
		}
		err = s.Batches(context.Background(), logID(t, "orders/7"), tier.Range{Next: 10},
			func(tier.Range, tier.LeaderEpoch) error { return nil })
		if !errors.Is(err, tier.ErrVanished) {
			t.Errorf("got %v, want %v", err, tier.ErrVanished)
		}
	})
}

// TestAPlainLogHasNoBatches: nobody knows what is in its files; the hash alone tells them apart.
func TestAPlainLogHasNoBatches(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		w.put("orders/0/0.log", []byte("something"))
		w.put("orders/0/10.log", []byte("more"))
		s := w.open(tier.LayoutPlain)
		err := s.Batches(context.Background(), logID(t, "orders/0"), tier.Range{Next: 10},
			func(r tier.Range, _ tier.LeaderEpoch) error { return fmt.Errorf("a batch: %s", r) })
		if err != nil || look(t, s, "orders/0").Lineage != nil {
			t.Error(err)
		}
	})
}

// TestABatchThatIsCutShortIsOneByItsHeader: what is left of it says whose it is. Of one whose
// header is not whole that cannot be told.
func TestABatchThatIsCutShortIsOneByItsHeader(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		b := newBroker(w)
		for left, want := range map[int]string{
			kbatch.HeaderMax + 20: "[0, 10):1 [10, 20):2 [20, 30):2",
			kbatch.HeaderMax + 19: "[0, 10):1 [10, 20):2 [20, 30):2",
			kbatch.HeaderMax:      "[0, 10):1 [10, 20):2 [20, 30):2",
			kbatch.HeaderMax - 1:  "[0, 10):1 [20, 30):2",
			0:                     "[0, 10):1 [20, 30):2",
		} {
			dir := fmt.Sprintf("cut-%d", left)
			spec := kbatchtest.Spec{Base: 0, Last: 9, Epoch: 1, MaxTimestamp: 1, Body: 20}
			log := kbatchtest.V2(nil, spec)
			whole := len(log)
			spec.Base, spec.Last, spec.Epoch = 10, 19, 2
			log = kbatchtest.V2(log, spec)
			b.put(file(dir, 0, "log"), log[:whole+left])
			b.epochSegment(dir, 20, 2)
			var seen []string
			err := b.open(tier.LayoutKafka).Batches(context.Background(),
				logID(t, fmt.Sprintf("cut/%d", left)), tier.Range{Next: 30},
				func(r tier.Range, e tier.LeaderEpoch) error {
					seen = append(seen, fmt.Sprintf("%s:%d", r, e))
					return nil
				})
			if got := strings.Join(seen, " "); got != want || err != nil {
				t.Errorf("%d bytes are left: %s, %v; want %s", left, got, err, want)
			}
		}
	})
}
