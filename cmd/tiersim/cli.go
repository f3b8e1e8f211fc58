package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tierd/tierd/cmd/internal/cmdline"
	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim/choose"
)

// The exit codes.
const (
	exitPassed        = 0
	exitViolation     = 1 // a promise was broken
	exitBadInput      = 2 // usage, configuration, policies or scenario
	exitVacuous       = 3 // a situation was not met, or a rule not tried: nothing was shown
	exitIndeterminate = 4 // two runs of one seed differed
	exitHang          = 5 // a plugin, or an expression of a policy, did not come back
	exitInterrupted   = 130
)

// cli is the command line.
type cli struct {
	Check    checkCmd    `cmd:"" help:"Try histories, and say which promise breaks in which."`
	Replay   replayCmd   `cmd:"" help:"Run a scenario again."`
	Explain  explainCmd  `cmd:"" help:"Tell the history of a scenario in words."`
	Shrink   shrinkCmd   `cmd:"" help:"Make a failing scenario smaller."`
	Exhaust  exhaustCmd  `cmd:"" help:"Try every history within bounds."`
	Coverage coverageCmd `cmd:"" help:"Show which situations, faults and rules histories meet."`
	Init     initCmd     `cmd:"" help:"Write a project to begin with."`
}

// system is what the command has of the process.
type system struct {
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)
	lookEvery      time.Duration // at evaluations of policies; 0 is a second
	// allowGarbage has the collector leave more to lie. It is nil where GOGC is the user's own.
	allowGarbage func(context.Context)
}

// app is what every command runs with.
type app struct {
	system
	ctx   context.Context
	watch *rego.Watch // of all evaluations
	hung  chan *hang  // the first that does not end

	mu   sync.Mutex
	dir  string // of scratch; "" where nobody needed one yet
	mute error  // why something could not be printed; nil where all was
	lost bool   // a file could not be written, which was said
}

const description = `tiersim tries your tierd configuration, policies and properties on
simulated histories: clocks that jump, disks and stores that fail, processes
that crash at any operation. It runs the very engine that tierd runs.

Examples:

    tiersim init ./retention
    tiersim check --config ./retention --seeds 1..500
    tiersim replay tiersim-17.json
    tiersim explain tiersim-17.json`

// run is the whole command: it returns the exit code.
func run(ctx context.Context, args []string, sys system) int {
	c := &cli{}
	complain := func(format string, args ...any) {
		_, _ = fmt.Fprintln(sys.stderr, screen.Text(fmt.Sprintf(format, args...)))
	}
	command, code, err := cmdline.Parse(c, "tiersim", description, args, sys.stdout, sys.stderr)
	if err != nil {
		complain("tiersim: %v", err)
		return exitBadInput
	}
	if command == nil {
		return code
	}
	a := &app{system: sys, ctx: ctx}
	defer a.clean()
	defer a.look()()
	err = command.Run(a)
	a.mu.Lock()
	mute := a.mute
	a.mu.Unlock()
	a.lose(mute)
	var problems config.Problems
	var policy rego.Errors
	var ended *verdict
	var hung *hang
	switch {
	case err == nil && a.lost:
		return exitBadInput
	case err == nil:
		return exitPassed
	case errors.As(err, &ended):
		return ended.code // it was said already
	case errors.As(err, &hung):
		complain("tiersim: %v", err)
		return exitHang
	case errors.As(err, &problems), errors.As(err, &policy):
		complain("%v", err) // each line begins with its place
	default:
		complain("tiersim: %v", err)
	}
	return exitBadInput
}

// verdict ends a command whose own output says how it ended.
type verdict struct{ code int }

func (v *verdict) Error() string { return fmt.Sprintf("exit code %d", v.code) }

func ended(code int) error {
	if code == exitPassed {
		return nil
	}
	return &verdict{code}
}

// mismatch says why a scenario cannot be replayed.
func mismatch(file string, s *choose.Scenario, layout tier.Layout, digest string,
	err error) error {
	var m *choose.Mismatch
	if !errors.As(err, &m) {
		return err
	}
	hint := ""
	switch {
	case s.Layout != "" && s.Layout != string(layout):
		hint = "; it was made with --layout " + s.Layout
	case s.Digest != "" && s.Digest != digest:
		hint = "; it was made with another configuration, or other policies or data"
	}
	return fmt.Errorf("%s: %w%s", file, err, hint)
}
