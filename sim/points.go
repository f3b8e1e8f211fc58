package sim

import (
	"errors"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/vfs"
)

// Place is where the process reaches the world.
type Place string

// The places. Reads of the ledger are no points: a ledger that cannot be read ends the process, as
// one that cannot commit does.
const (
	OnDisk   Place = "disk"
	InStore  Place = "store"
	InLedger Place = "ledger"
)

// Point is one operation of the process on the world, about to happen: the unit in which it can be
// stopped, fail, or be lied to. What the world does with its own hands is none.
type Point struct {
	Place Place
	Kind  string // of a vfs.Op or fault.Op; "commit" in the ledger
	Name  string // a path or key; "" in the ledger
	To    string // the target of a rename
	Count int    // points before it
}

// Changes reports whether the operation changes anything, or makes a change durable.
func (p Point) Changes() bool {
	switch p.Place {
	case OnDisk:
		switch vfs.OpKind(p.Kind) {
		case vfs.OpOpen, vfs.OpStat, vfs.OpList, vfs.OpSub, vfs.OpRead:
			return false
		}
		return true
	case InStore:
		return p.Kind == string(fault.OpUpload) || p.Kind == string(fault.OpDelete)
	default:
		return true
	}
}

// announces reports whether the operation is one on the audit log, by which a deletion is announced
// or concluded: none that was not announced before has begun by then.
func announces(p Point) bool { return p.Place == OnDisk && within(p.Name, auditDir) }

// String is the point in words, for messages.
func (p Point) String() string { return string(p.Place) + ": " + p.what() }

func (p Point) what() string {
	s := p.Kind
	if p.Name != "" {
		s += " " + p.Name
	}
	if p.To != "" {
		s += " to " + p.To
	}
	return s
}

// Fate is what becomes of a point.
type Fate uint8

// The fates.
const (
	Proceed    Fate = iota
	Fail            // nothing happens, and an error is reported
	FailAfter       // it happens, and an error is reported all the same
	StopBefore      // the process is stopped before it
	StopAfter       // the process is stopped after it
	Lose            // of a commit: it happens, and is undone when the machine stops
)

var errInjected = errors.New("injected fault")

// meet decides about a point. Once the process is stopped, nothing of it happens any more.
func (w *World) meet(p Point) Fate {
	switch {
	case !w.acting:
		return Proceed
	case w.stopped:
		return StopBefore
	}
	p.Count = w.points
	w.points++
	fate := Proceed
	if w.Watch != nil {
		fate = w.Watch(p)
	}
	// An upload goes on reading from the disk: it stops the process itself, when it has read all.
	w.stopped = fate == StopBefore || fate == StopAfter && p.Kind != string(fault.OpUpload)
	if w.oracle != nil && p.Changes() && fate != Fail && fate != StopBefore {
		w.oracle.see(p)
	}
	return fate
}

// wire puts the world between the process and its disk and ledger, which a crash replaces.
func (w *World) wire() {
	w.Disk.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		switch w.meet(Point{Place: OnDisk, Kind: string(op.Kind), Name: op.Path, To: op.To}) {
		case Fail:
			return vfs.Fail, w.cause
		case FailAfter:
			return vfs.FailAfter, w.cause
		case StopBefore:
			return vfs.CrashBefore, nil
		case StopAfter:
			return vfs.CrashAfter, nil
		default:
			return vfs.Proceed, nil
		}
	})
	w.Medium.Inject(func(uint64) offsets.Fault {
		switch w.meet(Point{Place: InLedger, Kind: "commit"}) {
		case Fail, StopBefore:
			return offsets.FailBefore
		case FailAfter, StopAfter:
			return offsets.FailAfter
		case Lose:
			return offsets.Lose
		default:
			return offsets.NoFault
		}
	})
}

// onStore is the hook of the process's own door to the store.
func (w *World) onStore(op fault.Op) fault.Effect {
	switch w.meet(Point{Place: InStore, Kind: string(op.Kind), Name: op.Key}) {
	case Fail:
		return fault.Effect{Err: errInjected}
	case FailAfter:
		return fault.Effect{Err: errInjected, Applied: true}
	case StopBefore:
		return fault.Effect{Err: ErrCrashed}
	case StopAfter:
		return fault.Effect{Err: ErrCrashed, Applied: true, Mangle: func(data []byte) []byte {
			w.stopped = true
			return data
		}}
	default:
		return fault.Effect{}
	}
}
