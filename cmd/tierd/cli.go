package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/tierd/tierd/cmd/internal/cmdline"
	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/runtime/config"
)

// cli is the command line. A flag wins over its variable TIERD_*, which wins over the file.
type cli struct {
	Config    string `short:"c" default:"./tierd.yaml" env:"TIERD_CONFIG" help:"Configuration file."`
	LogLevel  string `default:"info" enum:"debug,info,warn,error" env:"TIERD_LOG_LEVEL" help:"Log from this level on: ${enum}."`
	LogFormat string `default:"text" enum:"text,json" env:"TIERD_LOG_FORMAT" help:"Form of log lines: ${enum}."`

	Run        runCmd        `cmd:"" help:"Copy and delete, until told to stop or until nothing more can be done."`
	Check      checkCmd      `cmd:"" help:"Say everything that is wrong with configuration and policies."`
	Status     statusCmd     `cmd:"" help:"Show where every log stands, and why."`
	Ls         lsCmd         `cmd:"" help:"List the segments of a log in both tiers."`
	Plan       planCmd       `cmd:"" help:"Say what would be deleted now, what waits, and what is copied next."`
	Explain    explainCmd    `cmd:"" help:"Say where an offset lies, why it is kept, and until when."`
	Verify     verifyCmd     `cmd:"" help:"Check that the store has everything that the ledger says."`
	Restore    restoreCmd    `cmd:"" help:"Write archived logs back as directories."`
	Resume     resumeCmd     `cmd:"" help:"Let the deletions of a table that the brake stopped go on."`
	Reload     reloadCmd     `cmd:"" help:"Let the running daemon load its configuration anew."`
	Rebuild    rebuildCmd    `cmd:"" help:"Make a new ledger of what the store has."`
	Drop       dropCmd       `cmd:"" help:"Delete all that a table without an entry has in the store."`
	AcceptLoss acceptLossCmd `cmd:"" help:"Accept that a damaged segment is lost, so that copying goes on behind it."`
	Clock      clockCmd      `cmd:"" help:"Accept the clock after a step."`
	Plugin     pluginCmd     `cmd:"" help:"Begin, inspect, test and measure plugins."`
	Policy     policyCmd     `cmd:"" help:"Check, test and try out policies."`
	Audit      auditCmd      `cmd:"" help:"Work with the deletion log."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

// system is what the command has of the process.
type system struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)
	// hangups are the SIGHUPs since the process began, one at the most; nil where there are none.
	hangups chan os.Signal
}

// letHangupsEnd gives SIGHUP its usual meaning back, which is the end, also where one has come
// already.
func (s system) letHangupsEnd() error {
	signal.Stop(s.hangups)
	select {
	case <-s.hangups:
		return errors.New("ended by a hangup")
	default:
		return nil
	}
}

// complain prints one line on stderr. Where even that fails, nobody can be told.
func (s system) complain(format string, args ...any) {
	_, _ = fmt.Fprintln(s.stderr, screen.Text(fmt.Sprintf(format, args...)))
}

// app is what every command runs with.
type app struct {
	system
	ctx  context.Context
	cli  *cli
	log  *slog.Logger
	host config.Host
}

const description = `tierd copies the closed segments of logs to an object store, keeps a durable
record of the copied offset, and deletes local segments only on proof.

Examples:

    tierd check
    tierd run --config /etc/tierd/tierd.yaml
    tierd run --once --no-delete
    tierd status --output json
    tierd explain orders/0@1042`

// run is the whole command: it returns the exit code.
func run(ctx context.Context, args []string, sys system) int {
	c := &cli{}
	command, code, err := cmdline.Parse(c, "tierd", description, args, sys.stdout, sys.stderr)
	if err != nil {
		sys.complain("tierd: %v", err)
		return exitUsage
	}
	if command == nil {
		return code
	}
	c.Config = filepath.Clean(c.Config)
	a := &app{system: sys, ctx: ctx, cli: c, log: newLogger(sys.stderr, c), host: config.OS()}
	a.host.LookupEnv, a.host.CheckBucket = sys.lookupEnv, checkBucket
	if !c.Run.reloads(command.Command()) {
		if err := sys.letHangupsEnd(); err != nil {
			return a.exit(err)
		}
	}
	return a.exit(command.Run(a))
}

// newLogger makes the logger of --log-level and --log-format.
func newLogger(w io.Writer, c *cli) *slog.Logger {
	var level slog.Level
	// The parser allows only words that slog knows.
	_ = level.UnmarshalText([]byte(c.LogLevel))
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
