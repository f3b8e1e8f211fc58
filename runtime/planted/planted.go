// Package planted names the faults that can be planted in the engine, the executor, the gate and
// the adapters, to show that tiersim finds them. In a build without the tag "planted" there are
// none: Is is constant, and what stands behind it is not compiled in.
//
//	go test -tags planted -run TestPlanted ./sim
package planted

// Fault is a mistake that the code could have.
type Fault string

// The faults. None is the code as it should be.
const (
	None                Fault = ""
	AdvanceBeforeVerify Fault = "the copied offset advances before the copy is verified"
	RecordAfterDrop     Fault = "the audit record is written after the drop"
	NoDirectorySync     Fault = "no directory is synced"
	ListingIsProof      Fault = "absence from a listing is proof"
	UnknownIsFailure    Fault = "an unknown outcome is taken for a failure"
	UnknownIsSuccess    Fault = "an unknown outcome is taken for a success"
	NothingIsZero       Fault = "nothing is taken for zero"
	EpochUnchecked      Fault = "the tier epoch is not checked"
	ErrorIsAllow        Fault = "an error of a policy is taken for leave"
	PrefixIgnored       Fault = "more than a prefix is deleted"
	RemoveBeforeMove    Fault = "remote data are removed before the start moves"
	AttemptUnchecked    Fault = "orphans are collected without a look at attempts"
	TTLWithoutProof     Fault = "a TTL lets go what is not proved"
	CopiedNotRestored   Fault = "the copied offset is not restored"
	ClocksIgnored       Fault = "clocks that do not agree are ignored"
	NotDrained          Fault = "deletions are not drained before tiering is turned off"
	HoleIsProof         Fault = "a hole is taken for proof"
	LineageUnchecked    Fault = "the lineage is not checked"
	WatermarkIgnored    Fault = "the high watermark is ignored"
	KeepIsLeave         Fault = "what a plugin keeps is taken for what may go"
	LostNotSaid         Fault = "what the store lost of a manifest is not said again"
	LeftSaidAgain       Fault = "what left its log is said again in the manifest"
)

// All are the faults, in order.
func All() []Fault {
	return []Fault{AdvanceBeforeVerify, RecordAfterDrop, NoDirectorySync, ListingIsProof,
		UnknownIsFailure, UnknownIsSuccess, NothingIsZero, EpochUnchecked, LineageUnchecked,
		ErrorIsAllow, PrefixIgnored, RemoveBeforeMove, AttemptUnchecked, WatermarkIgnored,
		TTLWithoutProof, CopiedNotRestored, ClocksIgnored, NotDrained, HoleIsProof, KeepIsLeave,
		LostNotSaid, LeftSaidAgain}
}
