// Command tierd copies the closed segments of logs to an object store, and deletes local segments
// once they are proved to be copied. docs/cli.md describes its commands.
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
	// Before all else: which command it is, and so what a hangup asks for, is known only later.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], system{os.Stdin, os.Stdout, os.Stderr, os.LookupEnv, hangups})
	stop()
	os.Exit(code)
}
