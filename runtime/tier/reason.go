package tier

// Code is a stable word for a reason. Scripts may depend on it; texts may change.
type Code string

// The codes of reasons. They appear in status, explain, metrics and the audit record.
const (
	CodeActiveSegment  Code = "active-segment"      // the segment can still grow
	CodeHighWatermark  Code = "high-watermark"      // not yet on every replica
	CodeRecoveryPoint  Code = "recovery-point"      // not yet fsynced by the source
	CodeNotCopied      Code = "not-copied"          // no finished copy of it
	CodeNotProved      Code = "not-proved"          // a copy is recorded, and could not be shown
	CodeBelowStart     Code = "below-start"         // it came after its log was first seen
	CodeChanged        Code = "changed"             // its content is no longer what was copied
	CodePrefixBlocked  Code = "prefix-blocked"      // an older segment has to go first
	CodeLocalTTL       Code = "local-ttl"           // table.log.local-ttl
	CodeTTL            Code = "ttl"                 // table.log.ttl
	CodeLocalBytes     Code = "local-bytes"         // table.log.local-bytes
	CodeBytes          Code = "bytes"               // table.log.bytes
	CodeLocalSegments  Code = "local-segments"      // table.log.tiered.local-segments
	CodeRetainForever  Code = "retain-for-ever"     // no limit is set
	CodeQuarantined    Code = "quarantined"         // damaged; blocks its own log
	CodeCompacted      Code = "compacted"           // compacted logs are not tiered
	CodeCompactedTable Code = "compacted-table"     // likewise, and an entry names the table
	CodeDenied         Code = "denied"              // a policy denied it
	CodePolicyError    Code = "policy-error"        // a policy failed, timed out or gave no answer
	CodeExpire         Code = "expire"              // a policy asked for it
	CodeFactUnknown    Code = "fact-unknown"        // a policy needs a fact that is not known now
	CodeBrake          Code = "brake"               // limits.max_delete_* reached
	CodePaused         Code = "paused"              // by the pause file or the brake
	CodeNoDelete       Code = "no-delete"           // started with --no-delete
	CodePolicyAge      Code = "policy-age"          // older than policies.max_policy_age
	CodeLocalDelete    Code = "local-delete"        // the source's local_delete is never
	CodeSourceVanished Code = "source-vanished"     // the source's directory is gone or empty
	CodeSourceUnread   Code = "source-unread"       // the source could not be read whole
	CodeSourceInUse    Code = "source-in-use"       // another process holds the directory's lock
	CodeDuplicateLog   Code = "duplicate-log"       // one id in two places: both are frozen
	CodeIncarnation    Code = "recreated"           // the log was recreated under the same name
	CodeMoved          Code = "moved"               // it is in another source, and may be another log
	CodeEmptied        Code = "emptied"             // all of it is in the store alone
	CodeBadName        Code = "bad-name"            // a file name carries no base offset
	CodeDuplicateBase  Code = "duplicate-base"      // two files claim the same base
	CodeNotRegular     Code = "not-regular"         // a link, a directory or a device
	CodeUnreadable     Code = "unreadable"          // permission or IO
	CodeHole           Code = "hole"                // offsets in neither tier
	CodeStoreError     Code = "store-error"         // the object store failed or was not reached
	CodeStoreLost      Code = "store-lost"          // the store no longer has what it had
	CodeManifest       Code = "manifest"            // an object of it is not what the ledger says
	CodeUnknownOutcome Code = "unknown-outcome"     // a call was abandoned; being resolved by looking
	CodeTierState      Code = "tier-state"          // the table's tier state does not allow it
	CodeTierEpoch      Code = "tier-epoch"          // of another tier epoch
	CodeClock          Code = "clock"               // the clocks cannot be trusted now
	CodeAudit          Code = "audit"               // the audit record could not be written
	CodeAllowed        Code = "allowed"             // nothing speaks against it
	CodeDamaged        Code = "damaged"             // a batch or checksum is wrong
	CodeVanished       Code = "vanished"            // it went away while it was worked on
	CodeIndexMismatch  Code = "index-mismatch"      // an index does not fit its log
	CodeBroker         Code = "broker"              // the broker was not reached, or refuses
	CodeNotLeader      Code = "not-leader"          // another node leads the log
	CodeOtherLog       Code = "other-log"           // the broker has another log under the name
	CodeBrokerLimits   Code = "broker-retention"    // shorter than tierd's: it can delete too soon
	CodeDropping       Code = "dropping"            // the broker gave it up; its files go soon
	CodeLineage        Code = "lineage"             // leader epochs disagree with what was copied
	CodeRetry          Code = "retry"               // tried again later
	CodeFrozen         Code = "frozen"              // no entry governs the table any more
	CodeExpired        Code = "expired"             // it has left the log
	CodeGrace          Code = "remote-delete-grace" // readers get time to finish
	CodeLedgerStale    Code = "ledger-stale"        // manifests know more than it
	CodeHeld           Code = "held"                // a plugin asks not to copy it yet
	CodeKept           Code = "kept"                // a plugin asks not to delete it locally
	CodePluginFault    Code = "plugin-fault"        // a plugin failed; the built-in order serves
	// CodeDisablement is what KIP-950 calls it.
	CodeDisablement     Code = "TIERED_STORAGE_DISABLEMENT_IN_PROGRESS"
	CodeTieringDisabled Code = "tiering-disabled" // the table is not tiered
)

// Reason says why something is as it is: a stable code, a sentence for people, the deciding rule
// as file:line where a policy decided, with the title that its author gave it, and when it will be
// asked again, if that is known.
type Reason struct {
	Code  Code   `json:"code"`
	Text  string `json:"text"`
	Rule  string `json:"rule,omitempty"`
	Title string `json:"-"` // records name the rule; its title may be read there
	Until Time   `json:"-"`
}

// UnknownFact is a fact of the user's that is configured and not known now.
type UnknownFact struct {
	Name string
	Why  string
}

// Truth is a fact that may be unknown. The zero value is Unknown, and Unknown is never yes.
type Truth uint8

// The truths.
const (
	Unknown Truth = iota
	No
	Yes
)

// TruthOf is Yes for true and No for false.
func TruthOf(b bool) Truth {
	if b {
		return Yes
	}
	return No
}

// String gives "unknown", "no" or "yes".
func (t Truth) String() string { return [...]string{"unknown", "no", "yes"}[min(t, Yes)] }

// Action is a kind of deletion. Every one of them needs a permit of the gate.
type Action string

// The actions.
const (
	DeleteLocal   Action = "delete_local"
	DeleteRemote  Action = "delete_remote"
	DeleteOrphan  Action = "delete_orphan"
	DisableDelete Action = "disable_delete"
	// AcceptLoss deletes nothing; it stands in the audit record only.
	AcceptLoss Action = "accept_loss"
)
