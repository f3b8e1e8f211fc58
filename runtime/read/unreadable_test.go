package read

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// TestWhatCannotBeReadIsNoHole: offsets that the source has, and that cannot be read there now, are
// not stepped over as if they were in neither tier.
func TestWhatCannotBeReadIsNoHole(t *testing.T) {
	t.Parallel()
	log := func(w *world, base tier.Offset) string {
		return filepath.Join(w.dir, orders.Table+"-"+orders.Name, name(base, ".log"))
	}
	for what, c := range map[string]struct {
		spoil func(w *world, s []tier.LocalSegment) error
		want  error
	}{
		"a damaged segment": {func(w *world, s []tier.LocalSegment) error {
			data, err := os.ReadFile(log(w, s[1].Base))
			w.must(err)
			data[len(data)/2] ^= 1
			return os.WriteFile(log(w, s[1].Base), data, 0o600)
		}, tier.ErrDamaged},
		"a segment that is gone": {func(w *world, s []tier.LocalSegment) error {
			return os.Remove(log(w, s[1].Base))
		}, tier.ErrVanished},
		"a partition that is gone": {func(w *world, _ []tier.LocalSegment) error {
			return os.RemoveAll(filepath.Dir(log(w, 0)))
		}, tier.ErrVanished},
		"another file": {func(w *world, s []tier.LocalSegment) error {
			data, err := os.ReadFile(log(w, s[1].Base))
			w.must(err)
			w.must(os.WriteFile(log(w, s[1].Base)+".new", data, 0o600))
			return os.Rename(log(w, s[1].Base)+".new", log(w, s[1].Base))
		}, tier.ErrChanged},
		"a shorter file": {func(w *world, s []tier.LocalSegment) error {
			return os.Truncate(log(w, s[1].Base), 0)
		}, tier.ErrChanged},
		"an active segment that is gone": {func(w *world, s []tier.LocalSegment) error {
			return os.Remove(log(w, s[len(s)-1].Base))
		}, tier.ErrVanished},
	} {
		w := kafkaWorld(t, "v4", orders)
		w.must(c.spoil(w, w.look(orders).Segments))
		if o, err := readOn(w, 0); !errors.Is(err, c.want) {
			t.Errorf("%s: read up to %d: %v, want %v", what, o, err, c.want)
		}
	}
}

// TestARecordedHoleIsSteppedOver: what is left on disk of a segment whose loss was accepted is read
// as far as it can be.
func TestARecordedHoleIsSteppedOver(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4", orders)
	scan := w.look(orders)
	w.append(tier.LogOpened{Log: orders, Source: scan.Source, Layout: scan.Layout,
		Incarnation: scan.Incarnation, Epoch: 1, Start: 0, State: tier.Enabled, At: w.now})
	w.append(tier.HoleRecorded{Log: orders, Hole: tier.Hole{Range: scan.Segments[1].Range,
		Cause: tier.HoleLossAccepted, At: w.now}})
	log := filepath.Join(w.dir, orders.Table+"-"+orders.Name, name(scan.Segments[1].Base, ".log"))
	data, err := os.ReadFile(log)
	w.must(err)
	data[len(data)/2] ^= 1
	w.must(os.WriteFile(log, data, 0o600))
	inside, behind := false, false
	for o := tier.Offset(0); ; {
		c, err := w.reader.Read(t.Context(), orders, o, 1)
		w.must(err)
		if c.Next == o {
			break
		}
		inside = inside || scan.Segments[1].Contains(c.Base)
		behind = behind || c.Base == scan.Segments[2].Base && len(c.Batches) > 0
		o = c.Next
	}
	if !inside || !behind {
		t.Errorf("within the hole %v, behind it %v", inside, behind)
	}
}

// TestASourceThatIsAwayEndsNoLog: offsets that the source had, and may have again, are not out of
// range while it cannot be read.
func TestASourceThatIsAwayEndsNoLog(t *testing.T) {
	t.Parallel()
	w := kafkaWorld(t, "v4", orders)
	w.archive(orders)
	w.scan()
	state, _ := w.ledger.Log(orders)
	tail, err := w.reader.Open(orders, 4999)
	w.must(err)
	w.must(os.Rename(w.dir, w.dir+"-away"))
	w.engine.Step(w.now, engine.SourceScanned{Source: "broker",
		Trouble: &tier.Reason{Code: tier.CodeSourceVanished}})
	for what, read := range map[string]func() error{
		"anew": func() error { _, err := w.reader.Read(t.Context(), orders, 4999, 1); return err },
		"on":   func() error { _, err := tail.Next(t.Context(), 1); return err },
	} {
		if err := read(); !errors.Is(err, ErrAway) {
			t.Errorf("reading %s: %v", what, err)
		}
	}
	if c, err := w.reader.Read(t.Context(), orders, state.Copied-1, 1); err != nil ||
		len(c.Batches) == 0 {
		t.Errorf("what is in the store: %v", err)
	}
	w.must(os.Rename(w.dir+"-away", w.dir))
	w.scan()
	if c, err := tail.Next(t.Context(), 1); err != nil || len(c.Batches) == 0 {
		t.Errorf("when it is back: %v", err)
	}
	_, err = w.reader.Read(t.Context(), orders, 5001, 1)
	wantRange(t, err, 0, 5000)
}

// readOn reads from the offset on, to the end or to an error.
func readOn(w *world, o tier.Offset) (tier.Offset, error) {
	for {
		c, err := w.reader.Read(w.t.Context(), orders, o, 1<<20)
		if err != nil || c.Next == o {
			return o, err
		}
		o = c.Next
	}
}
