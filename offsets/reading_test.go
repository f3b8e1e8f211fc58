package offsets_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/offsets/offsetstest"
	"github.com/tierd/tierd/runtime/tier"
)

// TestReading: after each record the reading says what a ledger says that is opened then, and what
// it has of a log is another one exactly if that changed.
func TestReading(t *testing.T) {
	t.Parallel()
	m := offsets.NewMemory([16]byte{1})
	l, err := offsets.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	var r offsets.Reading
	kept := 0
	for i, record := range offsetstest.History() {
		if _, err := l.Append(context.Background(), record); err != nil {
			t.Fatalf("append %T: %v", record, err)
		}
		before := map[tier.LogID]*offsets.LogReading{}
		for _, log := range r.Logs {
			before[log.State.Log] = log
		}
		if err := r.Read(m); err != nil {
			t.Fatal(err)
		}
		want := snapshot(t, m.Clone())
		logs := make([]offsets.LogReading, len(want.Logs))
		for i, log := range want.Logs {
			logs[i] = offsets.LogReading{State: log.State, Facts: log.Facts, Attempts: log.Attempts,
				Tombstones: log.Tombstones}
		}
		ascending := slices.SortedFunc(slices.Values(r.Logs), func(a, b *offsets.LogReading) int {
			return a.State.Log.Compare(b.State.Log)
		})
		for i, log := range ascending {
			if diff := gocmp.Diff(&logs[i], log, cmpopts.IgnoreUnexported(offsets.LogReading{}),
				cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("after record %d, %T (-want +got):\n%s", i, record, diff)
			}
			if log == before[log.State.Log] {
				kept++
			}
		}
		if diff := gocmp.Diff(want.Tables, r.Tables, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("after record %d, %T (-want +got):\n%s", i, record, diff)
		}
		if len(r.Logs) != len(logs) || r.ID != want.ID {
			t.Fatalf("%d logs of ledger %s, want %d of %s", len(r.Logs), r.ID, len(logs), want.ID)
		}
	}
	if kept == 0 {
		t.Error("nothing was ever kept")
	}
	again := slices.Clone(r.Logs)
	if err := cmp.Or(r.Read(m), r.Read(m.Clone())); err != nil || !slices.Equal(again, r.Logs) {
		t.Errorf("what did not change was decoded anew: %v", err)
	}
}

// TestReadingGoesBack: what is read depends on nothing that was read before, be it older, younger,
// or of a ledger without the logs.
func TestReadingGoesBack(t *testing.T) {
	t.Parallel()
	m := offsets.NewMemory([16]byte{1})
	l, err := offsets.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	media := []*offsets.Memory{m.Clone()}
	for _, record := range offsetstest.History() {
		if _, err := l.Append(context.Background(), record); err != nil {
			t.Fatalf("append %T: %v", record, err)
		}
		media = append(media, m.Clone())
	}
	var r offsets.Reading
	for i := range 2 * len(media) {
		at := i * 31 % len(media) // back and forth
		var fresh offsets.Reading
		if err := cmp.Or(r.Read(media[at]), fresh.Read(media[at])); err != nil {
			t.Fatalf("after %d records: %v", at, err)
		}
		if diff := gocmp.Diff(&fresh, &r, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(
			offsets.Reading{}, offsets.LogReading{})); diff != "" {
			t.Fatalf("after %d records (-want +got):\n%s", at, diff)
		}
	}
}

// TestReadingFindsDamage of each entry, also of one that it has read before, and keeps what it has.
func TestReadingFindsDamage(t *testing.T) {
	t.Parallel()
	m := historic(t)
	var r offsets.Reading
	if err := r.Read(m); err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(r.Logs)
	for _, e := range entries(t, m) {
		value := slices.Clone(e.value)
		value[len(value)/2] ^= 1
		if err := r.Read(changed(t, m, e.key, value)); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("entry %x is damaged, and the error %v", e.key, err)
		}
	}
	for _, e := range entries(t, m) {
		err := r.Read(changed(t, m, e.key, nil))
		if e.key[0] != 0 && !errors.Is(err, tier.ErrDamaged) { // a ledger without a root is none
			t.Errorf("entry %x is lost, and the error %v", e.key, err)
		}
	}
	if !slices.Equal(before, r.Logs) {
		t.Error("a ledger that cannot be read has changed the reading")
	}
}
