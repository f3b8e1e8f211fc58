package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// changeTier makes one step of a table's tiering durable.
func (x *Executor) changeTier(ctx context.Context, f engine.ChangeTier) (engine.Result, error) {
	_, err := x.decide(ctx, tier.TierChanged{Table: f.Table, State: f.State, Epoch: f.Epoch,
		Policy: f.Policy, At: x.c.Now()})
	if errors.Is(err, ErrRefused) {
		// A call that was given up may have made the step, and nobody heard.
		t := x.c.Ledger.Table(f.Table)
		if t.State == f.State && t.Epoch == f.Epoch && t.Policy == f.Policy {
			return engine.Done{}, nil
		}
		return failure(tier.CodeTierState, "%v", err), nil
	}
	return engine.Done{}, fatal(err)
}

// govern notes which entry of the configuration governs a table.
func (x *Executor) govern(ctx context.Context, f engine.Govern) (engine.Result, error) {
	_, err := x.decide(ctx, tier.TableGoverned{Table: f.Table, Entry: f.Entry, At: x.c.Now()})
	if errors.Is(err, ErrRefused) {
		return failure(tier.CodeTierState, "%v", err), nil
	}
	return engine.Done{}, fatal(err)
}

// governNew notes what governs a table when its first log is opened.
func (x *Executor) governNew(ctx context.Context, table string) error {
	cfg, ok := x.c.Generation().Table(table)
	durable := x.c.Ledger.Table(table)
	if !ok || cfg.Governor == "" || durable.Entry != "" || durable.Dropped != 0 {
		return nil
	}
	_, err := x.decide(ctx, tier.TableGoverned{Table: table, Entry: cfg.Governor, At: x.c.Now()})
	return fatal(err)
}

// settings are those that count for a table now; false where it is frozen. A table that was dropped
// has none, but for the policy by which its remote data go.
func (x *Executor) settings(g *Generation, durable tier.TableState, name string) (
	tier.Table, bool) {
	if durable.Dropped != 0 {
		return tier.Table{Name: name, DisablePolicy: tier.PolicyDelete, Entry: "dropped"}, true
	}
	cfg, governed := g.Table(name)
	return cfg, !durable.Frozen(cfg, governed)
}

// moveStart takes remote data out of the log without asking. What came back to the source below the
// new start since it was scanned would be in no tier: then the engine has to look again. Durable
// sub-steps: StartMoved, the manifest entry, Published.
func (x *Executor) moveStart(ctx context.Context, f engine.MoveStart) (engine.Result, error) {
	state, _ := x.c.Ledger.Log(f.Log)
	f.Start = max(f.Start, state.LogStart) // a call that was given up may have moved it
	if f.Cause == tier.MoveDisabled {
		begins, err := x.begins(ctx, f.Source, f.Log, f.Start)
		if err == nil && begins < f.Start && f.Start > state.LogStart {
			return failure(tier.CodeChanged, "%s begins at %d, and began at %d when it was scanned", f.Log,
				begins, f.Start), nil
		}
	}
	if why := x.MayRecord(ctx, f.Log); why != nil {
		return engine.Failed{Reason: *why}, nil
	}
	return x.move(ctx, f.Log, tier.StartMoved{Log: f.Log, Start: f.Start, Expired: f.Expired,
		Cause: f.Cause, At: x.c.Now()})
}

func (x *Executor) move(ctx context.Context, log tier.LogID, m tier.StartMoved) (
	engine.Result, error) {
	pos, err := x.decide(ctx, m)
	if errors.Is(err, ErrRefused) {
		return failure(tier.CodeRetry, "%v", err), nil
	}
	if err != nil {
		return nil, fatal(err)
	}
	if state, _ := x.c.Ledger.Log(log); slices.Contains(state.Unpublished, pos) {
		if _, err := x.publishFact(ctx, log, pos); err != nil {
			return nil, err
		}
	}
	return x.moved(log, m), nil
}

// moved tells of a log after the move as the ledger has it: a call that was given up may have moved
// the start as well, and left it for the next one to say so in the manifest.
func (x *Executor) moved(log tier.LogID, m tier.StartMoved) engine.Moved {
	state, _ := x.c.Ledger.Log(log)
	done := engine.Moved{Start: state.LogStart, Expired: m.Expired, Cause: m.Cause, At: m.At,
		Next: state.Next, Unpublished: state.Unpublished}
	if m.Window != (tier.BrakeWindow{}) {
		done.Window = x.c.Ledger.Table(log.Table).Window
	}
	return done
}

// expire asks about the oldest remote segments in order, and moves the start over those that may
// go. Durable sub-steps: StartMoved, the manifest entry, Published.
func (x *Executor) expire(ctx context.Context, f engine.Expire) (engine.Result, error) {
	g := x.c.Generation()
	state, _ := x.c.Ledger.Log(f.Log)
	knows, why := x.ledgerKnows(ctx, f.Log, state)
	m := tier.StartMoved{Log: f.Log, Start: state.LogStart, Cause: tier.MoveExpired, At: x.c.Now(),
		Window: x.c.Ledger.Table(f.Log.Table).Window}
	if slices.ContainsFunc(f.Segments, func(c engine.RemoteCandidate) bool {
		return c.Next <= state.LogStart
	}) {
		m.Expired = state.Expired
		return x.moved(f.Log, m), nil // by an earlier call that was given up
	}
	var kept *engine.KeptRemote
	left := f.Remote
	var passed []passedOver
	for i, c := range f.Segments {
		facts, _, err := x.remoteFacts(ctx, g, f.Log, tier.DeleteRemote, c, left)
		if err != nil {
			return nil, err
		}
		c.Remote = state.Clip(c.Remote)
		r := &facts.Safety.Remote
		r.Logical, r.LedgerKnows = true, knows
		below := c.Next <= state.Copied || facts.Log.State != tier.Enabled // nothing is still copied
		first, err := x.comesFirst(&state, m.Start, c.Base, i == 0)
		if err != nil {
			return nil, err
		}
		r.Oldest = tier.TruthOf(below && first)
		facts.Safety.Window = m.Window.At(facts.Now, g.Brake.Per).Plus(1, facts.Seg.Bytes)
		v := g.Gate.Judge(ctx, facts) // nothing is deleted before Remove, which asks again
		if !v.Delete {
			kept = &engine.KeptRemote{Position: c.Position, Range: c.Range, Reasons: v.Reasons,
				Due: v.Due}
			passed, kept.Position = before(passed, c)
			if why != "" {
				kept.Reasons = append(kept.Reasons, tier.Reason{Code: tier.CodeLedgerStale, Text: why})
			}
			break
		}
		m.Start, m.Window = max(m.Start, c.Next), facts.Safety.Window
		passed = append(passed, passedOver{c.Remote, m.Start, m.Window})
		left = without(left, c)
	}
	for _, p := range passed {
		m.Start, m.Window = p.start, p.window
		m.Expired = m.Expired.Add(p.Range)
	}
	if len(m.Expired) == 0 {
		if kept == nil {
			return engine.Done{}, nil
		}
		return engine.StaysAll{Kept: *kept}, nil
	}
	if err := x.stopped(ctx, g, f.Log.Table); err != nil {
		return failure(tier.CodeRetry, "%s: %v", f.Log, err), nil
	}
	if planted.Is(planted.RemoveBeforeMove) {
		if err := x.removeEarly(ctx, g, f); err != nil {
			return nil, err
		}
	}
	r, err := x.move(ctx, f.Log, m)
	if moved, ok := r.(engine.Moved); ok {
		moved.Kept = kept
		return moved, err
	}
	return r, err
}

// comesFirst reports whether a log that is to begin at start has nothing below base. What lies
// below the oldest candidate may be in no tier, or be a copy of which the engine has not heard. At
// a hole behind that it stops: what came back there is to be copied, and asked about, before that
// goes which lies behind it.
func (x *Executor) comesFirst(s *tier.LogState, start, base tier.Offset, oldest bool) (bool,
	error) {
	if base <= start {
		return true, nil
	}
	if !oldest {
		return false, nil
	}
	stays, err := x.copyBelow(s.Log, base)
	return err == nil && stays == nil, err
}

// without is what the log has in the store once it no longer begins with the segment: limits of
// size are asked about what is left, not about what was there before.
func without(all engine.Extent, c engine.RemoteCandidate) engine.Extent {
	all.Base = min(max(all.Base, c.Next), all.Next)
	all.Segments = max(all.Segments-1, 0)
	all.Bytes = max(all.Bytes-c.Bytes, 0)
	return all
}

// removeEarly is the mistake of removing what leaves the log before it has left.
func (x *Executor) removeEarly(ctx context.Context, g *Generation, f engine.Expire) error {
	facts, cp, err := x.remoteFacts(ctx, g, f.Log, tier.DeleteRemote, f.Segments[0], f.Remote)
	if err != nil {
		return err
	}
	r := &facts.Safety.Remote
	r.OutOfLog, r.GraceOver, r.LedgerKnows = tier.Yes, tier.Yes, tier.Yes
	_, err = x.removeOne(ctx, g, facts, &cp)
	return err
}

// passedOver is a copy that may leave the log, and what the move is with it and those before it.
type passedOver struct {
	tier.Remote
	start  tier.Offset
	window tier.BrakeWindow
}

// before takes back the copies that overlap one that stays, of its base or another: a start that
// moves over them would move over it too. first is the position of the first one that stays.
func before(passed []passedOver, stays engine.RemoteCandidate) (left []passedOver,
	first tier.Position) {
	first = stays.Position
	for base := stays.Base; slices.ContainsFunc(passed, func(p passedOver) bool {
		return p.Next > base
	}); {
		last := passed[len(passed)-1]
		first, base, passed = last.Position, last.Base, passed[:len(passed)-1]
	}
	return passed, first
}

// remoteFacts looks at what guard and policies may know of a remote segment. The error is one that
// ends the process.
func (x *Executor) remoteFacts(ctx context.Context, g *Generation, log tier.LogID, a tier.Action,
	c engine.RemoteCandidate, all engine.Extent) (*gate.Facts, tier.Copy, error) {
	now := x.c.Now()
	durable := x.c.Ledger.Table(log.Table)
	table, governed := x.settings(g, durable, log.Table)
	if durable.State != tier.Enabled {
		table.DisablePolicy = durable.Policy // the one that was fixed when it began counts
	}
	state, _ := x.c.Ledger.Log(log)
	facts := &gate.Facts{Action: a, Now: now, Table: table, Node: g.Node(),
		Log: gate.LogFacts{ID: log, Layout: state.Layout, State: durable.State, Epoch: durable.Epoch,
			EpochStart: state.Start, Copied: state.Copied, LogStart: state.LogStart,
			RemoteStart: all.Base, RemoteEnd: all.Next, RemoteBytes: all.Bytes},
		Seg: gate.SegmentFacts{Range: c.Range, Bytes: c.Bytes, OrdinalFromNewest: c.Ordinal},
		Safety: gate.SafetyFacts{Brake: g.Brake, ClockTolerance: g.Tolerance,
			DropWay: x.localDelete(state)},
	}
	g.extern(facts)
	r := &facts.Safety.Remote
	r.Clocks, r.Clock = g.Clocks(ctx)
	x.pauseFacts(g, facts, governed)
	cp, err := x.c.Ledger.Copy(log, c.Position)
	if errors.Is(err, ErrVanished) {
		return facts, cp, nil // and the guard sees that nothing is known of it
	}
	if err != nil {
		return facts, cp, fatal(err)
	}
	facts.Seg.MaxTime, facts.Seg.ModTime = cp.Content.MaxTime, cp.ModTime
	facts.Seg.CopiedAt, facts.Seg.Verified = cp.FinishedAt, cp.Verified != ""
	facts.Seg.Range, facts.Seg.Bytes = cp.Content.Range, cp.Content.Bytes()
	facts.Seg.Object, err = x.c.Store.AttemptKey(cp.Object(log, ""))
	if err != nil {
		return facts, cp, nil // and the guard sees neither whether it left its log, nor its grace
	}
	r.OutOfLog, r.GraceOver = outOfLog(state, durable, &cp, now, g.Grace)
	return facts, cp, nil
}

// localDelete is how local segments of the log are deleted; never where its source is not
// configured.
func (x *Executor) localDelete(s tier.LogState) tier.LocalDelete {
	if src := x.c.Source(s.Source); src != nil {
		return src.LocalDelete()
	}
	return tier.LocalDeleteNever
}

// outOfLog tells whether the copy is part of the log no more, durably and in the manifest, and
// whether readers had the grace since.
func outOfLog(s tier.LogState, t tier.TableState, c *tier.Copy, now, grace tier.Time) (out,
	over tier.Truth) {
	if len(s.Unpublished) > 0 {
		return tier.Unknown, tier.Unknown
	}
	in := tier.Clipped(s.Clips, c.Position, c.Content.Range)
	since, left := tier.Left(&s, &t, c.Position, c.Epoch, in)
	if since == 0 {
		return tier.TruthOf(left), tier.TruthOf(left)
	}
	return tier.Yes, tier.TruthOf(now >= since+grace)
}

// ledgerKnows lists the log's manifest: an entry at a position that the ledger never handed out
// says that the ledger is older than the manifest.
func (x *Executor) ledgerKnows(ctx context.Context, log tier.LogID, s tier.LogState) (
	tier.Truth, string) {
	newest, found, err := x.c.Store.NewestEntry(ctx, log)
	switch {
	case err != nil:
		return tier.Unknown, err.Error()
	case found && newest >= s.Next:
		return tier.No, fmt.Sprintf("the manifest of %s has an entry at position %d, the ledger's next "+
			"one is %d: "+olderLedger, log, newest, s.Next)
	}
	return tier.Yes, ""
}

// remove removes the objects of copies that are no longer part of the log. Durable sub-steps for
// each: audit record, DELETE of each object, audit outcome, CopyRemoved.
func (x *Executor) remove(ctx context.Context, f engine.Remove) (engine.Result, error) {
	g := x.c.Generation()
	state, _ := x.c.Ledger.Log(f.Log)
	knows, _ := x.ledgerKnows(ctx, f.Log, state)
	var done engine.Removed
	for _, c := range f.Copies {
		if _, err := x.c.Ledger.Copy(f.Log, c.Position); errors.Is(err, ErrVanished) {
			done.Positions = append(done.Positions, c.Position) // by an earlier call that was given up
			continue
		}
		facts, cp, err := x.remoteFacts(ctx, g, f.Log, f.Action, c, f.Remote)
		if err != nil {
			return nil, err
		}
		facts.Safety.Remote.LedgerKnows = knows
		if f.Action == tier.DeleteOrphan {
			cutOff(facts, &state, &cp)
		}
		kept, err := x.removeOne(ctx, g, facts, &cp)
		if err != nil {
			return nil, err
		}
		if kept != nil {
			kept.Position, kept.Range = c.Position, facts.Seg.Range
			done.Kept = append(done.Kept, *kept)
			continue
		}
		if err := x.recordRemoved(ctx, f.Log, c.Position); err != nil {
			return nil, err
		}
		done.Positions = append(done.Positions, c.Position)
	}
	return done, nil
}

// enter waits for a place in the store, and looks whether the removal was stopped meanwhile. leave
// gives the place back.
func (x *Executor) enter(ctx context.Context, g *Generation, table string) (leave func(),
	err error) {
	leave = func() {}
	if places := x.c.Removing; places != nil {
		select {
		case places <- struct{}{}:
			leave = func() { <-places }
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errGivenUp, ctx.Err())
		}
	}
	if err := x.stopped(ctx, g, table); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// cutOff tells of a copy that a clip left nothing of it, durably and in the manifest: so nothing
// names its objects that counts.
func cutOff(facts *gate.Facts, s *tier.LogState, c *tier.Copy) {
	r := &facts.Safety.Remote
	r.Unnamed = tier.TruthOf(tier.Clipped(s.Clips, c.Position, c.Content.Range).Empty())
	if r.OutOfLog == tier.Yes {
		r.OldEnough = r.GraceOver
	}
}

// recordRemoved makes the ledger forget the copy. That it did so already, for a call that was given
// up and came first, is no mistake; that it still takes the copy for part of the log ends the
// process.
func (x *Executor) recordRemoved(ctx context.Context, log tier.LogID, pos tier.Position) error {
	_, err := x.append(ctx, tier.CopyRemoved{Log: log, Position: pos, At: x.c.Now()})
	if errors.Is(err, ErrRefused) {
		if _, gone := x.c.Ledger.Copy(log, pos); errors.Is(gone, ErrVanished) {
			return nil
		}
	}
	return unexpected(err)
}

// removeOne asks about one copy and removes its objects. Where kept is not nil it stayed, or it is
// not known whether all of it is gone.
func (x *Executor) removeOne(ctx context.Context, g *Generation, facts *gate.Facts,
	cp *tier.Copy) (*engine.KeptRemote, error) {
	permit, v := g.Gate.Ask(ctx, facts)
	if !v.Delete {
		return &engine.KeptRemote{Reasons: v.Reasons, Due: v.Due, Denied: denied(v)}, nil
	}
	var keys []tier.ObjectKey
	for _, file := range cp.Content.Files {
		k := cp.Object(facts.Log.ID, "")
		k.Name = file.Name
		keys = append(keys, k)
	}
	d := tier.Deletion{Epoch: cp.Epoch, Attempt: cp.Attempt}
	if len(cp.Content.Files) > 0 {
		d.SHA256 = cp.Content.Files[0].SHA256
	}
	return x.deleteObjects(ctx, g, facts, v, d, func(ctx context.Context) error {
		leave, err := x.enter(ctx, g, facts.Log.ID.Table)
		if err != nil {
			return err
		}
		defer leave()
		if err := x.c.Store.DeleteFiles(ctx, permit, facts.Target(), keys); err != nil {
			return err
		}
		for _, k := range keys {
			if err := x.gone(ctx, k); err != nil {
				return err
			}
		}
		return nil
	})
}

// gone makes sure that an object that was deleted is not there any more, which is for the store to
// say.
func (x *Executor) gone(ctx context.Context, k tier.ObjectKey) error {
	key, err := x.c.Store.FileKey(k)
	if err != nil {
		return err
	}
	_, err = x.c.Store.Size(ctx, key)
	switch {
	case err == nil:
		return fmt.Errorf("%s is still there after its deletion", key)
	case !errors.Is(err, ErrVanished):
		return fmt.Errorf("whether %s is gone cannot be told: %w", key, err)
	}
	return nil
}

// denied reports whether the policies gave an answer, and it is to keep.
func denied(v gate.Verdict) bool {
	return !v.Delete && len(v.Guard) == 0 && !slices.ContainsFunc(v.Reasons, func(r tier.Reason) bool {
		return r.Code == tier.CodePolicyError || r.Code == tier.CodeFactUnknown
	})
}

// deleteObjects announces a deletion, performs it and writes its outcome. It is for perform to ask
// whether the deletion was stopped meanwhile, at the last moment.
func (x *Executor) deleteObjects(ctx context.Context, g *Generation, facts *gate.Facts,
	v gate.Verdict, d tier.Deletion,
	perform func(context.Context) error) (*engine.KeptRemote, error) {
	stays := func(code tier.Code, err error) (*engine.KeptRemote, error) {
		return &engine.KeptRemote{Reasons: []tier.Reason{{Code: code, Text: err.Error()}},
			Due: x.c.Now().Add(time.Minute), Failed: true}, nil
	}
	if err := ctx.Err(); err != nil {
		return stays(tier.CodeUnknownOutcome, err)
	}
	d.Action, d.Log, d.Range, d.Bytes = facts.Action, facts.Log.ID, facts.Seg.Range, facts.Seg.Bytes
	d.Object, d.Reasons, d.At = facts.Seg.Object, v.Reasons, facts.Now
	d.Digest, d.Data = v.Digest, v.Data
	if g.Input != nil {
		var err error
		if d.Input, err = g.Input(facts); err != nil {
			return stays(tier.CodeAudit, err)
		}
	}
	seq, err := x.c.Audit.Intend(ctx, d)
	if errors.Is(err, ErrRefused) {
		return stays(tier.CodeAudit, err)
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	failed := perform(ctx)
	outcome := tier.Outcome{Result: tier.OutcomeDeleted, At: x.c.Now()}
	if failed != nil {
		outcome.Result, outcome.Text = tier.OutcomeUnknown, failed.Error()
	}
	if errors.Is(failed, errGivenUp) {
		outcome.Result = tier.OutcomeKept
	}
	if err := x.c.Audit.Conclude(ctx, seq, outcome); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	switch {
	case errors.Is(failed, errGivenUp):
		return stays(tier.CodeRetry, failed)
	case failed != nil:
		return stays(tier.CodeStoreError, failed)
	}
	return nil, nil
}
