package tier

import "time"

// Limit is a size or count limit that may be unset.
type Limit struct {
	Set   bool
	Value int64
}

// DisablePolicy says what happens to a table's remote data when its tiering is turned off.
type DisablePolicy string

// The disable policies (KIP-950).
const (
	PolicyRetain DisablePolicy = "retain" // it stays part of the log and expires by TTL
	PolicyDelete DisablePolicy = "delete" // it leaves the log at once and is deleted
)

// Table is the effective configuration of one table, resolved once: nothing in it is inherited
// or defaulted any further.
type Table struct {
	Name          string
	Labels        map[string]string
	TTL           time.Duration // table.log.ttl; 0 keeps for ever
	LocalTTL      time.Duration // table.log.local-ttl; 0 keeps for ever
	LocalSegments Limit         // table.log.tiered.local-segments, a count
	Bytes         Limit         // table.log.bytes
	LocalBytes    Limit         // table.log.local-bytes
	Tiering       bool          // remote.storage.enable
	DisablePolicy DisablePolicy // remote.log.disable.policy
	Compacted     Truth         // as the user declares it; Unknown leaves it to what is discovered
	Named         bool          // an entry has this very name, and no pattern
	Entry         string        // file:line of the entry that governs it; "defaults" where none does
	// Governor names that entry for the ledger, so that it is known when it is gone: its name in
	// the list of tables after "tables/", whatever line it stands in, or GovernedByDefaults.
	Governor string
}

// GovernedByDefaults is the Governor of a table that no entry of its own governs, where the
// configuration has no list of tables.
const GovernedByDefaults = "defaults"

// LocalDelete says how local segments of a source are deleted.
type LocalDelete string

// The ways to delete local segments.
const (
	LocalDeleteNever   LocalDelete = "never"
	LocalDeleteUnlink  LocalDelete = "unlink"
	LocalDeleteRecords LocalDelete = "delete-records" // the Kafka broker drops its own segments
)

// Brake bounds how much of one table may be deleted within a window.
type Brake struct {
	MaxSegments int64
	MaxBytes    int64
	Per         time.Duration
}

// BrakeWindow is what was deleted of one table since the window began.
type BrakeWindow struct {
	Since    Time  `json:"since"`
	Segments int64 `json:"segments"`
	Bytes    int64 `json:"bytes"`
}

// At returns the window as it stands at now: a new one where the old one is over.
func (w BrakeWindow) At(now Time, per time.Duration) BrakeWindow {
	if w.Since == 0 || now.Sub(w.Since) >= per || now < w.Since {
		return BrakeWindow{Since: now}
	}
	return w
}

// Plus returns the window with one more deletion.
func (w BrakeWindow) Plus(segments, bytes int64) BrakeWindow {
	w.Segments += segments
	w.Bytes += bytes
	return w
}

// Exceeded reports whether the window is beyond the brake.
func (b Brake) Exceeded(w BrakeWindow) bool {
	return w.Segments > b.MaxSegments || w.Bytes > b.MaxBytes
}
