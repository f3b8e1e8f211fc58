package tier

// ObjectKey names one file of one attempt in the store. The store turns it into a key that starts
// with the ledger id, so that two tierds never touch each other's objects.
type ObjectKey struct {
	Log     LogID
	Epoch   TierEpoch
	Base    Offset
	Attempt AttemptID
	Name    string // base name of the file, as in the source's directory
}

// Deletion is what the audit record says of a deletion before it happens.
type Deletion struct {
	Action  Action    `json:"action"`
	Log     LogID     `json:"log"`
	Range   Range     `json:"range"`
	Bytes   int64     `json:"bytes"`
	Epoch   TierEpoch `json:"tier_epoch"`
	SHA256  SHA256    `json:"sha256"`           // of the local log file, or of the object
	Object  string    `json:"object,omitempty"` // key of the copy's log file in the store
	Attempt AttemptID `json:"attempt"`          // of the copy that proves it
	Reasons []Reason  `json:"reasons"`          // why it may go
	Digest  string    `json:"policy_digest"`    // of the policies and data that were asked
	Data    string    `json:"data_digest"`      // of the data alone
	At      Time      `json:"at_ns"`            // nanoseconds since the Unix epoch
	Input   []byte    `json:"input,omitempty"`  // the policies' input, JSON
}

// Outcome is how an intended deletion ended.
type Outcome struct {
	Result OutcomeResult `json:"result"`
	Text   string        `json:"text,omitempty"`
	At     Time          `json:"at_ns"`
}

// OutcomeResult is a word for how a deletion ended.
type OutcomeResult string

// The results of a deletion.
const (
	OutcomeDeleted OutcomeResult = "deleted"
	OutcomeKept    OutcomeResult = "kept"    // nothing was deleted
	OutcomeUnknown OutcomeResult = "unknown" // to be resolved by looking
)

// Intent is a deletion as the audit log announced it, with its sequence number there.
type Intent struct {
	Seq      uint64
	Deletion Deletion
}

// StoredObject is an object of a log as a listing shows it.
type StoredObject struct {
	Key      string
	Log      LogID
	Modified Time      // by the store's clock
	Epoch    TierEpoch // of a file
	Attempt  AttemptID // of a file or an entry
	// Entry and Checkpoint are of the manifest; neither is set for a segment's file.
	Entry      bool
	Checkpoint bool
	Position   Position // of an entry
	Level      uint8    // of a checkpoint
	Block      uint64   // of a checkpoint
}
