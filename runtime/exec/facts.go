package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// Explain gathers the same facts that a deletion of the candidate would be judged on, and asks the
// same gate, which permits nothing.
func (x *Executor) Explain(ctx context.Context, f engine.Delete,
	c engine.DeleteCandidate) (gate.Verdict, error) {
	g := x.c.Generation()
	facts, err := x.factsNow(ctx, g, f, c)
	if err != nil {
		return gate.Verdict{}, err
	}
	return g.Gate.Explain(ctx, facts), nil
}

// Facts gathers what a deletion of the candidate would be judged on, and asks nobody.
func (x *Executor) Facts(ctx context.Context, f engine.Delete,
	c engine.DeleteCandidate) (*gate.Facts, error) {
	return x.factsNow(ctx, x.c.Generation(), f, c)
}

// RemoteFacts gathers what the expiry of a remote segment would be judged on, and asks nobody.
func (x *Executor) RemoteFacts(ctx context.Context, f engine.Expire,
	c engine.RemoteCandidate) (*gate.Facts, error) {
	facts, _, err := x.remoteFacts(ctx, x.c.Generation(), f.Log, tier.DeleteRemote, c, f.Remote)
	return facts, err
}

func (x *Executor) factsNow(ctx context.Context, g *Generation, f engine.Delete,
	c engine.DeleteCandidate) (*gate.Facts, error) {
	src, err := x.source(f.Source)
	if err != nil {
		return nil, err
	}
	facts, _, err := x.facts(ctx, g, src, f, c)
	return facts, err
}

// facts looks at everything that guard and policies may know of the candidate, now. What cannot be
// learnt stays unknown, which the guard takes for no. The error is one that ends the process.
func (x *Executor) facts(ctx context.Context, g *Generation, src Source, f engine.Delete,
	c engine.DeleteCandidate) (*gate.Facts, tier.Copy, error) {
	now := x.c.Now()
	state, _ := x.c.Ledger.Log(f.Log)
	durable := x.c.Ledger.Table(f.Log.Table)
	table, governed := x.settings(g, durable, f.Log.Table)
	facts := &gate.Facts{Action: f.Action, Now: now, Table: table,
		Node: g.Node(),
		Log: gate.LogFacts{ID: f.Log, Layout: state.Layout, State: durable.State,
			Epoch: x.epoch(f.Log), EpochStart: state.Start, Copied: state.Copied,
			LogStart:    state.LogStart,
			RemoteStart: f.Remote.Base, RemoteEnd: f.Remote.Next, RemoteBytes: f.Remote.Bytes},
		Seg: gate.SegmentFacts{Range: c.Segment.Range, OrdinalFromNewest: c.Ordinal},
		Safety: gate.SafetyFacts{Brake: g.Brake, ClockTolerance: g.Tolerance,
			DropWay: src.LocalDelete(), OwnsSource: src.Owned()},
	}
	g.extern(facts)
	if durable.State != tier.Enabled {
		facts.Safety.Remote.Clocks, facts.Safety.Remote.Clock = g.Clocks(ctx)
	}
	if err := x.vet(ctx, src, facts, c); err != nil {
		return nil, tier.Copy{}, err
	}
	record := x.lookAtSource(ctx, src, facts, c)
	facts.Safety.Window = durable.Window.At(now, g.Brake.Per).Plus(1, facts.Seg.Bytes)
	cp, err := x.prove(ctx, src, facts, c, record)
	x.pauseFacts(g, facts, governed)
	return facts, cp, err
}

// pauseFacts says whether deletions of the table may happen at all now. It comes last: the looks
// before it take time, in which somebody may pull the brake.
func (x *Executor) pauseFacts(g *Generation, facts *gate.Facts, governed bool) {
	durable := x.c.Ledger.Table(facts.Log.ID.Table)
	switch why := g.Paused(); {
	case why != nil:
		facts.Safety.NotPaused, facts.Safety.Pause = tier.No, why
	case durable.Paused != nil:
		facts.Safety.NotPaused, facts.Safety.Pause = tier.No, durable.Paused
	case durable.Dropped != 0 && facts.Action == tier.DeleteLocal:
		facts.Safety.NotPaused, facts.Safety.Pause = tier.No, &tier.Reason{Code: tier.CodeFrozen,
			Text: "the table was dropped: what is local stays as it is"}
	case governed:
		facts.Safety.NotPaused = tier.Yes
	}
}

// vet asks the program that owns the log, where it is the one that is to delete. It is asked before
// the directory is looked at, so that the directory can be expected to have all that it says.
func (x *Executor) vet(ctx context.Context, src Source, facts *gate.Facts,
	c engine.DeleteCandidate) error {
	if src.LocalDelete() != tier.LocalDeleteRecords {
		return nil
	}
	if !c.Copied {
		facts.Safety.Owner.Objection = "no copy is recorded to compare with"
		return nil
	}
	cp, err := x.c.Ledger.Copy(facts.Log.ID, c.Position)
	if errors.Is(err, ErrVanished) {
		facts.Safety.Owner.Objection = err.Error()
		return nil
	}
	if err != nil {
		return fatal(err)
	}
	facts.Safety.Owner = src.Vet(ctx, facts.Log.ID, cp.Content)
	return nil
}

// lookAtSource scans the log afresh. It returns what the source has on record of its leader epochs.
func (x *Executor) lookAtSource(ctx context.Context, src Source, facts *gate.Facts,
	c engine.DeleteCandidate) []tier.EpochStart {
	scan, whole, err := src.Look(ctx, facts.Log.ID)
	if err != nil {
		facts.Safety.Proof.Objection = err.Error()
		return nil
	}
	facts.Safety.SourceWhole, facts.Safety.Changelog = tier.TruthOf(whole), scan.Changelog
	l := &facts.Log
	l.SourceStart, l.LocalEnd = scan.SourceStart, scan.LocalEnd
	l.HighWatermark, l.HasHighWatermark = scan.HighWatermark, scan.HasHighWatermark
	if len(scan.Segments) == 0 {
		return scan.Lineage
	}
	l.LocalStart = scan.Segments[0].Base
	if o := &facts.Safety.Owner; o.Asked == tier.Yes {
		o.Covers = tier.TruthOf(whole && l.LocalStart <= o.Start && l.LocalEnd >= o.HighWatermark)
	}
	for i, s := range scan.Segments {
		l.LocalBytes += s.Bytes
		if s.Base != c.Segment.Base {
			continue
		}
		facts.Safety.FirstLocal = tier.TruthOf(i == 0)
		facts.Safety.Closed = tier.TruthOf(s.Closed())
		facts.Seg.Bytes, facts.Seg.File, facts.Seg.Rest = s.Bytes, s.Log, s.Rest
		facts.Seg.MaxTime, facts.Seg.ModTime = s.MaxTime, s.Log.ModTime
		facts.Seg.OrdinalFromNewest = int64(len(scan.Segments) - 1 - i)
	}
	return scan.Lineage
}

// prove establishes, each time anew, that every byte of the segment is in the store: by the
// ledger's record, the identity of the files now, the lineage that the source has on record, the
// manifest entry as the store gives it now, and the objects as the store has them now.
func (x *Executor) prove(ctx context.Context, src Source, facts *gate.Facts,
	c engine.DeleteCandidate, record []tier.EpochStart) (tier.Copy, error) {
	p := &facts.Safety.Proof
	log := facts.Log.ID
	if state, _ := x.c.Ledger.Log(log); planted.Is(planted.HoleIsProof) && !c.Copied &&
		slices.ContainsFunc(state.Holes, func(h tier.Hole) bool {
			return h.Range.Covers(facts.Seg.Range)
		}) {
		*p = gate.Proof{Recorded: tier.Yes, Identity: tier.Yes, Manifest: tier.Yes,
			Objects: tier.Yes, Lineage: tier.Yes, Sound: tier.Yes}
		facts.Safety.EpochCurrent = tier.Yes
		return tier.Copy{}, nil
	}
	if !c.Copied {
		p.Recorded = tier.No
		return tier.Copy{}, nil
	}
	cp, err := x.c.Ledger.Copy(log, c.Position)
	if err != nil {
		if !errors.Is(err, ErrVanished) {
			return cp, fatal(err)
		}
		p.Recorded, p.Objection = tier.No, err.Error()
		return cp, nil
	}
	facts.Seg.CopiedAt, facts.Seg.Verified = cp.FinishedAt, cp.Verified != ""
	p.Recorded = tier.TruthOf(cp.Content.Range == facts.Seg.Range)
	// A log that is in its table's epoch was brought there by EpochOpened, which says what counts.
	state, _ := x.c.Ledger.Log(log)
	facts.Safety.EpochCurrent = tier.TruthOf(state.Epoch == facts.Log.Epoch &&
		(cp.Epoch >= state.Fresh || planted.Is(planted.EpochUnchecked)))
	if c, ok := tier.ClipOf(state.Clips, cp.Position); ok && c.Offset < cp.Content.Range.Next {
		p.Lineage, p.Objection = tier.No, fmt.Sprintf("the source has written anew from offset %d on "+
			"since it was copied", c.Offset)
		return cp, nil
	}
	if p.Identity, p.Objection, err = x.identical(ctx, src, facts, &cp); err != nil {
		return cp, err
	}
	if p.Identity != tier.Yes || p.Recorded != tier.Yes {
		return cp, nil
	}
	// A file that was only touched is as old as what was copied. One with other bytes has an age of
	// its own, which counts where tiering is off and no proof is asked for.
	facts.Seg.MaxTime, facts.Seg.ModTime = cp.Content.MaxTime, cp.ModTime
	if !agrees(record, cp.Content.Lineage) && !planted.Is(planted.LineageUnchecked) {
		p.Lineage, p.Objection = tier.No, "the source's own record names other leader epochs"
		return cp, nil
	}
	x.proveStore(ctx, src, p, log, cp)
	// It comes last: the looks before it take time, in which somebody may read the copy back.
	sound, found := x.c.Sound(log, cp.Position)
	if p.Sound = sound; sound != tier.Yes && p.Objection == "" {
		p.Objection = found
	}
	return cp, nil
}

// identical reports whether the local files are those that were copied: by stat, or else by their
// hash. Where only the stat differs, the new one is recorded.
func (x *Executor) identical(ctx context.Context, src Source, facts *gate.Facts,
	cp *tier.Copy) (tier.Truth, string, error) {
	log := facts.Log.ID
	if facts.Log.Layout == tier.LayoutPlain && facts.Seg.Bytes != cp.Content.Bytes() {
		// Another file of the same stem came after the copy; it would go unseen with the others.
		return tier.No, fmt.Sprintf("the segment's files have %d bytes, the copied ones %d",
			facts.Seg.Bytes, cp.Content.Bytes()), nil
	}
	same := true
	for _, file := range cp.Content.Files {
		now, err := src.Stat(ctx, log, file.Name)
		if errors.Is(err, ErrVanished) {
			return tier.No, err.Error(), nil
		}
		if err != nil {
			return tier.Unknown, err.Error(), nil
		}
		same = same && now == file.Stat
	}
	if same {
		facts.Seg.File = cp.Content.Files[0].Stat // what Drop compares with what it finds
		return tier.Yes, "", nil
	}
	content, err := src.Read(ctx, log, cp.Content.Range)
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrChanged) {
		return tier.No, err.Error(), nil
	}
	if err != nil {
		return tier.Unknown, err.Error(), nil
	}
	if !sameContent(cp.Content, content) {
		return tier.No, "the SHA-256 of the files is not that of the copy", nil
	}
	_, err = x.append(ctx, tier.CopyReidentified{Log: log, Position: cp.Position,
		Files: content.Files})
	if err != nil {
		return tier.Unknown, err.Error(), fatal(err)
	}
	cp.Content.Files = content.Files
	facts.Seg.File = content.Files[0].Stat
	return tier.Yes, "", nil
}

// proveStore reads the manifest entry and looks at each object.
func (x *Executor) proveStore(ctx context.Context, src Source, p *gate.Proof, log tier.LogID,
	cp tier.Copy) {
	fact, err := x.c.Store.Fact(ctx, log, cp.Position, cp.Attempt)
	switch {
	case errors.Is(err, ErrVanished) || errors.Is(err, ErrDamaged):
		p.Manifest, p.Objection = tier.No, err.Error()
		return
	case err != nil:
		p.Objection = err.Error()
		return
	case fact.Add == nil || !sameContent(fact.Add.Content, cp.Content) ||
		fact.Add.Content.Range != cp.Content.Range || fact.Epoch != cp.Epoch:
		p.Manifest, p.Objection = tier.No, "the manifest entry names other content than the ledger"
		return
	}
	p.Manifest = tier.Yes
	p.Lineage = tier.TruthOf(slices.Equal(fact.Add.Content.Lineage, cp.Content.Lineage))
	a := tier.Attempt{ID: cp.Attempt, Epoch: cp.Epoch, Range: cp.Content.Range}
	for _, file := range cp.Content.Files {
		err := x.readBack(ctx, src, log, a.Object(log, file.Name), file.FileDigest)
		switch {
		case errors.Is(err, ErrVanished) || errors.Is(err, ErrDamaged):
			p.Objects, p.Objection = tier.No, err.Error()
			return
		case err != nil:
			p.Objects, p.Objection = tier.Unknown, err.Error()
			return
		}
	}
	p.Objects = tier.Yes
}

// readBack looks at a stored object once more, as closely as copy.verify says: what was verified
// when it was copied may have been altered since.
func (x *Executor) readBack(ctx context.Context, src Source, log tier.LogID, key tier.ObjectKey,
	d tier.FileDigest) (err error) {
	mode := x.c.Generation().Verify
	if mode != tier.VerifySample {
		return x.c.Store.VerifyFile(ctx, key, d, mode, nil)
	}
	r, err := src.Open(ctx, log, d.Name)
	if err != nil {
		return fmt.Errorf("open %s %s: %v", log, d.Name, err) // says nothing of the store
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return x.c.Store.VerifyFile(ctx, key, d, mode, r)
}
