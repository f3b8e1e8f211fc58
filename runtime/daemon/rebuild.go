package daemon

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/audit"
	"github.com/tierd/tierd/runtime/rebuild"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// rebuiltFile is where a ledger is made before it gets its name. What a rebuild that was stopped
// has left is thrown away by the next one.
const rebuiltFile = ledgerFile + ".rebuilding"

// rebuildWorkers is how many objects a rebuild looks at at one time.
const rebuildWorkers = 16

// RebuildOptions say how a ledger is rebuilt.
type RebuildOptions struct {
	// Replace consents to a new ledger in the place of one that is sound.
	Replace bool
	// Ledger is the id of the ledger whose objects are meant; "" where the store is to tell.
	Ledger string
	Verify tier.VerifyMode // size or full
	Dry    bool            // look, and change nothing
	// WithoutSources goes on although a source cannot be read.
	WithoutSources bool
	// Progress is told how far it is; it may be nil.
	Progress func(rebuild.Progress)
}

// Rebuild makes a new ledger of what the store and the sources have, while no daemon runs. Durable
// sub-steps: facts that need another position in a manifest; the outcomes of announced deletions;
// the new ledger, under a name of its own; a second name for the old one; the rename that replaces
// it. A stop before the last leaves what was there.
func Rebuild(ctx context.Context, opts Options, o RebuildOptions) (_ *api.Rebuilt, err error) {
	d := newDaemon(opts)
	defer func() { err = errors.Join(err, d.close()) }()
	g, err := d.loadGeneration(1)
	if err != nil {
		return nil, err
	}
	d.enforce(g)
	c := g.config
	defer func() { err = roomWanted(err, c.DataDir) }()
	if err := vfs.MkdirAll(filepath.Join(c.DataDir, AuditDir), 0o700); err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	if d.lock, err = lockDir(c.DataDir); err != nil {
		return nil, err
	}
	old, err := d.oldLedger(o)
	if err != nil {
		return nil, err
	}
	if d.bucket, err = d.opts.Bucket(ctx, c.Bucket, d.log); err != nil {
		return nil, fmt.Errorf("bucket: %w", err)
	}
	id, adopt, err := d.ledgerOf(ctx, o.Ledger, old)
	if err != nil {
		return nil, err
	}
	if err := d.decorate(c, id); err != nil {
		return nil, err
	}
	if err := d.openSources(c, o.Dry); err != nil {
		return nil, err
	}
	report, err := d.build(ctx, id, o)
	if err != nil {
		return nil, err
	}
	out := d.rebuilt(report, id, o.Dry)
	out.Adopt = adopt
	path := filepath.Join(c.DataDir, rebuiltFile)
	if o.Dry {
		return out, os.Remove(path)
	}
	dir, err := vfs.OpenOS(c.DataDir)
	if err != nil {
		return nil, err
	}
	aside, err := replaceLedger(dir, opts.Now())
	if aside != "" {
		name := filepath.Join(c.DataDir, aside)
		out.Aside = &name
	}
	return out, errors.Join(err, dir.Close())
}

// oldLedger looks at the ledger that is there, and returns its id; "" where there is none, or none
// that could be used.
func (d *Daemon) oldLedger(o RebuildOptions) (id string, err error) {
	path := filepath.Join(d.gen.Load().config.DataDir, ledgerFile)
	m, err := offsets.OpenBolt(path, offsets.BoltOptions{ReadOnly: true})
	var l *offsets.Ledger
	if err == nil {
		l, err = offsets.Open(m)
	}
	switch {
	case errors.Is(err, tier.ErrVanished), errors.Is(err, tier.ErrDamaged):
		return "", nil
	case err != nil:
		return "", err
	}
	id = l.ID()
	if err := l.Close(); err != nil {
		return "", err
	}
	if !o.Replace && !o.Dry {
		return "", api.Errorf(api.CodeRefused, "the ledger %s is sound. Where it is older than the "+
			"manifests (ledger-stale), or wrong, go on with: tierd rebuild --replace; it is kept aside",
			path)
	}
	return id, nil
}

// ledgerOf tells whose objects the new ledger is made of: those of the one that was named, of the
// one that is there, or of the only one whose owner is this machine with this data_dir. adopt is
// true where the store names another owner.
func (d *Daemon) ledgerOf(ctx context.Context, named, old string) (id string, adopt bool,
	err error) {
	owners, problems, err := objstore.Owners(ctx, d.bucket)
	if err != nil {
		return "", false, err
	}
	me := d.owner("")
	var mine, all []string
	for _, o := range owners {
		all = append(all, fmt.Sprintf("%s (%s on %s)", o.Ledger, o.DataDir, o.Host))
		if o.Host == me.Host && o.DataDir == me.DataDir {
			mine = append(mine, o.Ledger)
		}
		if o.Ledger == named || named == "" && o.Ledger == old {
			return o.Ledger, o.Host != me.Host || o.DataDir != me.DataDir, nil
		}
	}
	for _, p := range problems {
		all = append(all, p.Err.Error())
	}
	if len(mine) == 1 && named == "" && old == "" {
		return mine[0], false, nil
	}
	what := fmt.Sprintf("of %s on %s", me.DataDir, me.Host)
	switch {
	case named != "":
		what = named
	case old != "":
		what = old
	}
	if len(all) == 0 {
		all = []string{"none at all"}
	}
	return "", false, api.Errorf(api.CodeRefused, "the store does not name one ledger %s; it has: "+
		"%s. Name the one that is meant with --ledger ID", what, strings.Join(all, ", "))
}

// build makes the ledger under its own name, and opens it once to see that it is sound.
func (d *Daemon) build(ctx context.Context, id string, o RebuildOptions) (*rebuild.Report, error) {
	var raw [16]byte
	if n, err := hex.Decode(raw[:], []byte(id)); err != nil || n != len(raw) {
		return nil, fmt.Errorf("ledger id %q: want 32 hexadecimal digits", id)
	}
	local, err := d.localLogs(ctx, o.WithoutSources)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(d.gen.Load().config.DataDir, rebuiltFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	m, err := offsets.OpenBolt(path, offsets.BoltOptions{
		NewID: func() [16]byte { return raw }})
	if err != nil {
		return nil, err
	}
	report, err := d.fill(ctx, m, local, o)
	if err = errors.Join(err, m.Close()); err != nil {
		return nil, err
	}
	check, err := offsets.OpenBolt(path, offsets.BoltOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	l, err := offsets.Open(check)
	if err != nil {
		return nil, err
	}
	return report, l.Close()
}

// eachAtOnce calls do for each index, a bounded number at one time.
func eachAtOnce(ctx context.Context, n int, do func(context.Context, int) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(rebuildWorkers)
	for i := range n {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error { return do(gctx, i) })
	}
	return cmp.Or(g.Wait(), ctx.Err())
}

func (d *Daemon) fill(ctx context.Context, m offsets.Medium, local map[tier.LogID]tier.Scan,
	o RebuildOptions) (*rebuild.Report, error) {
	now := d.now()
	b, err := offsets.NewBuilder(m, now, now)
	if err != nil {
		return nil, err
	}
	report, err := rebuild.Run(ctx, rebuild.Config{Store: d.store, Now: now, Mode: o.Verify,
		Each: eachAtOnce, Table: d.gen.Load().config.Table, Dry: o.Dry, Progress: o.Progress,
		Local: func(id tier.LogID) (tier.Scan, bool) { s, ok := local[id]; return s, ok }}, b)
	if err != nil {
		return nil, err
	}
	if report.Clock > d.now() { // no clock that goes back goes unseen by it
		if err := b.Clock(report.Clock); err != nil {
			return nil, err
		}
	}
	if o.Dry {
		return report, nil
	}
	return report, d.conclude(ctx, local)
}

// localLogs looks at every source once. What a source in trouble has is not known: where a log of
// it begins neither, so that segments below its oldest copy would stay local for ever.
func (d *Daemon) localLogs(ctx context.Context, without bool) (map[tier.LogID]tier.Scan, error) {
	out := map[tier.LogID]tier.Scan{}
	for _, s := range d.sources {
		res, err := s.dir.Scan(ctx, d.now())
		if err != nil {
			return nil, err
		}
		if res.Trouble != nil && !without {
			return nil, api.Errorf(api.CodeRefused, "source %q: %s: %s; mount it first, or, where it is "+
				"gone for good, go on with --without-sources", s.Name, res.Trouble.Code, res.Trouble.Text)
		}
		for _, scan := range res.Scans {
			if _, twice := out[scan.Log]; !twice { // the daemon freezes both
				out[scan.Log] = scan
			}
		}
	}
	return out, nil
}

// conclude writes how the deletions ended that the lost ledger left open.
func (d *Daemon) conclude(ctx context.Context, local map[tier.LogID]tier.Scan) error {
	dir, err := vfs.OpenOS(filepath.Join(d.gen.Load().config.DataDir, AuditDir))
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	a, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return errors.Join(fmt.Errorf("audit: %w", err), dir.Close())
	}
	err = rebuild.Conclude(ctx, a, func(id tier.LogID) rebuild.Source {
		if scan, ok := local[id]; ok {
			return d.sourceNamed(scan.Source).dir
		}
		return nil
	}, d.now())
	return errors.Join(err, a.Close())
}

// replaceLedger gives the new ledger, which is durable, its name in data_dir, and returns the name
// that the old one keeps; "" where there was none. The old one is never without a name: the one
// that it keeps is durable before it loses the other.
func replaceLedger(dir vfs.Dir, now time.Time) (aside string, err error) {
	if _, err := dir.Stat(ledgerFile); err == nil {
		aside = ledgerFile + "." + now.UTC().Format("20060102T150405.000000000Z")
		if err = dir.Link(ledgerFile, aside); err == nil {
			err = dir.Sync(".")
		}
		if err != nil {
			return "", fmt.Errorf("keep the old ledger aside: %w", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := dir.Replace(rebuiltFile, ledgerFile); err != nil {
		return "", fmt.Errorf("put the new ledger in place: %w", err)
	}
	return aside, dir.Sync(".")
}

func (d *Daemon) rebuilt(r *rebuild.Report, id string, dry bool) *api.Rebuilt {
	out := &api.Rebuilt{LedgerID: id, DryRun: dry, CollectFrom: api.Time(d.now().Add(
		d.gen.Load().config.Limits.OrphanAge))}
	for _, t := range r.Tables {
		_, governed := d.gen.Load().config.Table(t.Table)
		out.Tables = append(out.Tables, api.RebuiltTable{Table: t.Table, TierState: t.State,
			TierEpoch: t.Epoch, Governed: governed})
	}
	for i := range r.Logs {
		l := &r.Logs[i]
		x := api.RebuiltLog{Log: l.State.Log.String(), LogStart: l.State.LogStart,
			CopiedOffset: l.State.Copied, Segments: l.Copies, Bytes: l.Bytes, LeftOut: l.LeftOut,
			SaidAgain: l.Moved, Holes: int64(len(l.State.Holes)), Unnamed: l.Unnamed}
		if l.State.Source != "" {
			x.Source = &l.State.Source
		}
		out.Logs = append(out.Logs, x)
		out.Totals.Segments += l.Copies
		out.Totals.Bytes += l.Bytes
	}
	for _, p := range r.Problems {
		out.Problems = append(out.Problems, api.BadObject{Object: p.Key, Text: p.Err.Error()})
	}
	out.Unnamed = r.Unnamed
	return out
}
