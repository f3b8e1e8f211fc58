package gate

import (
	"fmt"

	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// Facts is everything that guard and policies may know of one deletion, gathered afresh for it.
// The zero value of every Truth is unknown, and the guard takes unknown for no.
type Facts struct {
	Action tier.Action
	Now    tier.Time
	Table  tier.Table
	Log    LogFacts
	Seg    SegmentFacts
	Node   NodeFacts
	Safety SafetyFacts
	Extern map[string]any // the user's facts, for policies only
	// Unknown are the user's facts that Extern should have and has not. What depends on one keeps.
	Unknown []tier.UnknownFact
}

// LogFacts describes the log.
type LogFacts struct {
	ID               tier.LogID
	Layout           tier.Layout
	State            tier.TierState
	Epoch            tier.TierEpoch
	EpochStart       tier.Offset // where the tier epoch began
	Copied           tier.Offset
	SourceStart      tier.Offset
	LocalStart       tier.Offset
	LogStart         tier.Offset
	LocalEnd         tier.Offset
	RemoteStart      tier.Offset
	RemoteEnd        tier.Offset
	HighWatermark    tier.Offset
	HasHighWatermark bool
	LocalBytes       int64
	RemoteBytes      int64
}

// SegmentFacts describes the segment that would go.
type SegmentFacts struct {
	Range             tier.Range
	Bytes             int64 // of all its files
	File              tier.Stat
	Rest              tier.Mark // of the local segment's other files
	Object            string
	MaxTime           tier.Time // largest record timestamp; absent if unusable
	ModTime           tier.Time // of the log file
	CopiedAt          tier.Time
	Verified          bool
	OrdinalFromNewest int64 // 0 is the newest segment of the log in that tier
}

// Age returns the segment's age at now and where it comes from: "record" is the largest record
// timestamp, "mtime" the log file's, where the former is absent, negative, or lies further in the
// future than tolerance. Age is never negative. "none" means that neither is usable.
func (s *SegmentFacts) Age(now, tolerance tier.Time) (age tier.Time, source string) {
	switch {
	case planted.Is(planted.NothingIsZero) && s.MaxTime == 0:
		return now, "record"
	case s.MaxTime > 0 && s.MaxTime <= now+tolerance:
		return max(now-s.MaxTime, 0), "record"
	case s.ModTime > 0:
		return max(now-s.ModTime, 0), "mtime"
	default:
		return 0, "none"
	}
}

// NodeFacts describes the machine.
type NodeFacts struct {
	Name          string
	DiskUsedBytes int64
	DiskFreeBytes int64
}

// SafetyFacts is what only the guard looks at.
type SafetyFacts struct {
	Closed         tier.Truth // the segment can no longer grow, and all replicas have it
	FirstLocal     tier.Truth // no older segment of the log is still local
	Proof          Proof
	EpochCurrent   tier.Truth   // the log's tier epoch is the table's
	SourceWhole    tier.Truth   // the source could be read whole in this very look
	NotPaused      tier.Truth   // neither pause file, brake, --no-delete nor shutdown
	Pause          *tier.Reason // why deletions are paused, where that is known
	Brake          tier.Brake
	Window         tier.BrakeWindow // with this deletion counted in
	Remote         RemoteSafety
	ClockTolerance tier.Time // nanoseconds
	DropWay        tier.LocalDelete
	OwnsSource     tier.Truth // tierd holds the source's lock, where the layout has one
	Changelog      bool       // the source's own program recovers from the log, or may
	Owner          OwnerFacts // where the program that owns the source is to delete
}

// OwnerFacts are what the running program that owns the log says of it, where it is the one that
// is to delete.
type OwnerFacts struct {
	Asked   tier.Truth // it was reached, and answered
	SameLog tier.Truth // cluster and incarnation of the log are those of the source's directory
	Leads   tier.Truth // the node that the directory belongs to leads the log
	Deletes tier.Truth // nothing is known why it must not delete
	Begins  tier.Truth // the log begins within the segment there: nothing older is left
	Covers  tier.Truth // the directory has all that the log has there, up to its high watermark
	Lineage tier.Truth // its leader epochs are those of the copy, up to the segment's end
	// Given is set where the log begins beyond the segment there: it was given up already.
	Given         bool
	Term          tier.LeaderEpoch // that the node leads in
	Start         tier.Offset      // where the log begins there
	HighWatermark tier.Offset
	Objection     string // what was seen where one of them is not yes; for people
}

// RemoteSafety is what the guard wants to know of deletions from the store, and of all others that
// leave no copy.
type RemoteSafety struct {
	// Logical is set where the question is whether the segment may leave the log, and not yet
	// whether its objects may be removed.
	Logical     bool
	Oldest      tier.Truth // the log begins with the segment
	OutOfLog    tier.Truth // the log start lies beyond it, durably and in the manifest
	GraceOver   tier.Truth // remote_delete_grace has passed since
	Clocks      tier.Truth // of machine, store and ledger agree
	Clock       string     // what they say where they do not
	LedgerKnows tier.Truth // no manifest knows more than the ledger
	// Unnamed: no copy, attempt or tombstone names the object, but one that is being cleared, or a
	// copy that was cut off wholly.
	Unnamed tier.Truth
	// OldEnough: the object is older than orphan_age, by the store's own clock, or was cut off at
	// least the grace ago.
	OldEnough tier.Truth
}

// Proof is what was established about a segment at the moment of the question.
type Proof struct {
	Recorded  tier.Truth // every offset is in a finished copy of a valid epoch, or recorded as expired
	Identity  tier.Truth // stat, or else the SHA-256, is that of the copy
	Manifest  tier.Truth // the manifest entry was read now and names the same objects and digests
	Objects   tier.Truth // each object is there now with its size
	Lineage   tier.Truth // leader epochs agree, or the batches carry none
	Sound     tier.Truth // nobody who read the copy back found it to be other than it was written
	Objection string     // what was seen where one of them is not yes; for people
}

// Target is what a permit for these facts would allow.
func (f *Facts) Target() Target {
	t := Target{Action: f.Action, Log: f.Log.ID, Range: f.Seg.Range,
		Object: f.Seg.Object, File: f.Seg.File}
	if f.Action == tier.DeleteLocal {
		t.Bytes, t.Rest, t.Term = f.Seg.Bytes, f.Seg.Rest, f.Safety.Owner.Term
	}
	return t
}

// Guard returns every objection to the deletion, in a fixed order; none means that the policies
// may be asked. It is pure.
func Guard(f *Facts) []tier.Reason {
	var out objections
	if f.Now <= 0 {
		out.add(tier.CodeClock, "the time is not known")
	}
	out.pause(f)
	switch f.Action {
	case tier.DeleteLocal:
		out.local(f)
	case tier.DeleteRemote:
		out.remote(f)
	case tier.DisableDelete:
		out.disable(f)
	case tier.DeleteOrphan:
		out.orphan(f)
	default:
		out.add(tier.CodeTierState, "no rule of the guard allows the action %q", f.Action)
	}
	return out
}

type objections []tier.Reason

func (o *objections) add(code tier.Code, format string, args ...any) {
	*o = append(*o, tier.Reason{Code: code, Text: fmt.Sprintf(format, args...)})
}

func (o *objections) pause(f *Facts) {
	switch s := &f.Safety; {
	case s.NotPaused == tier.Yes:
	case s.Pause != nil:
		*o = append(*o, *s.Pause)
	default:
		o.add(tier.CodePaused, "it is not known that deletions may happen")
	}
}

func (o *objections) brake(f *Facts) {
	if s := &f.Safety; s.Brake.Exceeded(s.Window) {
		o.add(tier.CodeBrake,
			"%s (%s) of the table within %s would pass the brake of %d (%s)",
			tier.Count(s.Window.Segments, "segment"), tier.Count(s.Window.Bytes, "byte"), s.Brake.Per,
			s.Brake.MaxSegments, tier.Bytes(s.Brake.MaxBytes))
	}
}

// final is for deletions that leave no copy: they go by the clock, so it has to be right.
func (o *objections) final(f *Facts) {
	if r := &f.Safety.Remote; r.Clocks != tier.Yes && !planted.Is(planted.ClocksIgnored) {
		o.add(tier.CodeClock, "the clocks are not known to agree: %s", r.Clock)
	}
}

func (o *objections) local(f *Facts) {
	s := &f.Safety
	if f.Seg.Range.Empty() || f.Seg.File.Inode == 0 {
		o.add(tier.CodeNotProved, "the segment is not known")
	}
	if s.SourceWhole != tier.Yes {
		o.add(tier.CodeSourceUnread, "the source could not be read whole just now")
	}
	if s.Closed != tier.Yes {
		o.add(tier.CodeActiveSegment, "the segment can still grow (closed: %s)", s.Closed)
	}
	if f.Log.HasHighWatermark && f.Seg.Range.Next > f.Log.HighWatermark &&
		!planted.Is(planted.WatermarkIgnored) {
		o.add(tier.CodeHighWatermark, "the segment ends at %d, above the high watermark %d",
			f.Seg.Range.Next, f.Log.HighWatermark)
	}
	if s.FirstLocal != tier.Yes && !planted.Is(planted.PrefixIgnored) {
		o.add(tier.CodePrefixBlocked, "an older segment of the log is still local")
	}
	switch f.Log.State {
	case tier.Enabled:
		if !planted.Is(planted.TTLWithoutProof) {
			o.proof(f)
		}
	case tier.Disabling, tier.Disabled:
		o.final(f)
	default:
		o.add(tier.CodeTierState, "the table's tier state is %q", f.Log.State)
	}
	records := s.DropWay == tier.LocalDeleteRecords
	if records {
		o.owner(f)
	}
	if !records && s.DropWay != tier.LocalDeleteUnlink {
		o.add(tier.CodeLocalDelete, "local_delete of the source is %q", s.DropWay)
	}
	if !records && s.OwnsSource != tier.Yes {
		o.add(tier.CodeSourceInUse, "tierd does not hold the lock of the source's directory")
	}
	if s.Changelog {
		o.add(tier.CodeLocalDelete, "a tablet server recovers a table with a primary key from the log, "+
			"or may: it is copied, and stays")
	}
	o.brake(f)
}

// owner objects where the running program of the source is to delete, and is not known to be the
// right one, or to have what was copied.
func (o *objections) owner(f *Facts) {
	w := &f.Safety.Owner
	object := func(ok tier.Truth, code tier.Code, text string) {
		if ok == tier.Yes {
			return
		}
		if w.Objection != "" {
			text += ": " + w.Objection
		}
		*o = append(*o, tier.Reason{Code: code, Text: text})
	}
	if f.Log.State != tier.Enabled {
		o.add(tier.CodeLocalDelete, "delete-records is for what is copied; with tiering off the "+
			"broker's own retention deletes")
	}
	switch {
	case w.Asked != tier.Yes:
		object(w.Asked, tier.CodeBroker, "the broker was not asked")
		return
	case w.SameLog != tier.Yes:
		object(w.SameLog, tier.CodeOtherLog, "the broker's log is not shown to be this one")
		return
	case w.Given:
		o.add(tier.CodeDropping, "the broker has given it up: its log begins at %d; the files go at "+
			"its next retention pass", w.Start)
		return
	}
	object(w.Leads, tier.CodeNotLeader, "the source is not shown to be that of the leader")
	object(w.Deletes, tier.CodeBroker, "the broker does not delete")
	object(w.Begins, tier.CodePrefixBlocked, "the broker's log does not begin in it")
	object(w.Covers, tier.CodeSourceUnread, "the directory is not shown to have all of the log")
	object(w.Lineage, tier.CodeLineage, "the leader epochs there are not shown to be the copy's")
}

// proof objects to a segment of a tiered table that is not proved to be in the store.
func (o *objections) proof(f *Facts) {
	p := &f.Safety.Proof
	object := func(code tier.Code, text string) {
		if p.Objection != "" {
			text += ": " + p.Objection
		}
		*o = append(*o, tier.Reason{Code: code, Text: text})
	}
	if !f.Table.Tiering {
		object(tier.CodeTierState, "remote.storage.enable is false, and the tier state still ENABLED")
	}
	// Of what was never copied there is no copy to be of another epoch, or of other files.
	copied := p.Recorded != tier.No
	if copied && f.Safety.EpochCurrent != tier.Yes {
		object(tier.CodeTierEpoch, "the copy is of a tier epoch that no longer counts")
	}
	if f.Seg.Range.Next > f.Log.Copied {
		object(tier.CodeNotCopied, fmt.Sprintf(
			"the segment ends at %d, above the copied offset %d", f.Seg.Range.Next, f.Log.Copied))
	}
	if f.Seg.Range.Base < f.Log.EpochStart {
		object(tier.CodeBelowStart, fmt.Sprintf("the segment came after the log was first seen, and "+
			"begins below %d, where it began then: move it away to let deletion go on", f.Log.EpochStart))
	}
	if p.Recorded != tier.Yes {
		object(tier.CodeNotCopied, "no finished copy of it is recorded")
	}
	if copied && p.Identity != tier.Yes {
		object(tier.CodeChanged, "the local files are not shown to be those that were copied")
	}
	switch {
	case p.Lineage == tier.No:
		object(tier.CodeLineage, "the leader epochs are not those of the copy")
	case p.Identity != tier.Yes || p.Recorded != tier.Yes:
		// The store was not asked.
	case p.Manifest == tier.No || p.Objects == tier.No || p.Sound == tier.No:
		object(tier.CodeStoreLost, "the store no longer has the copy")
	case p.Sound != tier.Yes:
		object(tier.CodeNotProved, "it is not known that the copy is still what was written")
	case p.Manifest != tier.Yes || p.Objects != tier.Yes:
		object(tier.CodeNotProved, "the copy was not seen in the store just now")
	case p.Lineage != tier.Yes:
		object(tier.CodeLineage, "the leader epochs are not shown to agree with the copy")
	}
}

// remote is for a copy whose time is over: first it leaves the log, then its objects go.
func (o *objections) remote(f *Facts) {
	r := &f.Safety.Remote
	o.known(f)
	o.final(f)
	if r.Logical {
		if r.Oldest != tier.Yes {
			o.add(tier.CodePrefixBlocked, "the log does not begin with the segment")
		}
		o.brake(f)
		return
	}
	o.outOfLog(f)
}

func (o *objections) known(f *Facts) {
	if f.Seg.Range.Empty() || f.Seg.Object == "" {
		o.add(tier.CodeNotProved, "the copy is not known")
	}
	if r := &f.Safety.Remote; r.LedgerKnows != tier.Yes {
		o.add(tier.CodeLedgerStale, "it is not known that the ledger knows all that manifests do")
	}
}

func (o *objections) outOfLog(f *Facts) {
	r := &f.Safety.Remote
	if r.OutOfLog != tier.Yes {
		o.add(tier.CodePrefixBlocked, "the log start does not lie beyond it in ledger and manifest")
	}
	if r.GraceOver != tier.Yes {
		o.add(tier.CodeGrace, "readers still have time to finish")
	}
}

// disable is for the remote data of a table whose tiering is turned off with the policy delete, or
// that was dropped; what a policy denied is outstanding when the table is DISABLED, and goes once
// it does no more. How much goes was confirmed beforehand, so no brake counts it.
func (o *objections) disable(f *Facts) {
	o.known(f)
	o.final(f)
	if f.Log.State != tier.Disabling && f.Log.State != tier.Disabled ||
		f.Table.DisablePolicy != tier.PolicyDelete {
		o.add(tier.CodeTierState, "the tier state is %s, the policy %s", f.Log.State,
			f.Table.DisablePolicy)
	}
	o.outOfLog(f)
}

// orphan is for an object that nothing names.
func (o *objections) orphan(f *Facts) {
	r := &f.Safety.Remote
	if f.Seg.Object == "" {
		o.add(tier.CodeNotProved, "the object is not known")
	}
	if r.LedgerKnows != tier.Yes {
		o.add(tier.CodeLedgerStale, "it is not known that the ledger knows all that manifests do")
	}
	o.final(f)
	if r.Unnamed != tier.Yes {
		o.add(tier.CodeNotProved, "it is not shown that nothing names the object")
	}
	if r.OldEnough != tier.Yes {
		o.add(tier.CodeGrace, "the object is younger than limits.orphan_age")
	}
}
