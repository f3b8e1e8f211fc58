package tier

import "slices"

// Record is one durable step of a log or a table. The ledger checks each against what it holds,
// and refuses it (ErrRefused) where it would break an invariant.
type Record interface {
	// Subject is the log that the record belongs to; a record of a table has an empty Name.
	Subject() LogID
}

// LogOpened is the first sight of a log in a source. Copied and start begin at Start, the base of
// the first usable local segment. Seen again in another source it is the same log only if it says
// so itself, by its incarnation; then Source alone is taken over.
type LogOpened struct {
	Log         LogID
	Source      string
	Layout      Layout
	Incarnation string
	Epoch       TierEpoch
	Start       Offset
	// State is that of the log's table if this is its first log: ENABLED, or DISABLED where it does
	// not tier.
	State TierState
	At    Time
}

// CopyStarted reserves a manifest position and names all objects of an attempt before the first
// of them is uploaded. The ledger fills Attempt.Position.
type CopyStarted struct {
	Log     LogID
	Attempt Attempt
}

// CopyFinished commits an attempt: its objects and its manifest entry are durable and verified.
// The ledger refuses it if the attempt is not under way or of another epoch, and advances the
// copied offset over the contiguous prefix of copies and holes.
type CopyFinished struct {
	Log  LogID
	Copy Copy
}

// CopyAbandoned ends an attempt that will not be finished. Its names stay as a tombstone until
// nothing of it can appear in the store any more.
type CopyAbandoned struct {
	Log      LogID
	Position Position
	Cause    string
	At       Time
}

// CopyReidentified says that the local files of a copy have another identity but the same content:
// they were hashed again.
type CopyReidentified struct {
	Log      LogID
	Position Position
	Files    []SourceFile
}

// HoleRecorded says that the offsets are in neither tier. The copied offset passes over it; it
// proves nothing. The hole's manifest entry is published after, at the position that the ledger
// hands out.
type HoleRecorded struct {
	Log  LogID
	Hole Hole
}

// Published says that the fact at Position stands in the manifest now.
type Published struct {
	Log      LogID
	Position Position
}

// Checkpointed says that the manifest checkpoint of Level and Block is durable: it stands for the
// positions [Block*64^Level, (Block+1)*64^Level).
type Checkpointed struct {
	Log   LogID
	Level uint8
	Block uint64
}

// LocalDeleted says that the local files of a segment are gone by tierd's own hand. It counts in
// the brake's window of the table, which is Window after it.
type LocalDeleted struct {
	Log    LogID
	Range  Range
	Bytes  int64
	At     Time
	Window BrakeWindow
	// Emptied is set where no segment of the log is local after it.
	Emptied bool
}

// TablePaused stops all deletions of a table until TableResumed.
type TablePaused struct {
	Table  string
	Reason Reason
	At     Time
}

// TableResumed lets deletions of a paused table go on, with a new brake window.
type TableResumed struct {
	Table string
	At    Time
}

// LossAccepted says that an operator accepted the loss of a damaged segment, identified by the
// hash that its log file had then.
type LossAccepted struct {
	Log    LogID
	Range  Range
	SHA256 SHA256
	At     Time
}

// TierChanged moves a table's tiering on: ENABLED -> DISABLING -> DISABLED -> ENABLED, and DISABLED
// by retain -> DISABLING by delete. The ledger refuses every other step, and an epoch that is not
// one more at DISABLING and ENABLED, and the same at DISABLED.
//
// From a DISABLING by delete on, the copies of the epoch prove nothing any more.
type TierChanged struct {
	Table  string
	State  TierState
	Epoch  TierEpoch
	Policy DisablePolicy // of a DISABLING, and of the DISABLED after it; empty at ENABLED
	At     Time
}

// EpochOpened brings a log into its table's tier epoch after the table was enabled again. After
// retain it goes on where the old one stopped: manifest, expired ranges and copied offset stay.
// After delete (Fresh) nothing is taken over: start, copied offset and log start are Start, and
// what is left of older epochs is only still to be removed. Start is the base of the first usable
// local segment. It takes a position, for the manifest's "epoch" fact.
type EpochOpened struct {
	Log   LogID
	Epoch TierEpoch
	Fresh bool
	Start Offset
	At    Time
}

// StartMoved advances tierd's own start of the readable log, before anything of what lies below is
// removed. Expired are the ranges of the remote segments that go: they stay proof that these
// offsets were once copied. The ledger refuses a start that goes back. It takes a position, for the
// manifest's "start" fact, which is published after.
type StartMoved struct {
	Log     LogID
	Start   Offset
	Expired RangeSet
	Cause   MoveCause
	At      Time
	Window  BrakeWindow // of the table after it; the zero window where the brake does not count it
}

// MoveCause says why the start of a log moved.
type MoveCause string

// The causes of a move.
const (
	MoveExpired  MoveCause = "expired"  // table.log.ttl or another limit
	MoveDisabled MoveCause = "disabled" // the table's tiering was turned off with the policy delete
	MoveDropped  MoveCause = "dropped"  // the table was dropped
)

// CopyRemoved says that the store has confirmed that no object of the copy is there any more. The
// ledger refuses it for a copy that lies at or above the log start, unless its epoch is one whose
// data are to be deleted.
type CopyRemoved struct {
	Log      LogID
	Position Position
	At       Time
}

// TombstoneCleared says that nothing of an abandoned attempt can appear in the store any more.
type TombstoneCleared struct {
	Log      LogID
	Position Position
	At       Time
}

// Diverged says that the source shows another leader epoch from Offset on than what was copied: the
// copied offset goes down to Offset, copies and holes above it are clipped there, and no loss above
// it is accepted any more. It takes a position, for the manifest's "clip" fact.
type Diverged struct {
	Log    LogID
	Offset Offset
	At     Time
}

// TableGoverned notes which entry of the configuration governs a table, as Table.Governor names it.
// It stays noted when the entry goes: then the table is frozen. It ends a drop that is over.
type TableGoverned struct {
	Table string
	Entry string
	At    Time
}

// TableDropped says that an operator dropped a table: all its remote data leave and are deleted, as
// by a DISABLING with the policy delete, in a new tier epoch. Nothing local is touched from here on
// until the table is governed by the configuration again. It may come in any state; of a table that
// is being dropped it changes nothing.
type TableDropped struct {
	Table string
	At    Time
}

// ClockAccepted says that an operator accepted the wall time after a step.
type ClockAccepted struct {
	At Time
}

// ClockSeen raises the highest wall time that the ledger has seen.
type ClockSeen struct {
	At Time
}

// Subject implements Record.
func (r LogOpened) Subject() LogID        { return r.Log }
func (r CopyStarted) Subject() LogID      { return r.Log }
func (r CopyFinished) Subject() LogID     { return r.Log }
func (r CopyAbandoned) Subject() LogID    { return r.Log }
func (r CopyReidentified) Subject() LogID { return r.Log }
func (r HoleRecorded) Subject() LogID     { return r.Log }
func (r Published) Subject() LogID        { return r.Log }
func (r Checkpointed) Subject() LogID     { return r.Log }
func (r LocalDeleted) Subject() LogID     { return r.Log }
func (r TablePaused) Subject() LogID      { return LogID{Table: r.Table} }
func (r TableResumed) Subject() LogID     { return LogID{Table: r.Table} }
func (r LossAccepted) Subject() LogID     { return r.Log }
func (r ClockSeen) Subject() LogID        { return LogID{} }
func (r TierChanged) Subject() LogID      { return LogID{Table: r.Table} }
func (r EpochOpened) Subject() LogID      { return r.Log }
func (r StartMoved) Subject() LogID       { return r.Log }
func (r CopyRemoved) Subject() LogID      { return r.Log }
func (r TombstoneCleared) Subject() LogID { return r.Log }
func (r Diverged) Subject() LogID         { return r.Log }
func (r TableGoverned) Subject() LogID    { return LogID{Table: r.Table} }
func (r TableDropped) Subject() LogID     { return LogID{Table: r.Table} }
func (r ClockAccepted) Subject() LogID    { return LogID{} }

// LogState is the durable state of a log, without its copies.
type LogState struct {
	Log         LogID
	Source      string
	Layout      Layout
	Incarnation string
	Epoch       TierEpoch
	Fresh       TierEpoch // copies of this epoch and later ones count; older ones are to be removed
	Start       Offset    // where this tier epoch began
	// Copied is exclusive: every offset in [Start, Copied) was once copied and verified, or lies in
	// a recorded hole. Monotonic within an epoch. Necessary for a deletion, never sufficient.
	Copied   Offset
	LogStart Offset   // tierd's own start of the readable log
	Next     Position // the next manifest position to hand out
	Holes    []Hole   // ascending by base
	Expired  RangeSet // ranges whose remote segments expired
	Accepted []LossAccepted
	// Unpublished are positions of facts that are durable here but not yet in the manifest.
	Unpublished []Position
	// Moves are the moves of the log start whose remote segments are not all removed yet, ascending.
	Moves []StartMove
	// Clips are where copies of the log end because of a divergence: a copy at a lower position than
	// the clip's counts only below its offset.
	Clips []Clip
	// Checkpoints[l] is the number of leading blocks of level l+1 that are durable.
	Checkpoints []uint64
	// Emptied says that tierd deleted the last local segment, and has copied nothing of the log since:
	// that the source has nothing of it is as it should be.
	Emptied bool
}

// StartMove is one move of a log's start.
type StartMove struct {
	Start Offset    `json:"start"`
	At    Time      `json:"at"`
	Cause MoveCause `json:"cause"`
}

// Clip ends all copies at lower positions at Offset.
type Clip struct {
	Position Position `json:"position"`
	Offset   Offset   `json:"offset"`
	At       Time     `json:"at"` // when it was recorded
}

// TableState is the durable state of a table.
type TableState struct {
	Table  string
	State  TierState
	Epoch  TierEpoch
	Policy DisablePolicy // in force while DISABLING, and the one that led to DISABLED
	Fresh  TierEpoch     // the last epoch that was opened after a disablement by delete; 0 if none
	Since  Time          // of the last change of state
	// Entry is the one of the configuration that governs it, as last noted; "" where none was, or
	// since the table was dropped.
	Entry  string
	Paused *Reason
	Window BrakeWindow
	// Dropped is when the table was dropped; absent where it was not, and once it is governed anew
	// after everything of it was gone.
	Dropped Time
}

// Leaves reports whether all remote data of the table are to go: it was disabled with the policy
// delete, or dropped.
func (t *TableState) Leaves() bool { return t.Policy == PolicyDelete && t.State != Enabled }

// Frozen reports whether the settings that the configuration has for the table must not be used:
// there are none, or they are the defaults where an entry of its own governed the table before. A
// table never falls silently to the defaults.
func (t *TableState) Frozen(cfg Table, governed bool) bool {
	return !governed || cfg.Governor == GovernedByDefaults &&
		t.Entry != "" && t.Entry != GovernedByDefaults
}

// Fact is one entry of a log's manifest. Facts commute: any order and any repetition of them
// gives the same manifest. Exactly one of Add, Hole, Start, Clip, Open is set.
type Fact struct {
	Position Position  `json:"position"`
	Epoch    TierEpoch `json:"epoch"`
	At       Time      `json:"at"`
	Copied   Offset    `json:"copied"` // max over all facts is the copied offset
	Add      *Copy     `json:"add,omitempty"`
	Hole     *Hole     `json:"hole,omitempty"`
	Start    *Offset   `json:"start,omitempty"` // max over all facts is the log start
	Clip     *Offset   `json:"clip,omitempty"`  // adds at lower positions end here
	Open     *Offset   `json:"open,omitempty"`  // the epoch of this fact begins here; nothing older counts
	// Incarnation is that of the log, for whoever has only the manifest; "" where there is none.
	Incarnation string `json:"incarnation,omitempty"`
}

// Says reports whether both say the same of the store; identities of local files, which change with
// each of them that is put back, may differ.
func (f *Fact) Says(g *Fact) bool {
	if f.Epoch != g.Epoch || !sameOffset(f.Start, g.Start) || !sameOffset(f.Clip, g.Clip) ||
		!sameOffset(f.Open, g.Open) || (f.Add == nil) != (g.Add == nil) ||
		(f.Hole == nil) != (g.Hole == nil) {
		return false
	}
	if f.Hole != nil {
		return f.Hole.Range == g.Hole.Range && f.Hole.Cause == g.Hole.Cause
	}
	if f.Add == nil {
		return true
	}
	x, y := &f.Add.Content, &g.Add.Content
	return f.Add.Attempt == g.Add.Attempt && x.Range == y.Range &&
		slices.Equal(x.Lineage, y.Lineage) &&
		slices.EqualFunc(x.Files, y.Files, func(a, b SourceFile) bool {
			return a.FileDigest == b.FileDigest
		})
}

func sameOffset(a, b *Offset) bool {
	return (a == nil) == (b == nil) && (a == nil || *a == *b)
}
