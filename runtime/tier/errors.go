package tier

import "errors"

// The errors that callers branch on. Adapters wrap them with the place and the operation.
var (
	// ErrVanished: the file, object or record is not there (any more).
	ErrVanished = errors.New("not there")
	// ErrDamaged: the content contradicts itself, its checksum or its format.
	ErrDamaged = errors.New("damaged")
	// ErrChanged: a file changed while it was read, or is not the file that was meant.
	ErrChanged = errors.New("changed")
	// ErrRefused: the ledger refused a record that would break an invariant. Nothing was written.
	ErrRefused = errors.New("refused")
	// ErrNewer: a stored format has a version that this tierd does not know.
	ErrNewer = errors.New("written by a newer version")
	// ErrUnread: the store gives others and not this object, of which nothing is known.
	ErrUnread = errors.New("not given")
)
