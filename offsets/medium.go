package offsets

import (
	"errors"
	"fmt"
)

// ErrInUse is returned for a ledger that another process holds.
var ErrInUse = errors.New("in use by another process")

// Medium is where a ledger lives: keys in byte order with their values, changed by atomic, durable
// commits. All methods are safe for concurrent use. A medium is born with the ledger's id in it
// (see birth); one without is damaged, so that damage is never taken for a new ledger.
type Medium interface {
	// View calls fn with a view of one commit. It returns fn's error as it is.
	View(fn func(Reader) error) error
	// Update calls fn once, and then commits what it changed. When it returns nil, that is durable.
	// Where fn returns an error, nothing is changed and Update returns that error. After any other
	// error it is unknown whether the changes are there, and the medium must not be used any more.
	Update(fn func(Tx) error) error
	// Close gives the medium back. It is idempotent.
	Close() error
	// String names the medium for people: a path, where there is one.
	String() string
}

// Reader reads one commit. Keys and values are valid until the function that got the Reader
// returns, and must not be changed.
type Reader interface {
	// Get returns the value of key; nil if there is none. No stored value is empty.
	Get(key []byte) ([]byte, error)
	// Scan calls fn for each key in [from, to), ascending; where to is nil, to the last key. It
	// stops at the first error, and returns it.
	Scan(from, to []byte, fn func(key, value []byte) error) error
}

// Tx also changes. It sees its own changes. Scan must not be in progress while it changes.
type Tx interface {
	Reader
	// Put sets the value of key. The caller must never change either again.
	Put(key, value []byte) error
	// Delete removes key, which must not be changed again; one that is not there is no error.
	Delete(key []byte) error
}

// birth writes the first entry of a new medium, the ledger's identity.
func birth(tx interface{ Put(key, value []byte) error }, newID func() [16]byte) error {
	if newID == nil {
		return fmt.Errorf("a new ledger needs an id")
	}
	root := rootState{format: formatVersion, id: newID(), nextLog: 1}
	key := rootKey()
	return tx.Put(key, enclose(key, root.encode()))
}
