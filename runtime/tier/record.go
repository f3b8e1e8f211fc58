package tier

// Record is one durable step of a log or a table. The ledger checks each against what it holds,
// and refuses it (ErrRefused) where it would break an invariant.
type Record interface {
	// Subject is the log that the record belongs to; a record of a table has an empty Name.
	Subject() LogID
}

// LogOpened is the first sight of a log in a source. Copied and start begin at Start, the base of
// the first usable local segment.
type LogOpened struct {
	Log         LogID
	Source      string
	Layout      Layout
	Incarnation string
	Epoch       TierEpoch
	Start       Offset
	At          Time
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

// LogState is the durable state of a log, without its copies.
type LogState struct {
	Log         LogID
	Source      string
	Layout      Layout
	Incarnation string
	Epoch       TierEpoch
	Start       Offset // where this tier epoch began
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
	// Checkpoints[l] is the number of leading blocks of level l+1 that are durable.
	Checkpoints []uint64
}

// TableState is the durable state of a table.
type TableState struct {
	Table  string
	State  TierState
	Epoch  TierEpoch
	Paused *Reason
	Window BrakeWindow
}

// Fact is one entry of a log's manifest. Facts commute: any order and any repetition of them
// gives the same manifest. Exactly one of Add, Hole, Start, Clip is set.
type Fact struct {
	Position Position  `json:"position"`
	Epoch    TierEpoch `json:"epoch"`
	At       Time      `json:"at"`
	Copied   Offset    `json:"copied"` // max over all facts is the copied offset
	Add      *Copy     `json:"add,omitempty"`
	Hole     *Hole     `json:"hole,omitempty"`
	Start    *Offset   `json:"start,omitempty"` // max over all facts is the log start
	Clip     *Offset   `json:"clip,omitempty"`  // offsets from here on are no longer valid in older epochs
}
