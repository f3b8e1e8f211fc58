package sim

import (
	"github.com/tierd/tierd/runtime/tier"
)

// Snapshot is where the logs stand between two steps, for reports.
type Snapshot struct {
	Step int // after it; 0 is before the first
	At   tier.Time
	Logs []LogSnapshot
}

// LogSnapshot is where one log stands: by the disk, the ledger and the store themselves.
type LogSnapshot struct {
	Log      string
	Local    []tier.Range // segments on disk; the last one is active, and ends where it begins
	Remote   []tier.Range // copies that are part of the log
	Copied   tier.Offset
	LogStart tier.Offset
	Epoch    tier.TierEpoch
	State    tier.TierState
}

// snapshot looks at all logs, where a trace is kept.
func (h *play) snapshot() {
	if !h.opts.Trace {
		return
	}
	s := Snapshot{Step: h.step(), At: h.w.Now}
	ledger, err := h.w.ledgerNow()
	if err != nil {
		return // the oracle says so
	}
	for _, l := range h.o.logs {
		row := LogSnapshot{Log: l.id.String()}
		records := liveRecords(h.w.files(l.id))
		for i, f := range records {
			r := tier.Range{Base: f.base, Next: f.base}
			if i+1 < len(records) {
				r.Next = records[i+1].base
			}
			row.Local = append(row.Local, r)
		}
		if known := ledger.log(l.id); known != nil {
			t := ledger.table(l.id.Table)
			row.Copied, row.LogStart = known.state.Copied, known.state.LogStart
			row.Epoch, row.State = known.state.Epoch, t.State
			for _, f := range known.facts {
				if f.Add != nil && known.counts(f.Add, t) {
					row.Remote = append(row.Remote, f.Add.Content.Range)
				}
			}
		}
		s.Logs = append(s.Logs, row)
	}
	h.out.Snapshots = append(h.out.Snapshots, s)
}
