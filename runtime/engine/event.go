package engine

import (
	"github.com/tierd/tierd/runtime/tier"
)

// EffectID pairs an effect with its completion. It is unique within one engine.
type EffectID uint64

// Event is something that happened. Step takes one at a time.
type Event interface{ event() }

// Restored gives the engine what the ledger holds of one log, before the first decision.
type Restored struct {
	State    tier.LogState
	Copies   []tier.Remote
	Attempts []tier.Attempt
	// Tombstones are the attempts that were abandoned and may still appear in the store.
	Tombstones []Tombstone
}

// Tombstone is an abandoned attempt.
type Tombstone struct {
	Position tier.Position
	At       tier.Time // when it was abandoned
}

// RestoredTable gives the engine what the ledger holds of one table.
type RestoredTable struct{ State tier.TableState }

// Started ends the restoring: from here on effects are emitted.
type Started struct{}

// Reconfigured puts a new generation of settings in force.
type Reconfigured struct{ Settings Settings }

// Reconsidered says that the user's facts about these logs are others than before: what was kept is
// asked about again.
type Reconsidered struct{ Logs []tier.LogID }

// Scanned is a look at one log.
type Scanned struct{ Scan tier.Scan }

// SourceScanned ends a scan of a whole source: logs of it that Logs does not name are not there.
// Trouble is set where the source is vanished, empty or unreadable; then nothing of it is decided.
type SourceScanned struct {
	Source  string
	Logs    []tier.LogID
	Trouble *tier.Reason
}

// Tick lets time pass: due work is emitted.
type Tick struct{}

// Finished completes an effect.
type Finished struct {
	ID     EffectID
	Result Result
}

// Late says what an effect came to that was answered as unknown, since its caller gave it up, and
// that has ended now. What else such a call may have left is found when it is asked for again; that
// a segment went is not asked again.
type Late struct {
	Effect Effect
	Result Result
}

// ClockJudged says whether final deletions may go by the clocks now; nil if they may.
type ClockJudged struct{ Reason *tier.Reason }

// Paused says whether the pause file is there, or deletions are off.
type Paused struct{ Reason *tier.Reason }

// Resumed lets a table's deletions go on after the brake, with a new window.
type Resumed struct{ Table string }

// TableDropped says that an operator dropped a table, durably: State is what the ledger has of it
// now.
type TableDropped struct{ State tier.TableState }

// LossAccepted says that an operator accepted the loss of a damaged segment: copying goes on behind
// it. The damaged file stays where it is. Hole was recorded for it and is published next; nil where
// its offsets were passed already.
type LossAccepted struct {
	Accepted tier.LossAccepted
	Segment  tier.LocalSegment // the damaged one
	Hole     *HoleDone
}

func (Restored) event()      {}
func (RestoredTable) event() {}
func (Started) event()       {}
func (Reconfigured) event()  {}
func (Reconsidered) event()  {}
func (Scanned) event()       {}
func (SourceScanned) event() {}
func (Tick) event()          {}
func (Finished) event()      {}
func (Late) event()          {}
func (Paused) event()        {}
func (ClockJudged) event()   {}
func (Resumed) event()       {}
func (TableDropped) event()  {}
func (LossAccepted) event()  {}

// Effect is something to be done outside. The engine decides that it is worth trying; the executor
// establishes that it may be done at the moment it does it.
type Effect interface {
	// EffectID pairs the effect with its Finished.
	EffectID() EffectID
}

// Open records the first sight of a log: LogOpened.
type Open struct {
	ID          EffectID
	Log         tier.LogID
	Source      string
	Layout      tier.Layout
	Incarnation string
	Start       tier.Offset
	State       tier.TierState // of the table, if this is its first log
}

// Copy copies one closed segment. Durable sub-steps, in order: CopyStarted, each PUT, the PUT of
// the manifest entry, CopyFinished.
type Copy struct {
	ID      EffectID
	Log     tier.LogID
	Source  string
	Segment tier.LocalSegment
	Epoch   tier.TierEpoch
	// Known is the position of a copy of the same range whose identity no longer holds: if the
	// content still does, only the identity is recorded anew. HasKnown tells whether there is one.
	Known    tier.Position
	HasKnown bool
	// Over are the copies that overlap the segment: its batches must be of their leader epochs, or
	// the source has written anew what was copied.
	Over []tier.Position
}

// Compare looks whether the source's batches from From on are still those that were copied. Durable
// sub-step, if they are not: Diverged. The manifest entry that it takes follows as a Publish.
type Compare struct {
	ID     EffectID
	Log    tier.LogID
	Source string
	From   tier.Offset
	Copies []tier.Position // that reach above From
	Clips  tier.Position   // one more than the position of the log's last clip; 0 if it has none
}

// Resolve looks at what an attempt of unknown outcome left in the store, and finishes or abandons
// it. Durable sub-steps: CopyFinished or CopyAbandoned.
type Resolve struct {
	ID      EffectID
	Log     tier.LogID
	Source  string // "" where nothing of it can be relied on: what has no manifest entry is abandoned
	Attempt tier.Attempt
}

// Delete deletes the oldest local segments of a log, in order, until one is kept. Durable sub-steps
// for each: audit record, drop (rename, fsync, unlink, fsync), LocalDeleted, audit outcome.
type Delete struct {
	ID       EffectID
	Log      tier.LogID
	Source   string
	Action   tier.Action
	Segments []DeleteCandidate
	Remote   Extent // of the log, for the policies
}

// DeleteCandidate is a local segment with the position of its copy. Copied is false where there is
// none; such a candidate is only explained, never proposed.
type DeleteCandidate struct {
	Segment  tier.LocalSegment
	Copied   bool
	Position tier.Position
	Ordinal  int64 // from the newest local segment of the log, which is 0
}

// RecordHole records offsets that the source no longer has. The executor looks again first. Durable
// sub-steps: HoleRecorded, PUT of its manifest entry, Published.
type RecordHole struct {
	ID     EffectID
	Log    tier.LogID
	Source string
	Range  tier.Range
	Cause  tier.HoleCause
	// Before is the local segment that ends below the hole, if there is one. A look at the directory
	// alone would let it reach up to the next file that is left.
	Before tier.LocalSegment
}

// Publish puts a durable fact into the manifest that a crash kept out of it. Durable sub-steps: the
// PUT, Published.
type Publish struct {
	ID       EffectID
	Log      tier.LogID
	Position tier.Position
}

// Checkpoint writes one block of the manifest as one object. Durable sub-steps: the PUT,
// Checkpointed.
type Checkpoint struct {
	ID    EffectID
	Log   tier.LogID
	Level uint8
	Block uint64
}

// ChangeTier makes one step of a table's tiering durable: TierChanged.
type ChangeTier struct {
	ID     EffectID
	Table  string
	State  tier.TierState
	Epoch  tier.TierEpoch
	Policy tier.DisablePolicy
}

// Govern notes which entry of the configuration governs a table: TableGoverned.
type Govern struct {
	ID    EffectID
	Table string
	Entry string
}

// OpenEpoch brings a log into its table's tier epoch. Durable sub-step: EpochOpened. The manifest
// entry that it may take follows as a Publish.
type OpenEpoch struct {
	ID     EffectID
	Log    tier.LogID
	Source string
	Epoch  tier.TierEpoch
	Fresh  bool // nothing of an older epoch counts
	Start  tier.Offset
}

// MoveStart advances a log's start without asking, since all remote data leave the log. Durable
// sub-steps: StartMoved, the PUT of its manifest entry, Published.
type MoveStart struct {
	ID     EffectID
	Log    tier.LogID
	Source string // where the log is
	Start  tier.Offset
	// Expired are the ranges of the remote segments that lie below the new start.
	Expired tier.RangeSet
	Cause   tier.MoveCause
}

// Expire asks the gate about the oldest remote segments of a log, in order, until one is kept, and
// advances the log's start over those that may go. Durable sub-steps: StartMoved, the PUT of its
// manifest entry, Published. Nothing is removed yet.
type Expire struct {
	ID       EffectID
	Log      tier.LogID
	Source   string
	Segments []RemoteCandidate
	Remote   Extent
}

// RemoteCandidate is a remote segment that may go.
type RemoteCandidate struct {
	tier.Remote
	Ordinal int64 // from the newest remote segment of the log, which is 0
}

// Remove removes the objects of copies that are no longer part of the log. Durable sub-steps for
// each: audit record, DELETE of each object, audit outcome, CopyRemoved.
type Remove struct {
	ID     EffectID
	Log    tier.LogID
	Action tier.Action // DeleteRemote, DisableDelete, or DeleteOrphan for what a clip left nothing of
	Copies []RemoteCandidate
	Remote Extent
}

// Clear removes whatever an abandoned attempt has left in the store after all. Durable sub-steps:
// audit record and DELETE of each object that is there, audit outcome, TombstoneCleared.
type Clear struct {
	ID       EffectID
	Log      tier.LogID
	Position tier.Position
}

// Sweep looks for objects under the ledger's id that nothing names, and removes them. Durable
// sub-steps for each: audit record, DELETE, audit outcome.
type Sweep struct{ ID EffectID }

// Pause makes the pause of a table durable: TablePaused.
type Pause struct {
	ID     EffectID
	Table  string
	Reason tier.Reason
}

// EffectID implements Effect.
func (f Open) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Copy) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Compare) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Resolve) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Delete) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f RecordHole) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Publish) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Checkpoint) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Pause) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f ChangeTier) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Govern) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f OpenEpoch) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f MoveStart) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Expire) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Remove) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Clear) EffectID() EffectID { return f.ID }

// EffectID implements Effect.
func (f Sweep) EffectID() EffectID { return f.ID }

// Result is how an effect ended.
type Result interface{ result() }

// Opened completes Open and OpenEpoch. State and Table are what the ledger holds now.
type Opened struct {
	State tier.LogState
	Table tier.TableState
}

// Copied completes Copy or Resolve: the segment is in the store, or was already. Next is the next
// free manifest position of the log; Offset the copied offset.
type Copied struct {
	Remote tier.Remote
	Offset tier.Offset
	Next   tier.Position
}

// Abandoned completes Copy or Resolve where the attempt could not be finished; what it may have
// left behind is now a tombstone. Tombstone is nil where it was one before.
type Abandoned struct {
	Next      tier.Position
	Tombstone *Tombstone
}

// Disputed completes Copy where a batch at or above At is of another leader epoch than what was
// copied there. Nothing was uploaded. Segment is the one that was read.
type Disputed struct {
	At      tier.Offset
	Segment tier.Stat
}

// Diverged completes Compare where the source has written anew what was copied: State is what the
// ledger holds now, with the clip.
type Diverged struct{ State tier.LogState }

// Agreed completes Compare where the source has what was copied.
type Agreed struct{}

// Silent completes Compare where the source ends below what was copied, and none of its batches
// shows that it is another log.
type Silent struct{}

// Moved completes MoveStart, and Expire where at least one segment may go: Expired are the ranges
// that left the log. Published is false where the manifest does not have it yet. Kept says why the
// next segment stays, if any.
type Moved struct {
	Start   tier.Offset // of the log now
	Expired tier.RangeSet
	Cause   tier.MoveCause
	At      tier.Time
	Next    tier.Position // the log's next free one
	// Unpublished are the log's facts that its manifest lacks, among them perhaps this start.
	Unpublished []tier.Position
	Window      tier.BrakeWindow
	Kept        *KeptRemote
}

// KeptRemote is the gate's answer for a remote segment that stays.
type KeptRemote struct {
	Position tier.Position
	Range    tier.Range
	Reasons  []tier.Reason
	Due      tier.Time
	Failed   bool // it was allowed, and could not be done
	// Denied is set where the policies were asked and keep it: nothing else stands in its way.
	Denied bool
}

// StaysAll completes Expire where the oldest segment stays, and Clear where the gate keeps what the
// attempt left.
type StaysAll struct{ Kept KeptRemote }

// Removed completes Remove: the copies at Positions are gone, the others stay for now.
type Removed struct {
	Positions []tier.Position
	Kept      []KeptRemote
}

// Swept completes Sweep. Stale says that manifests know more than the ledger: then nothing final
// happens until it was rebuilt.
type Swept struct {
	Objects int64 // removed
	Kept    int64 // orphans that stay, by policy or because they are young
	Stale   *tier.Reason
}

// LossKnown completes Copy of a segment that is damaged, and whose loss an operator accepted
// already: its file has the bytes that were given up.
type LossKnown struct{ Segment tier.LocalSegment }

// Failed completes any effect that did not do what it should; nothing is deleted. A quarantined
// segment is not tried again until its file changes.
type Failed struct {
	Reason     tier.Reason
	Quarantine bool
	Segment    tier.LocalSegment // the damaged one, if Quarantine
	Attempt    *tier.Attempt     // of unknown outcome, if any: it is resolved by looking
}

// Deleted completes Delete: Gone went, in order; Kept says why the next one stayed, if any. Window
// is the brake's window of the table as it is durable now.
type Deleted struct {
	Gone     []tier.LocalSegment
	Window   tier.BrakeWindow
	LogStart tier.Offset   // of the log now
	Next     tier.Position // the log's next free one
	// Unpublished are the log's facts that its manifest lacks, among them a start that moved.
	Unpublished []tier.Position
	Kept        *Kept
}

// Kept is the gate's answer for a segment that stays.
type Kept struct {
	Segment tier.LocalSegment
	Reasons []tier.Reason
	Due     tier.Time // when it is worth asking again; absent if only a change of facts can help
}

// HoleDone completes RecordHole: the hole is durable in the ledger at Position. Offset is the
// copied offset after it, Next the next free position. Published is false where the manifest does
// not have it yet.
type HoleDone struct {
	Hole      tier.Hole
	Position  tier.Position
	Offset    tier.Offset
	Next      tier.Position
	Published bool
}

// Done completes an effect that has nothing else to say.
type Done struct{}

func (Opened) result()    {}
func (Copied) result()    {}
func (Abandoned) result() {}
func (Disputed) result()  {}
func (Diverged) result()  {}
func (Agreed) result()    {}
func (Silent) result()    {}
func (Moved) result()     {}
func (StaysAll) result()  {}
func (Removed) result()   {}
func (Swept) result()     {}
func (LossKnown) result() {}
func (Failed) result()    {}
func (Deleted) result()   {}
func (HoleDone) result()  {}
func (Done) result()      {}

// Settings is one generation of configuration as the engine needs it.
type Settings struct {
	Generation uint64
	// Table resolves the effective configuration of a table; it must be pure. ok is false for a name
	// that no entry governs.
	Table func(name string) (t tier.Table, ok bool)
	// LocalDelete says how a source's segments are deleted; it must be pure. A source that is not
	// configured is LocalDeleteNever.
	LocalDelete func(source string) tier.LocalDelete
	Workers     int        // copies at one time
	Deleters    int        // deletions at one time
	Removers    int        // removals of remote objects at one time
	Brake       tier.Brake // per table
	Tolerance   tier.Time  // of clocks, nanoseconds
	HoldMax     tier.Time  // longest hold by a plugin, nanoseconds
	Plugins     bool       // there are plugins to be asked
	SelectEvery tier.Time  // how often they are asked again about what they held or kept, nanoseconds
	AskAgain    tier.Time  // slow period after which a denial is asked again, nanoseconds
	Backoff     Backoff
	ExpireRule  bool // some policy may ask for local deletions before a TTL is over
	// ExpireRemoteRule: some policy may ask for remote deletions before a TTL is over.
	ExpireRemoteRule bool
	Grace            tier.Time // between moving a start and removing what lies below, nanoseconds
	OrphanAge        tier.Time // how long an abandoned attempt may still appear, nanoseconds
	SweepEvery       tier.Time // how often orphans are looked for, nanoseconds; 0 is never
}

// Backoff bounds how soon a failed effect is tried again. Nanoseconds.
type Backoff struct{ Min, Max tier.Time }
