// Command tiersim runs tierd's own engine, executor, gate and policies through simulated histories
// of clocks, disks, stores, crashes and restarts, with the user's configuration, policies and
// intent. docs/tiersim.md describes it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // so that time zones in policies mean something on a machine without a database
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], system{os.Stdout, os.Stderr, os.LookupEnv})
	stop()
	os.Exit(code)
}
