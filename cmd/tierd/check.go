package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/daemon"
)

// reachTimeout bounds how long check waits for the store.
const reachTimeout = 30 * time.Second

// checkCmd checks configuration and policies.
type checkCmd struct {
	output
	Reach bool `help:"Also look whether the sources can be read and the store answers."`
}

// Help gives examples.
func (c *checkCmd) Help() string {
	return `Reads the configuration, the policies and their data as one generation, as run and
reload do, and prints everything that is wrong, each with its place. It changes nothing, but that
--reach opens the bucket as run does, which may make its directory or container.

Exit code: 0 if all is well, 1 if --reach could not reach something, 2 if something is wrong.

Examples:

	tierd check --config new.yaml && systemctl reload tierd
	tierd check --reach`
}

// checked is what check prints as JSON.
type checked struct {
	Config       string           `json:"config"`
	Sources      int              `json:"sources"`
	PolicyDigest string           `json:"policy_digest"`
	Warnings     api.List[string] `json:"warnings"`
	Reach        api.List[reach]  `json:"reach"` // empty without --reach
}

// reach is one thing that was looked at; Error is null where it was reached.
type reach struct {
	What  string  `json:"what"`
	Error *string `json:"error"`
}

// Run checks.
func (c *checkCmd) Run(a *app) error {
	cfg, policies, err := daemon.Check(a.cli.Config, a.host)
	if err != nil {
		return err
	}
	if err := web.Validate(cfg.HTTP.WebConfig); err != nil {
		return usagef("http.web_config: %s: %v", cfg.HTTP.WebConfig, err)
	}
	out := checked{Config: a.cli.Config, Sources: len(cfg.Sources), PolicyDigest: policies.Digest()}
	for _, w := range cfg.Warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}
	if c.Reach {
		out.Reach = a.reach(cfg)
	}
	err = c.print(a, out, func(p *page) { printChecked(p, out) })
	for _, r := range out.Reach {
		if err == nil && r.Error != nil {
			err = errCheck
		}
	}
	return err
}

func printChecked(p *page, out checked) {
	for _, w := range out.Warnings {
		p.line("warning: %s", w)
	}
	for _, r := range out.Reach {
		if r.Error == nil {
			p.line("%s: reached", r.What)
		} else {
			p.alarm("%s: %s", r.What, *r.Error)
		}
	}
	p.line("%s: ok", out.Config)
}

// reach looks at every source and at the store.
func (a *app) reach(cfg *config.Config) []reach {
	var out []reach
	add := func(what string, err error) {
		r := reach{What: what}
		if err != nil {
			text := err.Error()
			r.Error = &text
		}
		out = append(out, r)
	}
	for _, s := range cfg.Sources {
		add(fmt.Sprintf("source %s (%s)", s.Name, s.Path), readable(s.Path))
	}
	ctx, cancel := context.WithTimeout(a.ctx, reachTimeout)
	defer cancel()
	b, err := openBucket(ctx, cfg.Bucket, a.quiet())
	if err == nil {
		_, err = b.Exists(ctx, "tierd-check")
		if cerr := b.Close(); err == nil {
			err = cerr
		}
	}
	add("bucket ("+cfg.Bucket.Type+")", err)
	return out
}

// readable reports why the directory cannot be listed.
func readable(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	if _, err := f.Readdirnames(1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
