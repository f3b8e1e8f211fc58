package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	thanos "github.com/thanos-io/objstore"
	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/objstore/providers"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/daemon"
	"github.com/tierd/tierd/runtime/tier"
)

// now is the wall time.
func (a *app) now() api.Time { return api.Time(tier.TimeOf(time.Now())) }

// options are what the daemon package needs from a command.
func (a *app) options(log *slog.Logger) daemon.Options {
	return daemon.Options{
		ConfigPath: a.cli.Config, Host: a.host, Bucket: openBucket, Log: log,
		Registry: prometheus.NewRegistry(), Version: thisBuild().Version, Now: time.Now,
		Disk: daemon.Disk,
	}
}

// openBucket makes the client of the object store.
func openBucket(_ context.Context, b config.Bucket, log *slog.Logger) (thanos.Bucket, error) {
	return providers.New(b.YAML, providers.Options{Logger: log, Process: rand.Text()})
}

// checkBucket checks the bucket's own part by the provider's rules.
func checkBucket(kind string, own *yaml.Node) []config.BucketProblem {
	var out []config.BucketProblem
	for _, p := range providers.Check(kind, own) {
		out = append(out, config.BucketProblem(p))
	}
	return out
}

// daemon connects to the running daemon. done gives the connection back.
func (a *app) daemon() (c *api.Client, done func(), err error) {
	dir, err := config.DataDir(a.cli.Config, a.host)
	if err != nil {
		return nil, nil, err
	}
	c, err = api.Dial(a.ctx, a.socket(dir))
	if errors.Is(err, api.ErrNoDaemon) {
		return nil, nil, fmt.Errorf("%w with data_dir %s; start it with: tierd run", err, dir)
	}
	if err != nil {
		return nil, nil, err
	}
	return c, c.Close, nil
}

func (a *app) socket(dataDir string) string {
	return api.SocketPath(dataDir, api.RuntimeDir(a.lookupEnv))
}

// A daemon that starts holds the ledger a little before it can be asked.
const (
	askTries = 50
	askPause = 100 * time.Millisecond
)

// ask returns what answers reading commands: the running daemon, or else a snapshot of the ledger
// and a fresh look at the sources. done gives it back.
func (a *app) ask() (b api.Backend, done func(), err error) { return a.backend(daemon.Snapshot) }

// change returns what performs changing commands: the running daemon, or else this process, which
// then holds data_dir for itself. done gives it back.
func (a *app) change() (b api.Backend, done func(), err error) {
	return a.backend(daemon.Exclusive)
}

type opener func(context.Context, daemon.Options) (api.Backend, func() error, error)

func (a *app) backend(open opener) (b api.Backend, done func(), err error) {
	for range askTries {
		c, done, err := a.daemon()
		if err == nil {
			return c, done, nil
		}
		if !errors.Is(err, api.ErrNoDaemon) {
			return nil, nil, err
		}
		b, done, err := a.own(open)
		if err == nil {
			return b, done, nil
		}
		if !errors.Is(err, offsets.ErrInUse) && !errors.Is(err, daemon.ErrInUse) {
			return nil, nil, err
		}
		timer := time.NewTimer(askPause)
		select {
		case <-a.ctx.Done():
			timer.Stop()
			return nil, nil, a.ctx.Err()
		case <-timer.C:
		}
	}
	return nil, nil, fmt.Errorf("%w, and it does not answer on its socket", daemon.ErrInUse)
}

// own opens data_dir in this process.
func (a *app) own(open opener) (b api.Backend, done func(), err error) {
	b, closeIt, err := open(a.ctx, a.options(a.quiet()))
	if err != nil {
		return nil, nil, err
	}
	return b, func() {
		if err := closeIt(); err != nil {
			a.log.Warn("close data_dir", "err", err)
		}
	}, nil
}

// quiet is the logger of commands whose output says everything: only errors are logged, unless
// more was asked for.
func (a *app) quiet() *slog.Logger {
	c := *a.cli
	if c.LogLevel == "info" || c.LogLevel == "warn" {
		c.LogLevel = "error"
	}
	return newLogger(a.stderr, &c)
}
