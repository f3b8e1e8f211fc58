package offsetstest

import (
	"context"
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// testModel appends random records to a ledger and to the model, with restarts in between. Both
// must agree on every refusal, every position and, in the end, on everything.
func testModel(t *testing.T, newDisk func(t *testing.T) Disk) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &run{T: rt, disk: newDisk(t), model: newModel()}
		r.restart()
		defer func() { r.ledger.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"open":     r.open,
			"start":    r.start,
			"settle":   r.settle,
			"step":     r.step,
			"epoch":    r.openEpoch,
			"move":     r.move,
			"remove":   r.remove,
			"anything": r.anything,
			"restart":  func(*rapid.T) { r.restart() },
			"": func(*rapid.T) {
				for id, l := range r.model.logs {
					if got, _ := r.ledger.Log(id); got.Copied != l.copied() {
						rt.Fatalf("copied offset of %s: got %d, want %d", id, got.Copied, l.copied())
					}
				}
			},
		})
		r.restart()
	})
}

// run is one random sequence.
type run struct {
	*rapid.T
	disk   Disk
	ledger *offsets.Ledger
	model  *model
}

// restart compares everything, closes the ledger and opens it again.
func (r *run) restart() {
	if r.ledger != nil {
		r.compare()
		if err := r.ledger.Close(); err != nil {
			r.Fatalf("close: %v", err)
		}
	}
	m, err := r.disk()
	if err != nil {
		r.Fatalf("open the medium: %v", err)
	}
	if r.ledger, err = offsets.Open(m); err != nil {
		r.Fatalf("open the ledger: %v", err)
	}
	r.compare()
}

func (r *run) compare() {
	got, err := Take(r.ledger)
	if err != nil {
		r.Fatalf("read the ledger: %v", err)
	}
	want := r.model.snapshot(r.ledger.ID())
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		r.Fatalf("-model +ledger:\n%s", diff)
	}
}

// both appends a record to ledger and model.
func (r *run) both(rec tier.Record) {
	pos, err := r.ledger.Append(context.Background(), rec)
	if err != nil && !errors.Is(err, tier.ErrRefused) {
		r.Fatalf("append %T: %v", rec, err)
	}
	want, ok := r.model.apply(rec)
	if ok != (err == nil) || pos != want {
		r.Fatalf("append %T: got position %d, error %v; the model says %d, %t", rec, pos, err, want, ok)
	}
}

func drawLog(t *rapid.T) tier.LogID {
	return rapid.SampledFrom([]tier.LogID{orders0, orders1, deep}).Draw(t, "log")
}

func drawRange(t *rapid.T) tier.Range {
	base := tier.Offset(rapid.IntRange(0, 40).Draw(t, "base"))
	return span(base, base+tier.Offset(rapid.IntRange(0, 12).Draw(t, "length")))
}

// oneIn is true in one of n draws.
func oneIn(t *rapid.T, n int, what string) bool {
	return rapid.IntRange(1, n).Draw(t, what) == n
}

func drawTime(t *rapid.T) tier.Time { return t0 + tier.Time(rapid.IntRange(0, 99).Draw(t, "at")) }

func (r *run) open(t *rapid.T) {
	rec := opened(drawLog(t), tier.Offset(rapid.IntRange(0, 8).Draw(t, "start")))
	rec.State = rapid.SampledFrom([]tier.TierState{"", tier.Enabled, tier.Enabled, tier.Disabled,
		tier.Disabling}).Draw(t, "state")
	if table, ok := r.model.tables[rec.Log.Table]; ok && !oneIn(t, 5, "other epoch") {
		rec.Epoch = table.Epoch
	}
	if oneIn(t, 4, "other incarnation") {
		rec.Incarnation = "BBBB"
	}
	r.both(rec)
}

func (r *run) start(t *rapid.T) {
	id := drawLog(t)
	a := attempt(rapid.IntRange(0, 300).Draw(t, "attempt"), drawRange(t))
	if table, ok := r.model.tables[id.Table]; ok {
		a.Epoch = table.Epoch
	}
	if oneIn(t, 9, "other epoch") {
		a.Epoch += rapid.SampledFrom([]tier.TierEpoch{1, ^tier.TierEpoch(0)}).Draw(t, "by")
	}
	r.both(started(id, a))
}

// settle ends an attempt that is under way, or tries to end one that is not.
func (r *run) settle(t *rapid.T) {
	id := drawLog(t)
	a := attempt(rapid.IntRange(0, 300).Draw(t, "attempt"), drawRange(t))
	a.Position = tier.Position(rapid.IntRange(0, 30).Draw(t, "position"))
	if l := r.model.logs[id]; l != nil && len(l.attempts) > 0 && !oneIn(t, 10, "miss") {
		a = rapid.SampledFrom(ascending(l.attempts)).Draw(t, "under way")
	}
	abandon := 4
	if r.model.tables[id.Table].State == tier.Disabling {
		abandon = 2
	}
	if oneIn(t, abandon, "abandon") {
		r.both(tier.CopyAbandoned{Log: id, Position: a.Position, Cause: "drawn", At: t0})
		return
	}
	r.both(finished(id, a))
}

// step changes the state of a table, mostly to one that may follow.
func (r *run) step(t *rapid.T) {
	id := drawLog(t)
	table := r.model.tables[id.Table]
	rec := tier.TierChanged{Table: id.Table, At: drawTime(t)}
	rec.State = rapid.SampledFrom([]tier.TierState{tier.Enabled, tier.Disabling, tier.Disabled,
		""}).Draw(t, "state")
	rec.Epoch = table.Epoch + tier.TierEpoch(rapid.IntRange(0, 2).Draw(t, "rise"))
	rec.Policy = rapid.SampledFrom([]tier.DisablePolicy{"", tier.PolicyRetain,
		tier.PolicyDelete}).Draw(t, "policy")
	if !oneIn(t, 4, "any") {
		for _, i := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "steps") {
			s := steps[i]
			if s.from == table.State && s.before == table.Policy {
				rec.State, rec.Policy, rec.Epoch = s.to, s.policy, table.Epoch+s.rise
				break
			}
		}
	}
	r.both(rec)
}

func (r *run) openEpoch(t *rapid.T) {
	id := drawLog(t)
	table := r.model.tables[id.Table]
	rec := tier.EpochOpened{Log: id, Epoch: table.Epoch, At: drawTime(t),
		Start: tier.Offset(rapid.IntRange(0, 20).Draw(t, "start"))}
	if l := r.model.logs[id]; l != nil {
		rec.Fresh = l.epoch < table.Fresh
	}
	if oneIn(t, 6, "other") {
		rec.Fresh = !rec.Fresh
	}
	if oneIn(t, 6, "other epoch") {
		rec.Epoch++
	}
	r.both(rec)
}

// move moves a start over copies, mostly over the oldest ones.
func (r *run) move(t *rapid.T) {
	id := drawLog(t)
	l := r.model.logs[id]
	if l == nil {
		return
	}
	rec := tier.StartMoved{Log: id, At: drawTime(t),
		Start: tier.Offset(rapid.IntRange(0, 50).Draw(t, "start")),
		Cause: rapid.SampledFrom([]tier.MoveCause{tier.MoveExpired, tier.MoveExpired,
			tier.MoveDisabled, tier.MoveDropped}).Draw(t, "cause")}
	if all := ascending(l.copies); len(all) > 0 && !oneIn(t, 5, "any start") {
		rec.Start = rapid.SampledFrom(all).Draw(t, "copy").Content.Range.Next
	}
	if !oneIn(t, 4, "of nothing") {
		rec.Expired = rangesOf(func(o tier.Offset) bool { return o < rec.Start && l.proved(o) })
	}
	if oneIn(t, 8, "of anything") {
		rec.Expired = rec.Expired.Add(drawRange(t))
	}
	if oneIn(t, 2, "braked") {
		rec.Window = r.model.tables[id.Table].Window.At(rec.At, 50).Plus(2, 9000)
	}
	r.both(rec)
}

// remove removes a copy or a tombstone, or tries to.
func (r *run) remove(t *rapid.T) {
	id := drawLog(t)
	pos := tier.Position(rapid.IntRange(0, 30).Draw(t, "position"))
	l := r.model.logs[id]
	if l == nil {
		l = &modelLog{}
	}
	if oneIn(t, 3, "tombstone") {
		if all := ascending(l.tombstones); len(all) > 0 {
			pos = rapid.SampledFrom(all).Draw(t, "abandoned").Position
		}
		r.both(tier.TombstoneCleared{Log: id, Position: pos, At: t0})
		return
	}
	if all := ascending(l.copies); len(all) > 0 {
		pos = rapid.SampledFrom(all).Draw(t, "copy").Position
	}
	r.both(tier.CopyRemoved{Log: id, Position: pos, At: t0})
}

// anything appends one of the other records.
func (r *run) anything(t *rapid.T) {
	id, pos := drawLog(t), tier.Position(rapid.IntRange(0, 30).Draw(t, "position"))
	at := drawTime(t)
	l := r.model.logs[id]
	switch rapid.IntRange(0, 12).Draw(t, "record") {
	case 0, 1:
		r.both(hole(id, drawRange(t)))
	case 2:
		r.both(tier.Published{Log: id, Position: pos})
	case 3:
		r.both(tier.Checkpointed{Log: id, Level: 1, Block: uint64(pos) / 20})
	case 4:
		r.both(tier.ClockSeen{At: at})
	case 5:
		rec := reidentified(id, finished(id, attempt(1, drawRange(t))).Copy)
		rec.Position = pos
		if l != nil && len(l.copies) > 0 {
			rec = reidentified(id, rapid.SampledFrom(ascending(l.copies)).Draw(t, "copy"))
		}
		r.both(rec)
	case 6:
		if l != nil && l.copied() > l.start {
			w := r.model.tables[id.Table].Window.At(at, 50).Plus(1, 6000)
			rec := localDeleted(id, span(l.start, l.copied()), w)
			rec.At = at
			r.both(rec)
		}
	case 7:
		r.both(tier.TablePaused{Table: id.Table, Reason: pauseReason, At: at})
	case 8:
		r.both(tier.TableResumed{Table: id.Table, At: at})
	case 9:
		r.both(tier.TableGoverned{Table: id.Table, At: at,
			Entry: rapid.SampledFrom([]string{"", "tierd.yaml:7"}).Draw(t, "entry")})
	case 10:
		r.both(tier.ClockAccepted{At: at})
	case 12:
		r.both(tier.TableDropped{Table: id.Table, At: at})
	case 11:
		r.both(tier.Diverged{Log: id, At: at,
			Offset: tier.Offset(rapid.IntRange(0, 50).Draw(t, "offset"))})
	}
}
