package offsetstest

import (
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
)

// The logs that tests work with. Two share a table.
var (
	orders0 = tier.LogID{Table: "orders", Name: "0"}
	orders1 = tier.LogID{Table: "orders", Name: "1"}
	deep    = tier.LogID{Table: "a/deep/table", Name: "0"}
	past0   = tier.LogID{Table: "past", Name: "0"}
	past1   = tier.LogID{Table: "past", Name: "1"}
	gone0   = tier.LogID{Table: "gone", Name: "0"}
)

// t0 is when tests begin.
const t0 tier.Time = 1_700_000_000_000_000_000

func opened(id tier.LogID, start tier.Offset) tier.LogOpened {
	return tier.LogOpened{Log: id, Source: "broker-1", Layout: tier.LayoutKafka,
		Incarnation: "AAAA", Epoch: 1, Start: start, At: t0}
}

func span(base, next tier.Offset) tier.Range { return tier.Range{Base: base, Next: next} }

// attemptID gives the n-th attempt id.
func attemptID(n int) tier.AttemptID {
	return tier.AttemptID{0: byte(n >> 8), 7: byte(n), 15: 0xAA}
}

// attempt makes the n-th attempt, a copy of r.
func attempt(n int, r tier.Range) tier.Attempt {
	return tier.Attempt{ID: attemptID(n), Epoch: 1, Range: r, Names: names(r),
		StartedAt: t0 + tier.Time(n)}
}

func names(r tier.Range) []string {
	return []string{fmt.Sprintf("%020d.log", r.Base), fmt.Sprintf("%020d.index", r.Base),
		fmt.Sprintf("%020d.timeindex", r.Base)}
}

func started(id tier.LogID, a tier.Attempt) tier.CopyStarted {
	return tier.CopyStarted{Log: id, Attempt: a}
}

// finished is the end of an attempt whose position is known.
func finished(id tier.LogID, a tier.Attempt) tier.CopyFinished {
	c := tier.Copy{Attempt: a.ID, Position: a.Position, Epoch: a.Epoch, Verified: tier.VerifySample,
		ModTime: t0 - 50, FinishedAt: a.StartedAt + 7,
		Content: tier.Content{Range: a.Range, MaxTime: t0 - 100, Batches: 3,
			LastNext: a.Range.Next, Lineage: []tier.EpochStart{{Epoch: 4, Start: a.Range.Base}}}}
	for i, name := range a.Names {
		f := tier.SourceFile{FileDigest: tier.FileDigest{Name: name, Size: 1000 * int64(i+1),
			CRC32C: uint32(i)}}
		f.SHA256[i%32] = byte(a.Range.Base)
		f.Stat = tier.Stat{Inode: uint64(100 + i), Size: f.Size, ModTime: t0 - 50}
		c.Content.Files = append(c.Content.Files, f)
	}
	return tier.CopyFinished{Log: id, Copy: c}
}

// copies starts and finishes the n-th attempt, and returns its position.
func (b *box) copies(id tier.LogID, n int, r tier.Range) tier.Position {
	b.Helper()
	a := attempt(n, r)
	a.Position = b.append(started(id, a))
	b.append(finished(id, a))
	return a.Position
}

// expired moves a log's start over remote segments whose time is over.
func expired(id tier.LogID, start tier.Offset, ranges ...tier.Range) tier.StartMoved {
	return tier.StartMoved{Log: id, Start: start, Expired: ranges, Cause: tier.MoveExpired,
		At: t0 + 30}
}

// left moves a log's start over all remote data of a table whose tiering is disabled.
func left(id tier.LogID, start tier.Offset, ranges ...tier.Range) tier.StartMoved {
	r := expired(id, start, ranges...)
	r.Cause, r.At = tier.MoveDisabled, t0+60
	return r
}

func removed(id tier.LogID, pos tier.Position) tier.CopyRemoved {
	return tier.CopyRemoved{Log: id, Position: pos, At: t0 + 70}
}

func abandoned(id tier.LogID, pos tier.Position) tier.CopyAbandoned {
	return tier.CopyAbandoned{Log: id, Position: pos, Cause: "timeout", At: t0}
}

func diverged(id tier.LogID, o tier.Offset) tier.Diverged {
	return tier.Diverged{Log: id, Offset: o, At: t0 + 40}
}

// The steps of a table's tiering.

func disabling(table string, e tier.TierEpoch, p tier.DisablePolicy) tier.TierChanged {
	return tier.TierChanged{Table: table, State: tier.Disabling, Epoch: e, Policy: p, At: t0 + 50}
}

func disabled(table string, e tier.TierEpoch, p tier.DisablePolicy) tier.TierChanged {
	return tier.TierChanged{Table: table, State: tier.Disabled, Epoch: e, Policy: p, At: t0 + 80}
}

func enabled(table string, e tier.TierEpoch) tier.TierChanged {
	return tier.TierChanged{Table: table, State: tier.Enabled, Epoch: e, At: t0 + 90}
}

func epochOpened(id tier.LogID, e tier.TierEpoch, fresh bool, start tier.Offset) tier.EpochOpened {
	return tier.EpochOpened{Log: id, Epoch: e, Fresh: fresh, Start: start, At: t0 + 95}
}

// appends appends records that must be taken.
func (b *box) appends(records ...tier.Record) {
	b.Helper()
	for _, r := range records {
		b.append(r)
	}
}

func hole(id tier.LogID, r tier.Range) tier.HoleRecorded {
	return tier.HoleRecorded{Log: id,
		Hole: tier.Hole{Range: r, Cause: tier.HoleSourceGone, At: t0 + 9}}
}

// reidentified says that the files of a finished copy have new inodes.
func reidentified(id tier.LogID, c tier.Copy) tier.CopyReidentified {
	r := tier.CopyReidentified{Log: id, Position: c.Position}
	for _, f := range c.Content.Files {
		f.Stat.Inode += 1000
		f.Stat.ModTime++
		r.Files = append(r.Files, f)
	}
	return r
}

func localDeleted(id tier.LogID, r tier.Range, w tier.BrakeWindow) tier.LocalDeleted {
	return tier.LocalDeleted{Log: id, Range: r, Bytes: 6000, At: t0 + 20, Window: w}
}

var pauseReason = tier.Reason{Code: tier.CodeBrake, Text: "too many", Rule: "limits",
	Title: "the brake", Until: t0}
