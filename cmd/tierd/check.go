package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/daemon"
	"github.com/tierd/tierd/runtime/tier"
)

// reachTimeout bounds how long check waits for the store.
const reachTimeout = 30 * time.Second

// checkCmd checks configuration, policies, sources and the store.
type checkCmd struct {
	output
	Offline bool `help:"Check the files alone: look at no source, and try nothing on the store."`
}

// Help gives examples.
func (c *checkCmd) Help() string {
	return `Reads the configuration, the policies, their data and the plugins as one generation, as
run and reload do, and prints everything that is wrong, each with its place. Then it looks through
each source as a scan does, and whether each fact is known, asks brokers what they do with their
topics, and tries on the store what tierd needs of it, on an object of its own that it removes
again: put, get, range, list and delete. The store's clock is compared with this machine's.

Where no daemon runs it says what a start would: of a ledger that cannot be read, of a store that is
not this ledger's, of a configuration that would let more go than the limits allow, and of damage in
segments that wait to be copied. It reads up to 1GiB of these.

Exit code: 0 if all is well, 1 if a source, a fact or the store does not do what it should, 2 if a
file is wrong.

Examples:

	tierd check
	tierd check --offline --config new.yaml && systemctl reload tierd`
}

// checked is what check prints as JSON.
type checked struct {
	Config       string           `json:"config"`
	Sources      int              `json:"sources"`
	PolicyDigest string           `json:"policy_digest"`
	Plugins      int              `json:"plugins"`
	Warnings     api.List[string] `json:"warnings"`
	Reach        api.List[reach]  `json:"reach"` // empty with --offline
}

// reach is one thing that was looked at; Error is null where it was reached.
type reach struct {
	What  string  `json:"what"`
	Error *string `json:"error"`
}

// Run checks.
func (c *checkCmd) Run(a *app) error {
	cfg, policies, err := daemon.Check(a.cli.Config, a.host)
	errs := []error{err}
	if cfg != nil {
		errs = append(errs, checkEndpoints(cfg))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	out := checked{Config: a.cli.Config, Sources: len(cfg.Sources), PolicyDigest: policies.Digest(),
		Plugins: len(cfg.Plugins)}
	for _, w := range cfg.Warnings {
		out.Warnings = append(out.Warnings, w.Error())
	}
	if !c.Offline {
		if err := a.reach(cfg, &out); err != nil {
			return err
		}
	}
	err = c.print(a, out, func(p *page) { printChecked(p, out) })
	for _, r := range out.Reach {
		if err == nil && r.Error != nil {
			err = errCheck
		}
	}
	return err
}

// checkEndpoints reads the files that the endpoints will need.
func checkEndpoints(cfg *config.Config) error {
	var wrong config.Problems
	if err := web.Validate(cfg.HTTP.WebConfig); err != nil {
		wrong = append(wrong, cfg.Problem(config.KeyWebConfig,
			fmt.Errorf("%s: %s: %w", config.KeyWebConfig, cfg.HTTP.WebConfig, err)))
	}
	users, tls := daemon.CheckKafka(cfg.Kafka)
	if users != nil {
		wrong = append(wrong, cfg.Problem(config.KeyUsersFile, users))
	}
	if tls != nil {
		wrong = append(wrong, cfg.Problem(config.KeyKafkaTLS, tls))
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

func printChecked(p *page, out checked) {
	for _, w := range out.Warnings {
		p.line("warning: %s", w)
	}
	wrong := 0
	for _, r := range out.Reach {
		if r.Error == nil {
			p.line("%s: works", r.What)
		} else {
			p.alarm("! %s: %s", r.What, strings.ReplaceAll(*r.Error, "\n", "\n  "))
			wrong++
		}
	}
	if wrong > 0 {
		p.line("%s: the file is right, and of what it names %d of %d do not work: see above",
			out.Config, wrong, len(out.Reach))
		return
	}
	p.line("%s: ok", out.Config)
}

// reach looks at the ledger, at every source and fact, and at the store.
func (a *app) reach(cfg *config.Config, out *checked) (err error) {
	k, err := daemon.NewChecker(a.ctx, a.options(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	if n, bytes := k.Unread(); n > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("more waits to be copied than was read now: not "+
			"%s (%s)", tier.Count(n, "segment"), humanBytes(bytes)))
	}
	add := func(what string, err error) {
		r := reach{What: what}
		if err != nil {
			text := err.Error()
			r.Error = &text
		}
		out.Reach = append(out.Reach, r)
	}
	now := func() tier.Time { return tier.TimeOf(time.Now()) }
	if path, read, err := k.Ledger(); read {
		add(fmt.Sprintf("ledger (%s)", path), err)
	}
	for _, s := range cfg.Sources {
		add(fmt.Sprintf("source %s (%s)", s.Name, s.Path), k.Source(s.Name))
	}
	for _, s := range cfg.Sources {
		if s.Kafka.Bootstrap != "" {
			add(fmt.Sprintf("broker of the source %s (%s)", s.Name, s.Kafka.Bootstrap),
				k.Topics(a.ctx, s.Name))
		}
	}
	unknown := daemon.FactsNow(a.ctx, cfg, now)
	for _, f := range cfg.Facts {
		add(fmt.Sprintf("fact %s (%s)", f.Name, cmp.Or(f.Path, "groups of "+f.Kafka)),
			factKnown(f, unknown))
	}
	ctx, cancel := context.WithTimeout(a.ctx, reachTimeout)
	defer cancel()
	store := cfg.Bucket.Type
	if cfg.Bucket.SingleClock() {
		store += ", single-clock"
	}
	add("bucket ("+store+")", a.probe(ctx, cfg, k))
	return nil
}

// factKnown reports why a fact is not known now.
func factKnown(f config.Fact, unknown []tier.UnknownFact) error {
	for _, u := range unknown {
		if u.Name == f.Name {
			return errors.New(u.Why)
		}
	}
	return nil
}

// probeOwner stands where the ledger's id does in the keys of tierd's objects.
const probeOwner = "tierd-check"

// probe tries on the store what tierd needs of it, and compares the clocks.
func (a *app) probe(ctx context.Context, cfg *config.Config, k *daemon.Checker) (err error) {
	b, err := openBucket(ctx, cfg.Bucket, a.quiet())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	store, err := objstore.New(b, probeOwner)
	if err != nil {
		return err
	}
	p, err := store.Probe(ctx, rand.Text(), func() tier.Time { return tier.TimeOf(time.Now()) })
	if err != nil {
		return err
	}
	if agree, why := daemon.JudgeProbe(p, cfg.Limits.ClockTolerance); agree != tier.Yes {
		return errors.New(why)
	}
	return k.Bucket(ctx, b)
}
