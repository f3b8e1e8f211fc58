package api

import "github.com/tierd/tierd/runtime/tier"

// Rebuilt is what a ledger was made of, or would be: tierd rebuild.
type Rebuilt struct {
	LedgerID string `json:"ledger_id"`
	DryRun   bool   `json:"dry_run"` // nothing was written
	// Aside is where the ledger is kept that was there before; null where there was none.
	Aside *string `json:"aside"`
	// CollectFrom is when orphans are collected again.
	CollectFrom Time `json:"collect_from"`
	// Adopt is set where the store says that another machine or directory has this ledger: the next
	// start needs --adopt.
	Adopt    bool               `json:"adopt"`
	Totals   Amount             `json:"totals"`
	Tables   List[RebuiltTable] `json:"tables"`
	Logs     List[RebuiltLog]   `json:"logs"`
	Problems List[BadObject]    `json:"problems"`
	// Unnamed are keys of objects that no entry of a manifest names, the first hundred: they are
	// orphans, and are collected from CollectFrom on.
	Unnamed List[string] `json:"unnamed"`
}

// RebuiltTable is a table of a rebuilt ledger.
type RebuiltTable struct {
	Table     string         `json:"table"`
	TierState tier.TierState `json:"tier_state"`
	TierEpoch tier.TierEpoch `json:"tier_epoch"`
	// Governed is false where no entry of the configuration governs it: then it is frozen.
	Governed bool `json:"governed"`
}

// RebuiltLog is a log of a rebuilt ledger.
type RebuiltLog struct {
	Log          string      `json:"log"`
	Source       *string     `json:"source"` // null where no source has it now
	LogStart     tier.Offset `json:"log_start"`
	CopiedOffset tier.Offset `json:"copied_offset"`
	Segments     int64       `json:"segments"` // copies whose objects are there
	Bytes        int64       `json:"bytes"`
	LeftOut      int64       `json:"left_out"`   // copies of which an object is gone or wrong
	SaidAgain    int64       `json:"said_again"` // facts that got a new position in the manifest
	Holes        int64       `json:"holes"`
	Unnamed      int64       `json:"unnamed"` // objects that no entry of its manifest names
}

// BadObject is an object that could not be used, and why.
type BadObject struct {
	Object string `json:"object"`
	Text   string `json:"text"`
}
