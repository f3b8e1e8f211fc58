package offsets

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// A draft is all that one record changes. The rules make drafts and change nothing themselves, so
// that a refused record leaves no trace.
type draft struct {
	position tier.Position // that the record took, if it takes one
	log      *header       // the log's new header, if it changes
	opened   bool          // log is new
	table    *tier.TableState
	clock    *tier.Time // the new one, if it changes
	underWay int64      // how many attempts more are under way in the table
	puts     []entry
	deletes  [][]byte
	// alarm says that the record, which tells what happened, shows that an invariant was broken
	// outside. The record is kept, and then the ledger stops.
	alarm error
}

// entry is a key with the body of its value.
type entry struct {
	key, body []byte
	isNew     bool // the key has no value yet, for certain
}

// refuse says why a record would break an invariant.
func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", tier.ErrRefused, fmt.Errorf(format, args...))
}

// decide checks a record against what the ledger holds and the group already changed. An error that
// wraps tier.ErrRefused concerns the record; any other one the ledger.
func decide(g *group, r tier.Record) (draft, error) {
	switch r := r.(type) {
	case tier.LogOpened:
		return openLog(g, r)
	case tier.TablePaused:
		return pauseTable(g, r)
	case tier.TableResumed:
		return resumeTable(g, r)
	case tier.TierChanged:
		return changeTier(g, r)
	case tier.TableGoverned:
		return governTable(g, r)
	case tier.TableDropped:
		return dropTable(g, r)
	case tier.ClockSeen:
		at := max(g.root.clock, r.At)
		return draft{clock: &at}, nil
	case tier.ClockAccepted:
		return draft{clock: &r.At}, nil
	case nil:
		return draft{}, refuse("no record")
	}
	old, err := g.log(r.Subject())
	if err != nil {
		return draft{}, err
	}
	if old == nil {
		return draft{}, refuse("log %s was never opened", r.Subject())
	}
	switch r := r.(type) {
	case tier.CopyStarted:
		return startCopy(g, old, r)
	case tier.CopyFinished:
		return finishCopy(g, old, r)
	case tier.CopyAbandoned:
		return abandonCopy(g, old, r)
	case tier.CopyReidentified:
		return reidentifyCopy(g, old, r)
	case tier.HoleRecorded:
		return recordHole(g, old, r)
	case tier.Published:
		return publish(g, old, r)
	case tier.Checkpointed:
		return checkpoint(g, old, r)
	case tier.LocalDeleted:
		return deleteLocal(g, old, r)
	case tier.LossAccepted:
		return acceptLoss(old, r)
	case tier.EpochOpened:
		return openEpoch(g, old, r)
	case tier.StartMoved:
		return moveStart(g, old, r)
	case tier.CopyRemoved:
		return removeCopy(g, old, r)
	case tier.TombstoneCleared:
		return clearTombstone(g, old, r)
	case tier.Diverged:
		return diverge(g, old, r)
	default:
		return draft{}, refuse("the ledger has no rule for %T", r)
	}
}

// openLog begins a log. Seen again it is the same log only if its incarnation is.
func openLog(g *group, r tier.LogOpened) (draft, error) {
	if err := r.Log.Validate(); err != nil {
		return draft{}, refuse("%w", err)
	}
	if n := len(r.Log.String()); n > nameBytesMax {
		return draft{}, refuse("the log id has %d bytes, more than %d", n, nameBytesMax)
	}
	old, err := g.log(r.Log)
	if err != nil {
		return draft{}, err
	}
	if old != nil {
		if old.state.Source == "" {
			return findLog(old, r)
		}
		if old.state.Incarnation != r.Incarnation {
			return draft{}, refuse("log %s is known as incarnation %q, this is %q", r.Log,
				old.state.Incarnation, r.Incarnation)
		}
		return moveLog(old, r)
	}
	if r.Start < 0 {
		return draft{}, refuse("log %s: the start %d is below 0", r.Log, r.Start)
	}
	d := draft{opened: true}
	table, ok := g.table(r.Log.Table)
	if !ok {
		table = tier.TableState{Table: r.Log.Table, State: cmp.Or(r.State, tier.Enabled), Epoch: 1,
			Since: r.At}
		d.table = &table
	}
	if !ok && table.State != tier.Enabled && table.State != tier.Disabled {
		return draft{}, refuse("log %s: its table cannot begin as %q", r.Log, r.State)
	}
	if r.Epoch != table.Epoch {
		return draft{}, refuse("log %s: tier epoch %d is not the table's, %d", r.Log, r.Epoch,
			table.Epoch)
	}
	d.log = &header{number: g.root.nextLog, state: tier.LogState{
		Log: r.Log, Source: r.Source, Layout: r.Layout, Incarnation: r.Incarnation,
		Epoch: r.Epoch, Start: r.Start, Copied: r.Start, LogStart: r.Start,
	}}
	if table.State != tier.Enabled {
		d.log.state.Fresh = r.Epoch // nothing is copied in this epoch
	}
	return d, nil
}

// findLog is for a log that was in no source when the ledger was rebuilt, and is in one now. Where
// no fact told which one it was, it is the one that is found.
func findLog(old *header, r tier.LogOpened) (draft, error) {
	if old.state.Incarnation != "" && old.state.Incarnation != r.Incarnation {
		return draft{}, refuse("log %s is known as incarnation %q, this is %q", r.Log,
			old.state.Incarnation, r.Incarnation)
	}
	h := *old
	h.state.Source, h.state.Layout, h.state.Incarnation = r.Source, r.Layout, r.Incarnation
	return draft{log: &h}, nil
}

// moveLog takes over the source in which a known log is seen. Where nothing in it says that it is
// the same log, another source may have another of that name.
func moveLog(old *header, r tier.LogOpened) (draft, error) {
	switch {
	case old.state.Source == r.Source:
		return draft{}, nil
	case r.Incarnation == "":
		return draft{}, refuse("log %s is known in the source %q, and nothing tells that it is the one "+
			"in %q", r.Log, old.state.Source, r.Source)
	}
	h := *old
	h.state.Source = r.Source
	return draft{log: &h}, nil
}

// tableOf returns the state of the log's table, which is there if the log is.
func tableOf(g *group, id tier.LogID) (tier.TableState, error) {
	table, ok := g.table(id.Table)
	if !ok {
		return table, fmt.Errorf("table %q of log %s: %w: it has no entry", id.Table, id,
			tier.ErrDamaged)
	}
	return table, nil
}

// checkEpoch refuses what belongs to an epoch that is over, to one that the log was not brought
// into yet, or to a table that does not tier.
func checkEpoch(g *group, h *header, epoch tier.TierEpoch) error {
	id := h.state.Log
	table, err := tableOf(g, id)
	if err != nil {
		return err
	}
	if table.State != tier.Enabled {
		return refuse("log %s: the tier state of its table is %s", id, table.State)
	}
	if epoch != table.Epoch {
		return refuse("log %s: tier epoch %d is not the table's, %d", id, epoch, table.Epoch)
	}
	if h.state.Epoch != epoch {
		return refuse("log %s: it is still in tier epoch %d, not in %d", id, h.state.Epoch, epoch)
	}
	return nil
}

// startCopy reserves the next position for an attempt that was never seen before.
func startCopy(g *group, old *header, r tier.CopyStarted) (draft, error) {
	a := r.Attempt
	if err := checkEpoch(g, old, a.Epoch); err != nil {
		return draft{}, err
	}
	if a.Range.Empty() || a.Range.Base < 0 {
		return draft{}, refuse("log %s: %s is no range to copy", r.Log, a.Range)
	}
	idKey := attemptIDKey(a.ID)
	if body, err := g.get(idKey); err != nil {
		return draft{}, err
	} else if body != nil {
		return draft{}, refuse("log %s: attempt %s is known already", r.Log, a.ID)
	}
	h := *old
	h.state.Emptied = false
	a.Position = h.takePosition()
	return draft{position: a.Position, log: &h, underWay: 1, puts: []entry{
		{factKey(kindAttempt, h.number, a.Position), encodeAttempt(&a), true},
		{idKey, place{h.number, a.Position}.encode(), true},
	}}, nil
}

// finishCopy turns the attempt under way at the copy's position into the copy.
func finishCopy(g *group, old *header, r tier.CopyFinished) (draft, error) {
	c := storedCopy{Copy: r.Copy}
	key := factKey(kindAttempt, old.number, c.Position)
	a, err := g.attempt(old, c.Position)
	if err != nil {
		return draft{}, err
	}
	switch {
	case a == nil || a.ID != c.Attempt:
		return draft{}, refuse("log %s: attempt %s is not under way at position %d", r.Log,
			c.Attempt, c.Position)
	case a.Epoch != c.Epoch:
		return draft{}, refuse("log %s: attempt %s is of tier epoch %d, the copy of %d", r.Log,
			a.ID, a.Epoch, c.Epoch)
	case a.Range != c.Content.Range:
		return draft{}, refuse("log %s: attempt %s is of %s, the copy of %s", r.Log, a.ID,
			a.Range, c.Content.Range)
	case len(c.Content.Files) == 0:
		return draft{}, refuse("log %s: the copy of %s has no files", r.Log, a.Range)
	case verifyModes[verifyByte(c.Verified)] != c.Verified:
		return draft{}, refuse("log %s: %q is no verify mode", r.Log, c.Verified)
	}
	if err := checkEpoch(g, old, c.Epoch); err != nil && !planted.Is(planted.EpochUnchecked) {
		return draft{}, err
	}
	for _, f := range c.Content.Files {
		if !slices.Contains(a.Names, f.Name) || len(f.Name) > nameBytesMax {
			return draft{}, refuse("log %s: attempt %s never named the file %q", r.Log, a.ID, f.Name)
		}
	}
	h := *old
	h.copies++
	if h.outOfLog(c.Position, c.Epoch, c.Content.Range) {
		h.gone++
	}
	h.cover(h.clip(c.Position, c.Content.Range))
	c.copied = h.state.Copied
	return draft{log: &h, underWay: -1, deletes: [][]byte{key}, puts: []entry{
		{factKey(kindCopy, h.number, c.Position), c.encode(), true},
	}}, nil
}

// abandonCopy leaves a tombstone: something of the attempt may appear in the store later.
func abandonCopy(g *group, old *header, r tier.CopyAbandoned) (draft, error) {
	a, err := g.attempt(old, r.Position)
	if err != nil {
		return draft{}, err
	}
	if a == nil {
		return draft{}, refuse("log %s: no attempt is under way at position %d", r.Log, r.Position)
	}
	t := Tombstone{Attempt: *a, Cause: r.Cause, At: r.At}
	return draft{
		underWay: -1,
		deletes:  [][]byte{factKey(kindAttempt, old.number, r.Position)},
		puts:     []entry{{factKey(kindTombstone, old.number, r.Position), t.encode(), true}},
	}, nil
}

// reidentifyCopy takes over the identity that files of the same content have now.
func reidentifyCopy(g *group, old *header, r tier.CopyReidentified) (draft, error) {
	key := factKey(kindCopy, old.number, r.Position)
	body, err := g.get(key)
	if err != nil {
		return draft{}, err
	}
	if body == nil {
		return draft{}, refuse("log %s: there is no copy at position %d", r.Log, r.Position)
	}
	c, err := decodeCopy(r.Position, body)
	if err != nil {
		return draft{}, named(key, err)
	}
	same := func(a, b tier.SourceFile) bool { return a.FileDigest == b.FileDigest }
	if !slices.EqualFunc(c.Content.Files, r.Files, same) {
		return draft{}, refuse("log %s: the files are not those of the copy at position %d", r.Log,
			r.Position)
	}
	c.Content.Files = r.Files
	return draft{puts: []entry{{key: key, body: c.encode()}}}, nil
}

// recordHole is for offsets of which there is nothing: neither a copy nor a hole.
func recordHole(g *group, old *header, r tier.HoleRecorded) (draft, error) {
	s := &old.state
	if err := checkEpoch(g, old, s.Epoch); err != nil {
		return draft{}, err
	}
	switch {
	case r.Hole.Empty():
		return draft{}, refuse("log %s: the hole %s is empty", r.Log, r.Hole.Range)
	case r.Hole.Base < s.Start:
		return draft{}, refuse("log %s: the hole %s begins below the start %d", r.Log,
			r.Hole.Range, s.Start)
	case r.Hole.Base < s.Copied || old.aheadOverlaps(r.Hole.Range):
		return draft{}, refuse("log %s: the hole %s lies over what was copied or is a hole already",
			r.Log, r.Hole.Range)
	}
	h := *old
	pos := h.takePosition()
	h.cover(r.Hole.Range)
	s = &h.state
	s.Holes = append(slices.Clone(s.Holes), r.Hole)
	sortHoles(s.Holes)
	s.Unpublished = append(slices.Clone(s.Unpublished), pos)
	hole := storedHole{Hole: r.Hole, epoch: s.Epoch, copied: s.Copied}
	return draft{position: pos, log: &h, puts: []entry{
		{factKey(kindHole, h.number, pos), hole.encode(), true},
	}}, nil
}

// publish says that a fact stands in the manifest. A copy stands there before it is finished; to
// say so once more is no mistake.
func publish(g *group, old *header, r tier.Published) (draft, error) {
	if i := slices.Index(old.state.Unpublished, r.Position); i >= 0 {
		h := *old
		h.state.Unpublished = slices.Delete(slices.Clone(h.state.Unpublished), i, i+1)
		if len(h.state.Unpublished) == 0 {
			h.state.Unpublished = nil
		}
		return draft{log: &h}, nil
	}
	for _, k := range []kind{kindHole, kindCopy, kindMark} {
		body, err := g.get(factKey(k, old.number, r.Position))
		if err != nil || body != nil {
			return draft{}, err
		}
	}
	return draft{}, refuse("log %s: there is no fact at position %d", r.Log, r.Position)
}

// checkpointLevelMax is the highest level whose span fits into a position.
const checkpointLevelMax = 10

// checkpoint counts the blocks of a level, which must come in order and be settled: a fact that
// came later would be missing from them.
func checkpoint(g *group, old *header, r tier.Checkpointed) (draft, error) {
	if r.Level < 1 || r.Level > checkpointLevelMax {
		return draft{}, refuse("log %s: there is no checkpoint level %d", r.Log, r.Level)
	}
	h := *old
	counts := slices.Clone(h.state.Checkpoints)
	for len(counts) < int(r.Level) {
		counts = append(counts, 0)
	}
	done := counts[r.Level-1]
	if r.Block < done {
		return draft{}, nil
	}
	if r.Block > done {
		return draft{}, refuse("log %s: checkpoint %d of level %d before %d", r.Log, r.Block,
			r.Level, done)
	}
	span := tier.CheckpointSpan(r.Level)
	if r.Block >= uint64(h.state.Next)/span {
		return draft{}, refuse("log %s: checkpoint %d of level %d stands for positions that are "+
			"not handed out yet", r.Log, r.Block, r.Level)
	}
	from := tier.Position(r.Block * span)
	to := from + tier.Position(span)
	low, high := factRange(kindAttempt, h.number, from, to)
	if busy, err := g.any(low, high); err != nil {
		return draft{}, err
	} else if busy {
		return draft{}, refuse("log %s: a copy is under way in checkpoint %d of level %d", r.Log,
			r.Block, r.Level)
	}
	for _, p := range h.state.Unpublished {
		if from <= p && p < to {
			return draft{}, refuse("log %s: position %d in checkpoint %d of level %d is not "+
				"published", r.Log, p, r.Block, r.Level)
		}
	}
	counts[r.Level-1]++
	h.state.Checkpoints = counts
	return draft{log: &h}, nil
}

// deleteLocal comes after the deletion: to refuse it would lose the truth. A deletion of what was
// never copied is recorded, and then the ledger stops.
func deleteLocal(g *group, old *header, r tier.LocalDeleted) (draft, error) {
	table, err := tableOf(g, r.Log)
	if err != nil {
		return draft{}, err
	}
	d := draft{}
	if old.state.Emptied != r.Emptied {
		h := *old
		h.state.Emptied = r.Emptied
		d.log = &h
	}
	tiers := table.State == tier.Enabled && old.state.Epoch == table.Epoch
	if tiers && !old.covers(r.Range) {
		d.alarm = fmt.Errorf("log %s: local segment %s was deleted, but of it only what lies in "+
			"[%d, %d) was ever copied by this ledger: it is an old one, or wrong; \"tierd rebuild "+
			"--replace\" makes another", r.Log, r.Range, old.state.Start, old.state.Copied)
	}
	table.Window = laterWindow(table.Window, r.Window, r.At, 1, r.Bytes)
	d.table = &table
	return d, nil
}

// laterWindow is the brake's window after a deletion of so much, as its record says. But it never
// forgets one: windows that were reckoned from the same past are joined by their maximum, and a
// deletion that was reckoned in a window that is over counts in the one that has begun meanwhile.
func laterWindow(now, then tier.BrakeWindow, at tier.Time, segments, bytes int64) tier.BrakeWindow {
	switch {
	case then.Since < now.Since && at >= now.Since:
		return now.Plus(segments, bytes)
	case then.Since != now.Since: // a new one, or the clock went back
		return then
	}
	now.Segments = max(now.Segments, then.Segments)
	now.Bytes = max(now.Bytes, then.Bytes)
	return now
}

func pauseTable(g *group, r tier.TablePaused) (draft, error) {
	table, ok := g.table(r.Table)
	if !ok {
		return draft{}, refuse("table %q is not known", r.Table)
	}
	reason := r.Reason
	table.Paused = &reason
	return draft{table: &table}, nil
}

func resumeTable(g *group, r tier.TableResumed) (draft, error) {
	table, ok := g.table(r.Table)
	if !ok {
		return draft{}, refuse("table %q is not known", r.Table)
	}
	table.Paused = nil
	table.Window = tier.BrakeWindow{Since: r.At}
	return draft{table: &table}, nil
}

// acceptLoss notes what an operator accepted; the same once more changes nothing.
func acceptLoss(old *header, r tier.LossAccepted) (draft, error) {
	if r.Range.Empty() {
		return draft{}, refuse("log %s: the accepted range %s is empty", r.Log, r.Range)
	}
	for _, a := range old.state.Accepted {
		if a.Range == r.Range && a.SHA256 == r.SHA256 {
			return draft{}, nil
		}
	}
	h := *old
	h.state.Accepted = append(slices.Clone(h.state.Accepted), r)
	return draft{log: &h}, nil
}

// named puts the key's name before an error of its value.
func named(key []byte, err error) error {
	if err == nil || errors.Is(err, tier.ErrRefused) {
		return err
	}
	return fmt.Errorf("%s: %w", keyName(key), err)
}
