package api

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
)

// Time is an instant in JSON: RFC 3339 with the precision needed, in UTC; null where it is absent.
type Time tier.Time

// MarshalJSON writes RFC 3339, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(tier.Time(t).String())
}

// UnmarshalJSON reads RFC 3339, or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if s == nil {
		*t = 0
		return nil
	}
	at, err := tier.ParseTime(*s)
	if err != nil {
		return fmt.Errorf("instant %q: %w", *s, err)
	}
	*t = Time(at)
	return nil
}

// List is a slice that is never null in JSON.
type List[T any] []T

// MarshalJSON writes an array, also for a nil slice.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if len(l) == 0 {
		return []byte("[]"), nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode([]T(l))
	return b.Bytes(), err
}

// Reason says why something is as it is.
type Reason struct {
	Code tier.Code `json:"code"` // a stable word
	Text string    `json:"text"` // for people
	// Rule is the deciding policy rule, setting or entry as file:line; null where none decided.
	Rule *string `json:"rule"`
	// Title is what the rule's author calls it; null where the rule has none.
	Title *string `json:"title"`
	// Until is when it will be looked at again; null where only a change can help.
	Until Time `json:"until"`
	// Alarm is set where an operator should do something.
	Alarm bool `json:"alarm"`
}

// ReasonOf converts a reason of the core.
func ReasonOf(r tier.Reason, alarm bool) Reason {
	out := Reason{Code: r.Code, Text: r.Text, Until: Time(r.Until), Alarm: alarm}
	if r.Rule != "" {
		out.Rule = &r.Rule
	}
	if r.Title != "" {
		out.Title = &r.Title
	}
	return out
}

// Status is the whole of a tierd: GET /api/v1/status, tierd status.
type Status struct {
	Version string `json:"version"`
	// LedgerID names the ledger, made once; every object of this tierd lies under it.
	LedgerID string `json:"ledger_id"`
	// Running is false where the command line answered from the ledger, with no daemon.
	Running   bool `json:"running"`
	Ready     bool `json:"ready"`
	Now       Time `json:"now"`
	StartedAt Time `json:"started_at"` // null where no daemon runs
	// Kafka is the address of the Kafka endpoint; null where it is off or no daemon runs.
	Kafka      *string    `json:"kafka"`
	Generation Generation `json:"generation"`
	// Reasons are what holds for all tables: a pause file, --no-delete, a store out of reach.
	Reasons List[Reason] `json:"reasons"`
	Sources List[Source] `json:"sources"`
	Tables  List[Table]  `json:"tables"`
	Logs    List[Log]    `json:"logs"`
}

// Generation is the configuration, policies and data in force.
type Generation struct {
	Number       uint64 `json:"number"` // 1 is the first since the start
	Config       string `json:"config"` // path of the file
	LoadedAt     Time   `json:"loaded_at"`
	PolicyDigest string `json:"policy_digest"` // of policies and data, hexadecimal
	// Plugins are those in force, in the order in which they are asked.
	Plugins List[Plugin] `json:"plugins"`
	// Error is why the last reload was refused; null where it was not.
	Error *string `json:"error"`
}

// Plugin is a plugin in force.
type Plugin struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // of its file, hexadecimal
}

// Source is a configured directory of logs.
type Source struct {
	Name        string           `json:"name"`
	Layout      tier.Layout      `json:"layout"`
	Path        string           `json:"path"`
	LocalDelete tier.LocalDelete `json:"local_delete"`
	Logs        int64            `json:"logs"`
	ScannedAt   Time             `json:"scanned_at"` // of the last whole scan
	Reasons     List[Reason]     `json:"reasons"`
}

// Table is the state and the effective settings of a table.
type Table struct {
	Table string `json:"table"`
	// Entry is the file:line that governs it, "defaults", or null: then it is not tiered.
	Entry     *string        `json:"entry"`
	TierState tier.TierState `json:"tier_state"`
	TierEpoch tier.TierEpoch `json:"tier_epoch"`
	// Dropped is when it was dropped; null where it was not.
	Dropped Time `json:"dropped"`
	// Outstanding are copies that have left their logs and are not removed yet.
	Outstanding Amount `json:"outstanding"`
	// Paused is why nothing of it is deleted; null where it is not paused.
	Paused   *Reason       `json:"paused"`
	Brake    Brake         `json:"brake"`
	Settings List[Setting] `json:"settings"`
}

// Brake is what was deleted of a table in the current window, and how much may be.
type Brake struct {
	Since       Time  `json:"since"` // null where nothing was deleted yet
	Segments    int64 `json:"segments"`
	Bytes       int64 `json:"bytes"`
	MaxSegments int64 `json:"max_segments"`
	MaxBytes    int64 `json:"max_bytes"`
	PerSeconds  int64 `json:"per_seconds"`
}

// Setting is an effective setting and where it comes from.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"` // "default", or file:line
}

// Log is where one log stands.
type Log struct {
	Log       string         `json:"log"` // table/name
	Source    string         `json:"source"`
	Layout    tier.Layout    `json:"layout"`
	TierState tier.TierState `json:"tier_state"`
	TierEpoch tier.TierEpoch `json:"tier_epoch"`
	// LogStart is tierd's own start of the readable log; null where the ledger has no such log yet.
	LogStart *tier.Offset `json:"log_start"`
	// CopiedOffset is exclusive; null where the ledger has no such log yet.
	CopiedOffset *tier.Offset `json:"copied_offset"`
	Local        Extent       `json:"local"`
	Remote       Extent       `json:"remote"`
	Lag          Lag          `json:"lag"`
	Holes        List[Hole]   `json:"holes"`
	Reasons      List[Reason] `json:"reasons"`
}

// Extent is what one tier holds of a log.
type Extent struct {
	Start    tier.Offset `json:"start"`
	End      tier.Offset `json:"end"`
	Segments int64       `json:"segments"`
	Bytes    int64       `json:"bytes"`
}

// Lag is what is closed and not copied.
type Lag struct {
	Segments int64 `json:"segments"`
	Bytes    int64 `json:"bytes"`
	Oldest   Time  `json:"oldest"` // modification time of the oldest of them
}

// Hole is a range that neither tier has.
type Hole struct {
	Base  tier.Offset    `json:"base"`
	Next  tier.Offset    `json:"next"`
	Cause tier.HoleCause `json:"cause"`
	At    Time           `json:"at"`
}

// Tier is where a segment lies.
type Tier string

// The tiers.
const (
	TierLocal  Tier = "local"
	TierRemote Tier = "remote"
)

// SegmentState says where a segment is on its way.
type SegmentState string

// The states of a segment.
const (
	SegmentActive      SegmentState = "active"      // it can still grow, or be cut off
	SegmentClosed      SegmentState = "closed"      // not copied yet
	SegmentCopying     SegmentState = "copying"     // being copied
	SegmentCopied      SegmentState = "copied"      // in the store
	SegmentLost        SegmentState = "lost"        // its copy is gone from the store, or altered
	SegmentDropping    SegmentState = "dropping"    // its local files are going
	SegmentQuarantined SegmentState = "quarantined" // damaged
	SegmentHole        SegmentState = "hole"        // in neither tier
	SegmentExpired     SegmentState = "expired"     // was in the store, and its TTL is over
)

// Listing is the segments of a log: GET .../segments, tierd ls LOG.
type Listing struct {
	Log      string        `json:"log"`
	Segments List[Segment] `json:"segments"` // ascending by base
}

// Segment is one segment, in whatever tier it lies.
type Segment struct {
	Base  tier.Offset `json:"base"`
	Next  tier.Offset `json:"next"`
	Bytes int64       `json:"bytes"` // of all its files
	// MaxTimestamp is the largest record timestamp; null where none is known or usable.
	MaxTimestamp Time `json:"max_timestamp"`
	// ModTime is when the file with the records was last changed, before it was copied; null where
	// it is not known. It tells the age where MaxTimestamp does not.
	ModTime Time         `json:"mod_time"`
	Tiers   List[Tier]   `json:"tiers"`
	State   SegmentState `json:"state"`
	// SHA256 is of the file with the records; null until it was read.
	SHA256 *tier.SHA256 `json:"sha256"`
	// Object is the key of the copy of that file; null where there is no copy.
	Object   *string `json:"object"`
	CopiedAt Time    `json:"copied_at"`
	// Files are those of the copy, the one with the records first; empty where there is no copy.
	Files   List[SegmentFile] `json:"files"`
	Reasons List[Reason]      `json:"reasons"`
}

// SegmentFile is a file of a copied segment.
type SegmentFile struct {
	Name   string      `json:"name"`
	Bytes  int64       `json:"bytes"`
	SHA256 tier.SHA256 `json:"sha256"`
}

// Explanation is everything about one offset: GET .../explain, tierd explain LOG@OFFSET.
type Explanation struct {
	Log    string      `json:"log"`
	Offset tier.Offset `json:"offset"`
	// Segment is the one that holds the offset; null where none does.
	Segment *Segment   `json:"segment"`
	Tiers   List[Tier] `json:"tiers"`
	// CopiedOffset is that of the log; null where the ledger has no such log yet.
	CopiedOffset *tier.Offset `json:"copied_offset"`
	// AgeNS is the age that TTLs look at, in nanoseconds; AgeSource is "record" or "mtime". Both
	// are null where neither timestamp is usable.
	AgeNS     *int64  `json:"age_ns"`
	AgeSource *string `json:"age_source"`
	// Reasons are about the offset as a whole, such as a hole.
	Reasons   List[Reason]   `json:"reasons"`
	Decisions List[Decision] `json:"decisions"`
}

// Verdict is what the gate answers for one deletion.
type Verdict string

// The verdicts.
const (
	Keep   Verdict = "keep"
	Delete Verdict = "delete"
)

// Decision is the gate's answer for one kind of deletion of a segment.
type Decision struct {
	Action  tier.Action `json:"action"`
	Verdict Verdict     `json:"verdict"`
	// Due is when the verdict may change by time alone; null where it will not.
	Due     Time         `json:"due"`
	Reasons List[Reason] `json:"reasons"`
}

// PolicyInput is what the policies would be asked about a segment now: GET .../policy-input.
type PolicyInput struct {
	Log  string      `json:"log"`
	Base tier.Offset `json:"base"`
	Next tier.Offset `json:"next"`
	// Input has the schema policies/schema/input.json.
	Input json.RawMessage `json:"input"`
	// UnknownFacts are the configured facts that are not in Input, because they are not known now.
	UnknownFacts List[UnknownFact] `json:"unknown_facts"`
	// Guard is why the guard keeps the segment now, whatever policies say; empty where it would not.
	Guard List[Reason] `json:"guard"`
}

// UnknownFact is a fact that is not known now, and why.
type UnknownFact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// AcceptedLoss is the answer to accept-loss.
type AcceptedLoss struct {
	Log    string      `json:"log"`
	Base   tier.Offset `json:"base"`
	Next   tier.Offset `json:"next"`
	SHA256 tier.SHA256 `json:"sha256"` // of the damaged file as it is now
}

// Health is whether the daemon works.
type Health struct {
	Healthy bool         `json:"healthy"`
	Ready   bool         `json:"ready"`
	Reasons List[Reason] `json:"reasons"` // why not
}

// Of returns the part of s that concerns one table: its entry, its logs and their sources.
func (s *Status) Of(table string) *Status {
	out := *s
	out.Tables, out.Logs, out.Sources = []Table{}, []Log{}, []Source{}
	for _, t := range s.Tables {
		if t.Table == table {
			out.Tables = append(out.Tables, t)
		}
	}
	used := map[string]bool{}
	for _, l := range s.Logs {
		if id, err := tier.ParseLogID(l.Log); err == nil && id.Table == table {
			out.Logs = append(out.Logs, l)
			used[l.Source] = true
		}
	}
	for _, x := range s.Sources {
		if used[x.Name] {
			out.Sources = append(out.Sources, x)
		}
	}
	return &out
}
