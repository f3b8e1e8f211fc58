package vfs

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"strings"
	"syscall"
)

// ErrCrashed is returned by everything that belongs to a file system that has crashed.
var ErrCrashed = errors.New("crashed")

// ErrFull is what a full disk reports (ENOSPC), for fault hooks.
var ErrFull error = syscall.ENOSPC

// IsFull reports whether the disk, or somebody's share of it, had no room.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// errClosed is what a closed file returns.
var errClosed = fs.ErrClosed

// OpKind names an operation for the fault hook.
type OpKind string

// The operations that the fault hook sees. Closing is not one: it neither fails nor does anything.
const (
	OpOpen      OpKind = "open"
	OpCreate    OpKind = "create"
	OpAppend    OpKind = "append"
	OpStat      OpKind = "stat"
	OpList      OpKind = "list"
	OpMkdir     OpKind = "mkdir"
	OpSymlink   OpKind = "symlink"
	OpChmod     OpKind = "chmod"
	OpRename    OpKind = "rename"
	OpReplace   OpKind = "replace"
	OpLink      OpKind = "link"
	OpRemove    OpKind = "remove"
	OpRemoveDir OpKind = "remove directory"
	OpSyncDir   OpKind = "sync directory"
	OpSub       OpKind = "sub"
	OpRead      OpKind = "read"
	OpWrite     OpKind = "write"
	OpSync      OpKind = "sync"
	OpTruncate  OpKind = "truncate"
)

// changes reports whether operations of the kind change what is there, or what a crash leaves.
func (k OpKind) changes() bool {
	switch k {
	case OpOpen, OpStat, OpList, OpSub, OpRead:
		return false
	}
	return true
}

// Op is one operation that is about to be performed.
type Op struct {
	Kind  OpKind
	Path  string // from the root of the file system
	To    string // the target of a rename, replace or link
	Count int    // operations before this one, since the file system was made
}

// Effect says what becomes of an operation.
type Effect uint8

// The effects.
const (
	Proceed     Effect = iota // as if there were no hook
	Fail                      // nothing happens, and an error is reported
	FailAfter                 // it happens, and an error is reported all the same
	CrashBefore               // the machine stops before it
	CrashAfter                // the machine stops after it
)

// Fault decides about each operation, outside all locks. The error is the one that Fail and
// FailAfter report; EIO where it is nil.
type Fault func(Op) (Effect, error)

// SetCapacity bounds the bytes of all files together; 0 is no bound. As on a disk, what no longer
// fits is cut off where the disk ends, and the write that brought it reports ErrFull.
func (m *memFS) SetCapacity(bytesMax int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = bytesMax
}

// room is how many bytes still fit.
func (m *memFS) room() int64 {
	if m.capacity == 0 {
		return math.MaxInt64 / 2 // whoever adds to it does not overflow
	}
	return max(m.capacity-m.root.bytes(map[*node]bool{}), 0)
}

// bytes is the size of what lies below n. A file with two names is there once.
func (n *node) bytes(seen map[*node]bool) int64 {
	if seen[n] {
		return 0
	}
	seen[n] = true
	sum := int64(len(n.data))
	for _, child := range n.children {
		sum += child.bytes(seen)
	}
	return sum
}

// SetFault sets the hook of the whole file system; nil takes it away.
func (m *memFS) SetFault(fault Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault
}

// perform is the one door that every operation goes through.
func (m *memFS) perform(kind OpKind, name, to string, do func() error) error {
	m.mu.Lock()
	op, fault := Op{kind, name, to, m.calls}, m.fault
	m.calls++
	m.mu.Unlock()

	effect, cause := Proceed, error(nil)
	if fault != nil {
		effect, cause = fault(op)
	}
	if cause == nil {
		cause = syscall.EIO
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if effect == CrashBefore {
		m.crashed = true
	}
	if m.crashed {
		return pathError(op, ErrCrashed)
	}
	if effect == Fail {
		return pathError(op, cause)
	}
	if kind.changes() {
		m.changed(name)
		if to != "" {
			m.changed(to)
			from, _, below := strings.Cut(name, "/")
			m.moved = m.moved || !below || !strings.HasPrefix(to, from+"/")
		}
	}
	err := do()
	switch {
	case effect == CrashAfter:
		m.crashed = true
		return pathError(op, ErrCrashed)
	case effect == FailAfter && err == nil:
		return pathError(op, cause)
	}
	return pathError(op, err)
}

func pathError(op Op, err error) error {
	if err == nil || err == io.EOF { // which is never wrapped
		return err
	}
	name := op.Path
	if op.To != "" {
		name += " to " + op.To
	}
	return &fs.PathError{Op: string(op.Kind), Path: name, Err: err}
}
