package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/daemon"
	"github.com/tierd/tierd/runtime/restore"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// restoreCmd writes archived logs back as directories.
type restoreCmd struct {
	output
	Subject string `arg:"" name:"log|table" help:"One log (table/name), or all logs of a table."`
	To      string `required:"" type:"path" placeholder:"DIR" help:"Directory to write: a new one, an empty one, or an unfinished restore of the same."`
	From    int64  `default:"0" help:"First offset that is needed: older segments are left out. Of one log only."`
	Until   string `placeholder:"TIME" help:"Leave out segments that are newer, an instant as in RFC 3339 or a date: the last one is the first that reaches this time."`
	DryRun  bool   `help:"Say what would be written, and write nothing."`
	Workers int    `default:"4" help:"Files that are written at one time."`
}

// Help gives examples.
func (c *restoreCmd) Help() string {
	return `Writes the segment files of the archive back, byte for byte and with their times, and the
checkpoints that the source's own program looks for. Every file is compared with its SHA-256 and the
checksums of its record batches before it gets its name. A restore that was stopped or killed goes
on where it stopped when it is called again. Nothing that is there is ever replaced.

What the store has lost or altered, or does not give, is listed with its offsets, and all else is
written, also behind it. The directory is not complete then, and the exit code is 3.

What was never copied is not restored: the segment that was being written, and whatever is not of a
log. docs/reading.md tells how to start a broker on a restored directory.

Examples:

	tierd restore orders --to /srv/restored --dry-run
	tierd restore orders/0 --to /srv/restored --from 1042 --until 2026-03-01T12:00:00Z`
}

// restored is what restore prints as JSON.
type restored struct {
	LedgerID string                `json:"ledger_id"`
	To       string                `json:"to"`
	DryRun   bool                  `json:"dry_run"`
	Resumed  bool                  `json:"resumed"` // it went on with what an earlier one had left
	Logs     api.List[restoredLog] `json:"logs"`
	Files    int64                 `json:"files"`   // copied from the store, or to be
	Bytes    int64                 `json:"bytes"`   // of them
	Written  int64                 `json:"written"` // of the files, by this run
	Kept     int64                 `json:"kept"`    // of the files: they were there, and are right
	Missing  api.List[missingFile] `json:"missing"` // of the files: the store does not have them

	texts int // files that are made, such as a broker's checkpoints, and are none of the above
}

// missingFile is a file of a copy that cannot be restored.
type missingFile struct {
	Kind   string      `json:"kind"` // "lost", "damaged" or "unread"
	Log    string      `json:"log"`
	Base   tier.Offset `json:"base"`
	Next   tier.Offset `json:"next"`
	File   string      `json:"file"` // below the target
	Object string      `json:"object"`
	Text   string      `json:"text"`
}

type restoredLog struct {
	Log      string                  `json:"log"`
	Base     tier.Offset             `json:"base"`
	Next     tier.Offset             `json:"next"`
	Segments int64                   `json:"segments"`
	Files    int64                   `json:"files"`
	Bytes    int64                   `json:"bytes"`
	Holes    api.List[restoredRange] `json:"holes"` // offsets within that no tier has
}

type restoredRange struct {
	Base tier.Offset `json:"base"`
	Next tier.Offset `json:"next"`
}

// Run restores.
func (c *restoreCmd) Run(a *app) error {
	o := restore.Options{From: tier.Offset(c.From)}
	if c.From < 0 {
		return usagef("--from=%d: want an offset, not negative", c.From)
	}
	if c.Workers < 1 || c.Workers > 256 {
		return usagef("--workers=%d: want 1 to 256", c.Workers)
	}
	if c.Until != "" {
		at, is, err := parseInstant(c.Until)
		switch {
		case !is:
			return usagef("--until %q: want an instant such as 2026-03-01T12:00:00Z, or a date", c.Until)
		case err != nil:
			return usagef("--until %q: %v", c.Until, err)
		}
		if at <= 0 { // 0 is no limit
			return usagef("--until %q: want an instant after 1970 began", c.Until)
		}
		o.Until = at
	}
	cfg, err := config.Load(a.cli.Config, a.host)
	if err != nil {
		return err
	}
	if err := daemon.BucketThere(cfg); err != nil {
		return err
	}
	if err := cfg.Apart(&a.host, c.To); err != nil {
		return usagef("--to %s: %v; want a directory apart", c.To, err)
	}
	sources, ledger, err := c.gather(a)
	if err != nil {
		return err
	}
	if o.From > 0 && len(sources) > 1 {
		return usagef("--from is an offset of one log, and %s has %d", c.Subject, len(sources))
	}
	plan, err := restore.Make(sources, o)
	if err != nil {
		return err
	}
	out := told(plan)
	out.LedgerID, out.To, out.DryRun = ledger, c.To, c.DryRun
	if len(plan.Files) == 0 {
		return api.Errorf(api.CodeNotFound, "nothing of %s is in the store for what was asked", c.Subject)
	}
	if !c.DryRun {
		m := restore.Marker{LedgerID: ledger, Subject: c.Subject, From: o.From, Until: o.Until}
		if err = c.write(a, cfg, plan, m, &out); err != nil && len(out.Missing) == 0 {
			return err
		}
	}
	return errors.Join(c.print(a, out, func(p *page) { printRestored(p, &out) }), err)
}

// gather asks the ledger for the logs, all at once.
func (c *restoreCmd) gather(a *app) (sources []restore.Source, ledger string, err error) {
	b, done, err := a.ask()
	if err != nil {
		return nil, "", err
	}
	defer done()
	status, err := b.Status(a.ctx)
	if err != nil {
		return nil, "", err
	}
	for _, l := range status.Logs {
		id, err := tier.ParseLogID(l.Log)
		if err != nil || l.LogStart == nil || !subjectHas(c.Subject, id) {
			continue
		}
		log, copies, err := daemon.Ledgered(a.ctx, b, id)
		if err != nil {
			return nil, "", err
		}
		sources = append(sources, restore.Source{Log: log, Incarnation: copies.Incarnation})
	}
	if len(sources) == 0 {
		return nil, "", api.Errorf(api.CodeNotFound, "%q is neither a log nor a table of the ledger",
			c.Subject)
	}
	return sources, status.LedgerID, nil
}

// write does what the plan says.
func (c *restoreCmd) write(a *app, cfg *config.Config, plan *restore.Plan, m restore.Marker,
	out *restored) (err error) {
	s, closeStore, err := daemon.OpenStored(a.ctx, a.options(a.quiet()), cfg, m.LedgerID, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	if err := vfs.MkdirAll(c.To, 0o777); err != nil {
		return err
	}
	dir, err := vfs.OpenOS(c.To)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	alone, err := lockTarget(c.To)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone.Close()) }()
	bar := newTimedBar(a, "restored ", plan.Bytes())
	defer bar.finish()
	t := &restore.Target{Dir: dir, Store: patient(s), Done: bar.add, SetTime: func(name string,
		at tier.Time) error {
		return os.Chtimes(filepath.Join(c.To, filepath.FromSlash(name)), time.Time{}, at.Std())
	}}
	if out.Resumed, err = t.Begin(m, plan); err != nil {
		return fmt.Errorf("%s: %w", c.To, err)
	}
	missing, err := c.fill(a.ctx, t, plan, out)
	if err == nil {
		err = out.lack(s, missing)
	}
	if err != nil {
		return fmt.Errorf("%s is not complete: %w", c.To, err)
	}
	return nil
}

// lockTarget keeps every other restore out of the directory until it is closed, or the process
// ends: two of them would give names to what the other has half written. Nothing is left in the
// directory. A file system that knows no such locks, as NFS of a directory, keeps none out.
func lockTarget(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		_ = f.Close()
		return nil, fmt.Errorf("%s: another tierd restores into it: wait until that is done, or give a "+
			"directory of its own", dir)
	}
	return f, nil
}

// missed is a file that the store does not have, and why.
type missed struct {
	*restore.File
	why error
}

// fill writes all that can be had, and returns what cannot, in the order of the plan.
func (c *restoreCmd) fill(ctx context.Context, t *restore.Target, plan *restore.Plan,
	out *restored) (missing []missed, err error) {
	var kept atomic.Int64
	var mu sync.Mutex // guards whys
	whys := map[*restore.File]error{}
	err = each(ctx, c.Workers, plan.Files, func(ctx context.Context, f *restore.File) error {
		was, err := t.File(ctx, f)
		if _, is := restore.Missing(err); is {
			mu.Lock()
			defer mu.Unlock()
			whys[f] = err
			return nil
		}
		if was {
			kept.Add(1)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var without []*restore.File
	for i := range plan.Files {
		if f := &plan.Files[i]; whys[f] != nil {
			missing, without = append(missing, missed{f, whys[f]}), append(without, f)
		}
	}
	texts := plan.Without(without)
	out.texts = len(texts)
	for _, x := range texts {
		if err := t.Text(x); err != nil {
			return nil, err
		}
	}
	out.Kept = kept.Load()
	out.Written = out.Files - out.Kept - int64(len(missing))
	if len(missing) > 0 {
		return missing, t.Sync(plan)
	}
	return nil, t.End(plan)
}

// lack puts down what is missing; it is an error where anything is.
func (r *restored) lack(s daemon.Stored, missing []missed) error {
	if len(missing) == 0 {
		return nil
	}
	for _, m := range missing {
		key, err := s.FileKey(m.Key)
		if err != nil {
			return err
		}
		kind, _ := restore.Missing(m.why)
		at := m.Range
		if m.Cut != nil {
			at = *m.Cut
		}
		r.Missing = append(r.Missing, missingFile{Kind: kind, Log: m.Key.Log.String(), Base: at.Base,
			Next: at.Next, File: m.Path, Object: key, Text: m.why.Error()})
	}
	return fmt.Errorf("%d of %s missing, the first: %w", len(missing), tier.Count(r.Files, "file"),
		missing[0].why)
}

// each calls do for each of the list, so many at one time, until one fails.
func each[T any](ctx context.Context, workers int, list []T,
	do func(context.Context, *T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i := range list {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, &list[i])
		})
	}
	return g.Wait()
}

func told(p *restore.Plan) restored {
	out := restored{Bytes: p.Bytes(), texts: len(p.Texts)}
	for _, l := range p.Logs {
		x := restoredLog{Log: l.ID.String(), Base: l.Range.Base, Next: l.Range.Next,
			Segments: l.Segments, Files: l.Files, Bytes: l.Bytes}
		for _, h := range l.Holes {
			x.Holes = append(x.Holes, restoredRange{h.Base, h.Next})
		}
		out.Files += l.Files
		out.Logs = append(out.Logs, x)
	}
	return out
}

func printRestored(p *page, out *restored) {
	rows := make([]string, len(out.Logs))
	for i, l := range out.Logs {
		rows[i] = row(l.Log, fmt.Sprint(l.Base), fmt.Sprint(l.Next), fmt.Sprint(l.Segments),
			fmt.Sprint(l.Files), humanBytes(l.Bytes))
	}
	p.table("LOG\tBASE\tNEXT\tSEGMENTS\tFILES\tSIZE", rows)
	for _, l := range out.Logs {
		for _, h := range l.Holes {
			p.line("%s: %s are in neither tier", l.Log, tier.Range(h))
		}
	}
	for _, m := range out.Missing {
		at := tier.Range{Base: m.Base, Next: m.Next}
		text := fmt.Sprintf("%s: %s %s: %s", m.Log, at, m.Kind, m.Text)
		if !strings.Contains(text, m.Object) {
			text += " (" + m.Object + ")"
		}
		p.alarm("! %s", text)
	}
	made := ""
	if out.texts > 0 {
		made = fmt.Sprintf("; and %d, such as checkpoints, for the program that opens them", out.texts)
	}
	switch {
	case len(out.Missing) > 0:
		p.line("%s: %s written, %d already there, %d missing%s", out.To,
			tier.Count(out.Written, "file"), out.Kept, len(out.Missing), made)
	case out.DryRun:
		p.line("%s (%s) to be written to %s%s", tier.Count(out.Files, "file"),
			humanBytes(out.Bytes), out.To, made)
	case out.Kept > 0:
		p.line("%s: %s written, %d already there%s", out.To, tier.Count(out.Written, "file"), out.Kept,
			made)
	default:
		p.line("%s: %s written%s", out.To, tier.Count(out.Written, "file"), made)
	}
}
