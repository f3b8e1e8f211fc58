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

func main() {
	sys := system{stdout: os.Stdout, stderr: os.Stderr, lookupEnv: os.LookupEnv}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		sys.allowGarbage = allowGarbage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one ends the process at once
	code := run(ctx, os.Args[1:], sys)
	stop()
	os.Exit(code)
}
