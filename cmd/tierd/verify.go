package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/daemon"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verify"
)

// verifyCmd checks the store against the ledger.
type verifyCmd struct {
	output
	Subject        string `arg:"" optional:"" name:"log|table" help:"One log (table/name) or table; everything where absent."`
	ReadDataSubset string `default:"100%" help:"Which part of the copies is read back in full, such as 5%; chosen anew each time. 0% compares sizes alone."`
	Workers        int    `default:"4" help:"Copies that are looked at at one time."`
}

// Help gives examples.
func (c *verifyCmd) Help() string {
	return `Compares the manifests in the store, each entry and each checkpoint, with the ledger; asks
for the size of every object of every copy that counts; reads the copies back and compares SHA-256
and CRC32C, and in Kafka and Fluss logs the checksum of every record batch; accounts for every
offset below the copied offset; and lists objects that nothing names. It changes nothing and reads
no local file.

Recorded holes, and orphans that are too young to be collected, are listed and are no failure. What
the store does not give while it gives others is listed as unread, neither sound nor lost, and the
rest is looked at. Where it gives nothing, or has nothing of a ledger that has copied, verify ends
with an error.

Exit code: 0 if all is as it should be, 1 if anything is not, 3 if nothing is wrong and something is
unread, or nothing can be looked at.

Examples:

	tierd verify
	tierd verify orders --read-data-subset 5%
	tierd verify orders/0 -o json`
}

// verified is what verify prints as JSON.
type verified struct {
	LedgerID  string            `json:"ledger_id"`
	Logs      int64             `json:"logs"`
	Segments  int64             `json:"segments"`   // copies that count
	Objects   int64             `json:"objects"`    // of them
	Read      int64             `json:"read"`       // copies that were read back
	BytesRead int64             `json:"bytes_read"` // of them
	Unread    int64             `json:"unread"`     // findings of what the store did not give
	Findings  api.List[finding] `json:"findings"`
}

// finding is one thing that was found. What it is not of is null.
type finding struct {
	Kind   verify.Kind  `json:"kind"`
	Log    string       `json:"log"`
	Base   *tier.Offset `json:"base"`
	Next   *tier.Offset `json:"next"`
	Object *string      `json:"object"`
	Text   string       `json:"text"`
	Fails  bool         `json:"fails"` // it is not as it should be
}

// Run verifies.
func (c *verifyCmd) Run(a *app) error {
	fraction, err := parsePercent(c.ReadDataSubset)
	if err != nil {
		return usagef("--read-data-subset: %v", err)
	}
	if c.Workers < 1 || c.Workers > 256 {
		return usagef("--workers=%d: want 1 to 256", c.Workers)
	}
	cfg, err := config.Load(a.cli.Config, a.host)
	if err != nil {
		return err
	}
	if err := daemon.BucketThere(cfg); err != nil {
		return err
	}
	v := &verifier{app: a, cfg: cfg, fraction: fraction, seed: rand.Uint64(), workers: c.Workers,
		subject: c.Subject}
	if err := v.gather(); err != nil {
		return err
	}
	copied := slices.ContainsFunc(v.logs, func(l *verify.Log) bool { return l.Positions > 0 })
	s, done, err := daemon.OpenStored(a.ctx, a.options(a.quiet()), cfg, v.out.LedgerID, copied)
	if err != nil {
		return err
	}
	v.store, v.asked = s, patient(s)
	err = v.run()
	if err := errors.Join(err, done()); err != nil {
		return err
	}
	err = c.print(a, v.out, func(p *page) { printVerified(p, &v.out) })
	switch {
	case err != nil:
		return err
	case v.out.fail():
		return errCheck
	case v.out.Unread > 0:
		return fmt.Errorf("the store did not give all: of what is unread (%d) nothing is known",
			v.out.Unread)
	}
	return nil
}

// patient makes a store go past what it does not give while it gives the owner object.
func patient(s daemon.Stored) *verify.Patient {
	return &verify.Patient{Stored: s, Within: 10 * time.Minute, Now: time.Now,
		Answers: func(ctx context.Context) error {
			_, err := s.Owner(ctx)
			if errors.Is(err, tier.ErrVanished) || errors.Is(err, tier.ErrDamaged) ||
				errors.Is(err, tier.ErrNewer) {
				return nil
			}
			return err
		}}
}

// fail tells whether anything is not as it should be.
func (v *verified) fail() bool {
	return slices.ContainsFunc(v.Findings, func(f finding) bool { return f.Fails })
}

// parsePercent reads 5% as 0.05.
func parsePercent(s string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || !strings.HasSuffix(s, "%") || !(n >= 0 && n <= 100) {
		return 0, fmt.Errorf("want a percentage from 0%% to 100%%, got %q", s)
	}
	return n / 100, nil
}

// verifier is one run.
type verifier struct {
	app      *app
	cfg      *config.Config
	store    daemon.Stored
	asked    *verify.Patient // the same store
	subject  string
	fraction float64
	seed     uint64
	workers  int
	logs     []*verify.Log // all of the ledger
	of       []*verify.Log // those of the subject
	out      verified
	bar      *bar

	mu       sync.Mutex // guards findings
	findings []verify.Finding
}

// gather asks the ledger, all at once: whoever holds it is not kept waiting while the store is
// read.
func (v *verifier) gather() error {
	b, done, err := v.app.ask()
	if err != nil {
		return err
	}
	defer done()
	status, err := b.Status(v.app.ctx)
	if err != nil {
		return err
	}
	v.out.LedgerID = status.LedgerID
	for _, l := range status.Logs {
		id, err := tier.ParseLogID(l.Log)
		if err != nil || l.LogStart == nil {
			continue // the ledger does not have it yet
		}
		log, _, err := daemon.Ledgered(v.app.ctx, b, id)
		if err != nil {
			return err
		}
		v.logs = append(v.logs, log)
		if subjectHas(v.subject, id) {
			v.of = append(v.of, log)
		}
	}
	if v.subject != "" && len(v.of) == 0 {
		return api.Errorf(api.CodeNotFound, "%q is neither a log nor a table of the ledger", v.subject)
	}
	return nil
}

// subjectHas tells whether a log is the subject, or of the table that is; "" is everything.
func subjectHas(subject string, id tier.LogID) bool {
	return subject == "" || subject == id.Table || subject == id.String()
}

// look is a look at one copy.
type look struct {
	log  *verify.Log
	copy tier.Copy
	read bool // it is read back in full
}

// choose lists the copies, each with whether it is read back, and how many bytes these have.
func (v *verifier) choose() (list []look, total int64) {
	for _, l := range v.of {
		v.found(l.Gaps()...)
		for _, c := range l.Copies() {
			list = append(list, look{l, c, verify.Chosen(&c, v.fraction, v.seed)})
			v.out.Objects += int64(len(c.Content.Files))
		}
	}
	v.out.Logs, v.out.Segments = int64(len(v.of)), int64(len(list))
	// A part of a few copies is at least one of them.
	if n := uint64(len(list)); n > 0 && v.fraction > 0 &&
		!slices.ContainsFunc(list, func(x look) bool { return x.read }) {
		list[v.seed%n].read = true
	}
	for _, x := range list {
		if x.read {
			total += x.copy.Content.Bytes()
		}
	}
	return list, total
}

// run looks at everything and sorts what was found.
func (v *verifier) run() error {
	jobs, total := v.choose()
	v.bar = newTimedBar(v.app, "verified ", total)
	defer v.bar.finish()
	g, ctx := errgroup.WithContext(v.app.ctx)
	g.SetLimit(v.workers)
	var read, bytes atomic.Int64
	if v.subject == "" {
		g.Go(func() error { return v.owner(ctx) })
	}
	for _, l := range v.of {
		g.Go(func() error {
			list, err := verify.Manifest(ctx, v.asked, l)
			v.found(list...)
			return err
		})
	}
	for _, j := range jobs {
		g.Go(func() error {
			list, err := verify.Entry(ctx, v.asked, j.log, &j.copy)
			if v.found(list...); err != nil {
				return err
			}
			if !j.read {
				list, err = verify.Sizes(ctx, v.asked, j.log.ID, &j.copy)
				v.found(list...)
				return err
			}
			r := verify.Reading{Done: func(n int64) { bytes.Add(n); v.bar.add(n) }}
			list, err = r.Content(ctx, v.asked, j.log.ID, j.log.Layout, &j.copy)
			if v.found(list...); err == nil && !slices.ContainsFunc(list, notRead) {
				read.Add(1)
			}
			return err
		})
	}
	g.Go(func() error {
		now := tier.TimeOf(time.Now())
		list, err := verify.Orphans(ctx, v.asked, v.logs, now, tier.Time(v.cfg.Limits.OrphanAge),
			func(id tier.LogID) bool { return subjectHas(v.subject, id) })
		v.found(list...)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	v.out.Read, v.out.BytesRead = read.Load(), bytes.Load()
	return v.settle(v.app.ctx)
}

// notRead tells whether an object of which this was found was not read to its end.
func notRead(f verify.Finding) bool {
	return f.Kind == verify.KindLost || f.Kind == verify.KindSize || f.Kind == verify.KindUnread
}

// owner looks at the object that says whose ledger it is.
func (v *verifier) owner(ctx context.Context) error {
	f := verify.Finding{Kind: verify.KindOwner, Object: v.store.Keys().Owner()}
	is, err := v.store.Owner(ctx)
	switch {
	case err == nil && is.Ledger != v.out.LedgerID:
		f.Text = fmt.Sprintf("it names the ledger %s", is.Ledger)
	case errors.Is(err, tier.ErrVanished), errors.Is(err, tier.ErrDamaged),
		errors.Is(err, tier.ErrNewer):
		f.Text = err.Error()
	default:
		return err
	}
	v.found(f)
	return nil
}

func (v *verifier) found(list ...verify.Finding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.findings = append(v.findings, list...)
}

// settle asks the ledger again about what was found: a daemon that runs may have removed, copied or
// recorded something meanwhile.
func (v *verifier) settle(ctx context.Context) error {
	open := func(f verify.Finding) bool { return !f.Notice }
	if slices.ContainsFunc(v.findings, open) {
		before := v.of
		v.of, v.logs = nil, nil
		if err := v.gather(); err != nil {
			return err
		}
		v.findings = slices.DeleteFunc(v.findings, func(f verify.Finding) bool {
			return !f.Notice && !stillSo(&f, before, v.of)
		})
	}
	rank := func(f *verify.Finding) int {
		switch {
		case f.Fails():
			return 0
		case f.Notice:
			return 2
		}
		return 1
	}
	slices.SortStableFunc(v.findings, func(a, b verify.Finding) int {
		if c := cmp.Compare(rank(&a), rank(&b)); c != 0 {
			return c
		}
		if c := a.Log.Compare(b.Log); c != 0 {
			return c
		}
		if c := strings.Compare(string(a.Kind)+a.Object, string(b.Kind)+b.Object); c != 0 {
			return c
		}
		return cmp.Compare(b.Range.Next, a.Range.Next) // what says more goes first
	})
	for _, f := range v.once() {
		x := finding{Kind: f.Kind, Text: f.Text, Fails: f.Fails()}
		if f.Kind == verify.KindUnread {
			v.out.Unread++
		}
		if f.Log != (tier.LogID{}) {
			x.Log = f.Log.String()
		}
		if !f.Range.Empty() {
			x.Base, x.Next = &f.Range.Base, &f.Range.Next
		}
		if f.Object != "" {
			x.Object = &f.Object
		}
		v.out.Findings = append(v.out.Findings, x)
	}
	return nil
}

// once are the findings without what is said twice of an entry or checkpoint: it may be met by its
// name and in the listing, and what the manifest lacks where it is lost, or not given, is met once
// more.
func (v *verifier) once() []verify.Finding {
	told, of := map[string]bool{}, map[objstore.Key]bool{}
	entry := func(log tier.LogID, pos tier.Position) objstore.Key {
		return objstore.Key{Kind: objstore.KeyEntry, Log: log, Position: pos}
	}
	for _, f := range v.findings {
		k, err := v.store.Keys().Parse(f.Object)
		if err == nil && k.Kind == objstore.KeyEntry &&
			(f.Kind == verify.KindManifest || f.Kind == verify.KindUnread) {
			of[entry(k.Log, k.Position)] = true
		}
	}
	return slices.DeleteFunc(v.findings, func(f verify.Finding) bool {
		switch {
		case f.Kind == verify.KindUnread && f.Object != "":
		case f.Kind != verify.KindManifest:
			return false
		case f.Object == "":
			return of[entry(f.Log, f.Position)]
		}
		again := told[f.Object]
		told[f.Object] = true
		return again
	})
}

// stillSo tells whether what a finding is about is in the ledger as it was: of a copy, that it
// counts; of anything else, that nothing was recorded meanwhile that could explain it.
func stillSo(f *verify.Finding, before, after []*verify.Log) bool {
	find := func(list []*verify.Log) *verify.Log {
		i := slices.IndexFunc(list, func(l *verify.Log) bool { return l.ID == f.Log })
		if i < 0 {
			return nil
		}
		return list[i]
	}
	old, now := find(before), find(after)
	switch {
	case now == nil || old == nil:
		return old == now // neither before nor now: an object of a log that the ledger never had
	case f.Kind == verify.KindGap:
		return slices.ContainsFunc(now.Gaps(), func(g verify.Finding) bool {
			return g.Kind == verify.KindGap && g.Range.Overlaps(f.Range)
		})
	case f.Kind == verify.KindStale:
		return f.Position >= now.Positions
	case f.Kind == verify.KindManifest && f.Object == "":
		return slices.ContainsFunc(now.Facts, func(x tier.Fact) bool { return x.Position == f.Position })
	case f.Kind == verify.KindLost, f.Kind == verify.KindSize, f.Kind == verify.KindContent,
		f.Kind == verify.KindBatch, f.Kind == verify.KindUnread && !f.Range.Empty():
		return slices.ContainsFunc(now.Counted, func(c tier.Counted) bool {
			return c.Position == f.Position
		})
	}
	return true
}

func printVerified(p *page, v *verified) {
	for _, f := range v.Findings {
		text := ""
		if f.Log != "" {
			text = f.Log + ": "
		}
		if f.Base != nil {
			text += tier.Range{Base: *f.Base, Next: *f.Next}.String() + " "
		}
		text += string(f.Kind) + ": " + f.Text
		if f.Object != nil && !strings.Contains(f.Text, *f.Object) {
			text += " (" + *f.Object + ")"
		}
		switch {
		case f.Fails:
			p.alarm("! %s", text)
		case f.Kind == verify.KindUnread:
			p.alarm("? %s", text)
		default:
			p.line("  %s", text)
		}
	}
	verdict, unread := "ok", ""
	if v.Unread > 0 {
		verdict, unread = "unknown", fmt.Sprintf("; %d unread", v.Unread)
	}
	if v.fail() {
		verdict = "not ok"
	}
	p.line("%s: %s, %s, %s; %s read back (%s)%s", verdict, tier.Count(v.Logs, "log"),
		tier.Count(v.Segments, "copy"), tier.Count(v.Objects, "object"), tier.Count(v.Read, "copy"),
		humanBytes(v.BytesRead), unread)
}
