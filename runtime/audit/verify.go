package audit

import (
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Report is what Verify found in a log without damage.
type Report struct {
	Files   int    `json:"files"`
	Records uint64 `json:"records"`
	// First is the number of the first record. Where it is not 1, older files were moved away, and
	// FirstPrev is the hash with which they must end.
	First     uint64      `json:"first"`
	FirstPrev tier.SHA256 `json:"first_prev"`
	// Last and Head are the number and the hash of the last record. Kept somewhere else, they are
	// an anchor: a later log that was not cut short has the record Last with the hash Head.
	Last uint64      `json:"last"`
	Head tier.SHA256 `json:"head"`

	Intents uint64 `json:"intents"`
	Deleted uint64 `json:"deleted"` // outcomes
	Kept    uint64 `json:"kept"`
	Unknown uint64 `json:"unknown"`
	// Open are the intents without an outcome: under way, or to be resolved at the next start.
	Open []tier.Intent `json:"-"`
	// TornBytes are at the end of the last file: a record that is just being written, or that a
	// crash cut short.
	TornBytes int64 `json:"torn_bytes"`
}

// Verify reads a whole log and checks it: every record is well formed, carries the hash of the one
// before and the next number, also from file to file, and every outcome ends one open intent. It
// changes nothing and may run beside a writer. A log that is not there is tier.ErrVanished, damage
// is tier.ErrDamaged with file:line, a newer format tier.ErrNewer.
//
// A chain shows what was changed within. That records are missing at the end shows only by
// comparison with a Report.Head that was kept somewhere else.
func Verify(dir vfs.Dir) (Report, error) {
	numbers, err := listFiles(dir)
	if err != nil {
		return Report{}, err
	}
	if len(numbers) == 0 {
		return Report{}, fmt.Errorf("audit log: %s: %w", nameOf(1), tier.ErrVanished)
	}
	report := Report{Files: len(numbers)}
	c := &chain{}
	end, err := scan(dir, numbers, c, report.count)
	if err != nil {
		return Report{}, err
	}
	report.First, report.FirstPrev = c.first, c.firstPrev
	report.Last, report.Head = c.seq, c.head
	report.Open, report.TornBytes = openIntents(c.open), end.bytes
	return report, nil
}

func (r *Report) count(rec record) {
	r.Records++
	switch {
	case rec.Intent != nil:
		r.Intents++
	case rec.Outcome.Result == tier.OutcomeDeleted:
		r.Deleted++
	case rec.Outcome.Result == tier.OutcomeKept:
		r.Kept++
	default:
		r.Unknown++
	}
}
