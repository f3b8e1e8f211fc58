package meter

import (
	"errors"
	"fmt"
)

// The errors that a caller may branch on. Others say what is too large.
var (
	// ErrNotModule: the bytes are not a WebAssembly module of version 1.
	ErrNotModule = errors.New("not a WebAssembly module")
	// ErrMalformed: the module contradicts the binary format.
	ErrMalformed = errors.New("malformed WebAssembly module")
	// ErrTooLarge: some part of the module exceeds its limit.
	ErrTooLarge = errors.New("too large")
)

// UnsupportedError says that a module uses a proposal that tierd does not run.
type UnsupportedError struct {
	Proposal string // its name as the WebAssembly project gives it
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("the module uses %s, which tierd does not run; compile it without",
		e.Proposal)
}
