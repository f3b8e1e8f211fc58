package read

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/runtime/tier"
)

var sets = []string{"v4", "v4-live", "magic0", "magic1"}

// TestEveryFixtureIsReadBack reads real directories of brokers from either tier, and from both, and
// compares every byte with the files, and every record with what a real consumer read.
func TestEveryFixtureIsReadBack(t *testing.T) {
	t.Parallel()
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			w := kafkaWorld(t, set)
			for _, p := range expected(t, set) {
				id := p.id()
				want := w.raw(id)
				compareLog(t, w, &p, want, "local")
				copied := len(w.archive(id))
				compareLog(t, w, &p, want, "both")
				for _, n := range []int{copied / 2, copied - copied/2} {
					w.drop(id, n)
					compareLog(t, w, &p, want, "gone since the scan")
					w.scan()
					compareLog(t, w, &p, want, "scanned anew")
				}
			}
		})
	}
}

// compareLog reads the whole log and compares. Bytes above the high watermark, and those below the
// source's start that no copy has, are not to be served.
func compareLog(t *testing.T, w *world, p *partition, raw []byte, tiers string) {
	t.Helper()
	l, ok := w.reader.Log(p.id())
	if !ok || l.End != p.HighWatermark || l.Start > p.LogStart {
		t.Errorf("%s %s: bounds [%d, %d) %v, want [%d, %d)", p.Dir, tiers, l.Start, l.End, ok, p.LogStart,
			p.HighWatermark)
		return
	}
	var first []byte
	for _, maxBytes := range []int64{5000, 1 << 20} {
		got := w.readAll(p.id(), l.Start, maxBytes)
		if first == nil {
			first = got
		}
		if !bytes.Equal(got, first) {
			t.Errorf("%s %s: %d bytes by %d, and %d by 5000", p.Dir, tiers, len(got), maxBytes, len(first))
		}
	}
	if p.LogStart == p.LogEnd {
		raw = nil // DeleteRecords took everything, and left the segment where it was
	}
	if i := bytes.Index(raw, first); i < 0 || p.LogEnd == l.End && i+len(first) != len(raw) {
		t.Errorf("%s %s: %d bytes are not the end of the files' %d", p.Dir, tiers, len(first), len(raw))
	}
	if p.LogEnd != p.HighWatermark {
		return // what the consumer of expected.json read is more
	}
	n, sum := digest(t, first, p.LogStart)
	if n != p.ReadUncommitted.Records || sum != p.ReadUncommitted.SHA256 {
		t.Errorf("%s %s: %d records %s, want %d %s", p.Dir, tiers, n, sum, p.ReadUncommitted.Records,
			p.ReadUncommitted.SHA256)
	}
}

// TestReadAnyOffset reads from each single offset: the first batch contains or follows it.
func TestReadAnyOffset(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4")
	for _, p := range expected(t, "v4") {
		id := p.id()
		all := map[tier.Offset]bool{}
		err := decode(w.readAll(id, p.LogStart, 1<<20), func(r *Record) error {
			all[r.Offset] = true
			return nil
		})
		w.must(err)
		w.drop(id, len(w.archive(id)))
		w.scan()
		for o := p.LogStart; o < p.HighWatermark; o += 31 {
			w.reader.hints = hints{}
			first := o
			for ; first < p.HighWatermark && !all[first]; first++ {
			}
			c, err := w.reader.Read(t.Context(), id, o, 1)
			w.must(err)
			got := tier.Offset(-1)
			w.must(decode(c.Batches, func(r *Record) error {
				if got < 0 && r.Offset >= o {
					got = r.Offset
				}
				return nil
			}))
			if got < 0 && c.Next > o && first >= c.Next { // an empty batch
				continue
			}
			if got != first && first < p.HighWatermark {
				t.Errorf("%s from %d: first record %d, want %d", p.Dir, o, got, first)
			}
		}
	}
}

func TestOutOfRange(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4")
	id := tier.LogID{Table: "codec-gzip", Name: "0"}
	for _, o := range []tier.Offset{-1, 481, 1 << 60} {
		_, err := w.reader.Read(t.Context(), id, o, 1)
		wantRange(t, err, 0, 480)
	}
	c, err := w.reader.Read(t.Context(), id, 480, 1)
	if err != nil || len(c.Batches) > 0 || c.Next != 480 {
		t.Errorf("at the end: %+v %v", c, err)
	}
	if _, err := w.reader.Read(t.Context(), tier.LogID{Table: "no", Name: "0"}, 0, 1); err == nil {
		t.Error("a log that nobody has was read")
	}
}

func TestTimestamps(t *testing.T) {
	t.Parallel()
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			w := kafkaWorld(t, set)
			for _, p := range expected(t, set) {
				if p.CleanupPolicy == "compact" || p.id().Table == "formerly-compacted" {
					continue // where the broker's own answer is not the first record
				}
				compareTimes(t, w, &p)
				copied := len(w.archive(p.id()))
				w.drop(p.id(), copied)
				w.scan()
				compareTimes(t, w, &p)
			}
		})
	}
}

func compareTimes(t *testing.T, w *world, p *partition) {
	t.Helper()
	for _, x := range p.TimestampLookups {
		if x.Offset < 0 || x.Offset >= p.HighWatermark {
			continue
		}
		l, _ := w.reader.Log(p.id())
		o, at, ok, err := w.reader.ForTime(t.Context(), p.id(), x.AtOrAfter)
		if l.Start < p.LogStart && o < p.LogStart {
			continue // the archive begins sooner than the broker's log
		}
		if err != nil || !ok || o != x.Offset || at != x.Timestamp {
			t.Errorf("%s at %d: %d %d %v %v, want %d %d", p.Dir, x.AtOrAfter, o, at, ok, err, x.Offset,
				x.Timestamp)
		}
	}
	if _, _, ok, err := w.reader.ForTime(t.Context(), p.id(), 1<<62); ok || err != nil {
		t.Errorf("%s: a record after the end of time: %v %v", p.Dir, ok, err)
	}
}

func TestEpochsAndAbortedTransactions(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4")
	for _, p := range expected(t, "v4") {
		for _, tiers := range []string{"local", "remote"} {
			compareEpochs(t, w, &p, tiers)
			compareAborted(t, w, &p, tiers)
			if tiers == "local" {
				w.drop(p.id(), len(w.archive(p.id())))
				w.scan()
			}
		}
	}
}

func compareEpochs(t *testing.T, w *world, p *partition, tiers string) {
	t.Helper()
	got, err := w.reader.Epochs(p.id())
	w.must(err)
	got = slices.DeleteFunc(append([]tier.EpochStart{}, got...), func(e tier.EpochStart) bool {
		return e.Start >= p.LogEnd
	})
	want := []tier.EpochStart{}
	l, _ := w.reader.Log(p.id())
	for _, e := range p.LeaderEpochs {
		if e.Start < p.LogEnd && p.LogStart < p.LogEnd {
			want = append(want, tier.EpochStart{Epoch: e.Epoch, Start: max(e.Start, l.Start)})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s %s: epochs: %s", p.Dir, tiers, diff)
	}
}

// countedLedger and countedLocal count what is looked up, and what is opened.
type countedLedger struct {
	Ledger
	facts int
}

func (c *countedLedger) Facts(id tier.LogID, from, to tier.Position) ([]tier.Fact, error) {
	c.facts++
	return c.Ledger.Facts(id, from, to)
}

type countedLocal struct {
	Local
	opened int
}

func (c *countedLocal) Open(ctx context.Context, id tier.LogID, name string) (File, error) {
	c.opened++
	return c.Local.Open(ctx, id, name)
}

// TestWithoutAbortsNothingIsOpened: every read of read_committed asks for aborted transactions, and
// most logs have none: what is behind the range costs nothing then, however long the log is.
func TestWithoutAbortsNothingIsOpened(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4", orders, epochs)
	w.drop(orders, len(w.archive(orders)))
	w.scan()
	ledger, local := &countedLedger{Ledger: w.ledger}, &countedLocal{Local: w}
	w.reader.c.Ledger, w.reader.c.Local = ledger, local
	for _, id := range []tier.LogID{orders, epochs} { // one in the store, one on disk
		for range 2 {
			ledger.facts, local.opened = 0, 0
			if list, err := w.reader.Aborted(t.Context(), id, 0, 10); err != nil || len(list) > 0 {
				t.Errorf("%s: %v %v", id, list, err)
			}
		}
		// What is being written is opened each time: a transaction may be aborted at any moment.
		if ledger.facts > 0 || local.opened > 3 {
			t.Errorf("%s: %d looks into the ledger, %d files opened", id, ledger.facts, local.opened)
		}
	}
}

func compareAborted(t *testing.T, w *world, p *partition, tiers string) {
	t.Helper()
	l, _ := w.reader.Log(p.id())
	got, err := w.reader.Aborted(t.Context(), p.id(), l.Start, l.End)
	w.must(err)
	var want []AbortedTxn
	for _, a := range p.Aborted {
		want = append(want, AbortedTxn{a.ProducerID, a.FirstOffset, a.LastOffset, a.LastStable})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s %s: aborted: %s", p.Dir, tiers, diff)
	}
	for o := l.Start; o < l.End; o += 37 { // each that touches the range, whichever segment has it
		got, err := w.reader.Aborted(t.Context(), p.id(), o, o+5)
		w.must(err)
		for _, a := range want {
			if a.Last >= o && a.First < o+5 && !slices.Contains(got, a) {
				t.Errorf("%s %s: [%d, %d) lacks %+v", p.Dir, tiers, o, o+5, a)
			}
		}
	}
}
