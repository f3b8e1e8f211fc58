package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
)

// The exit codes.
const (
	exitOK      = 0
	exitCheck   = 1 // a check did not pass
	exitUsage   = 2 // usage, configuration or compile error
	exitRuntime = 3 // everything else
	exitChanges = 4 // with --detailed-exitcode: something would change
)

// errCheck ends a command whose own output says what did not pass.
var errCheck = errors.New("a check did not pass")

// errChanges ends a command whose own output says what would change.
var errChanges = errors.New("something would change")

// checkError is why a check did not pass.
type checkError struct{ error }

// Unwrap gives the reason.
func (e *checkError) Unwrap() error { return e.error }

// usageError is an argument that makes no sense.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// exit prints the error, unless it was said already, and returns the exit code.
func (a *app) exit(err error) int {
	code := exitCode(err)
	var problems config.Problems
	var policy rego.Errors
	switch {
	case code == exitOK, errors.Is(err, errCheck), errors.Is(err, errChanges):
	case errors.As(err, &problems), errors.As(err, &policy):
		// Each begins with its place, as editors know it.
		a.complain("%v", err)
	default:
		a.complain("tierd: %v", err)
	}
	return code
}

// exitCode is the exit code of an error.
func exitCode(err error) int {
	var (
		failed   *checkError
		usage    *usageError
		problems config.Problems
		policy   rego.Errors
		answer   *api.Error
	)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errCheck), errors.As(err, &failed):
		return exitCheck
	case errors.Is(err, errChanges):
		return exitChanges
	case errors.Is(err, context.Canceled):
		return exitRuntime
	case errors.As(err, &usage), errors.As(err, &problems), errors.As(err, &policy):
		return exitUsage
	case errors.As(err, &answer):
		switch answer.Code {
		case api.CodeInvalid, api.CodeNotFound, api.CodeConfig:
			return exitUsage
		}
	}
	return exitRuntime
}
