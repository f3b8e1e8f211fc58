// Command tiersim runs tierd's own engine, executor, gate and policies through simulated histories
// of clocks, disks, stores, crashes and restarts, with the user's configuration, policies and
// intent. docs/tiersim.md describes it.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // so that time zones in policies mean something on a machine without a database
)

// gcPercent lets the heap grow to five times what lives. Histories make much garbage, and what
// lives are a few compiled policies and plugins: to look through them less often saves a third of
// the processor's time.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one ends the process at once
	code := run(ctx, os.Args[1:], system{stdout: os.Stdout, stderr: os.Stderr,
		lookupEnv: os.LookupEnv})
	stop()
	os.Exit(code)
}
