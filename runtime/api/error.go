package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/tierd/tierd/runtime/tier"
)

// ErrorCode is a stable word for what kind of error it is.
type ErrorCode string

// The error codes.
const (
	CodeInvalid     ErrorCode = "invalid"      // the request makes no sense
	CodeNotFound    ErrorCode = "not-found"    // no such log, table, offset or path
	CodeRefused     ErrorCode = "refused"      // it may not be done in this state
	CodeConfig      ErrorCode = "config"       // configuration, policies or data are wrong
	CodeUnavailable ErrorCode = "unavailable"  // not now: starting, stopping, or out of reach
	CodeOutOfRange  ErrorCode = "out-of-range" // the offset is none of the log's
	CodeGone        ErrorCode = "gone"         // it left the log while it was read
	CodeDamaged     ErrorCode = "damaged"      // the store no longer has what was archived
	CodeInternal    ErrorCode = "internal"     // everything else
)

// Error is an error with its code. It is what a Backend returns where a caller should be able to
// tell, and what a Client gives back.
type Error struct {
	Code ErrorCode `json:"code"`
	Text string    `json:"text"`
	// Start and End are what of the log can be read, where the code is CodeOutOfRange.
	Start *tier.Offset `json:"start,omitempty"`
	End   *tier.Offset `json:"end,omitempty"`
}

// Error gives the text.
func (e *Error) Error() string { return e.Text }

// Errorf makes an Error.
func Errorf(code ErrorCode, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// CodeOf is the code of err; CodeInternal for an error that has none.
func CodeOf(err error) ErrorCode {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// status is the HTTP status of the code.
func (c ErrorCode) status() int {
	switch c {
	case CodeInvalid:
		return http.StatusBadRequest
	case CodeNotFound:
		return http.StatusNotFound
	case CodeRefused:
		return http.StatusConflict
	case CodeConfig:
		return http.StatusUnprocessableEntity
	case CodeUnavailable:
		return http.StatusServiceUnavailable
	case CodeOutOfRange:
		return http.StatusRequestedRangeNotSatisfiable
	case CodeGone:
		return http.StatusGone
	case CodeDamaged:
		return http.StatusBadGateway
	default:
		return http.StatusInternalServerError
	}
}

// failure is the body of an error.
type failure struct {
	Error *Error `json:"error"`
}
