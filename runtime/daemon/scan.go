package daemon

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/tierd/tierd/runtime/broker"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// rescanPause bounds how often changes that are watched lead to a scan: a busy log changes with
// every append.
const rescanPause = time.Second

// watchedDirsMax bounds how many directories of one source are watched; the system's own limit is
// often 8192 for all of a user's programs.
const watchedDirsMax = 4096

// openSource makes the adapter of a configured source. It does not look at the directory. One that
// is read only deletes nothing, and takes no lock.
func openSource(c config.Source, table func(string) (tier.Table, bool), readOnly bool) (
	*source, error) {
	cfg := logdir.Config{
		Name: c.Name, Layout: c.Layout, LocalDelete: c.LocalDelete, ReadOnly: readOnly,
		Root:        func() (vfs.Dir, error) { return vfs.OpenOS(c.Path) },
		Next:        logdir.Next(c.Next),
		ClosedAfter: c.ClosedAfter,
	}
	s := &source{Source: c, rescan: make(chan struct{}, 1),
		watcher: logdir.NewWatcher(c.Path, watchedDirsMax)}
	cfg.Compacted = func(name string) tier.Truth {
		if t, _ := table(name); t.Compacted != tier.Unknown {
			return t.Compacted
		}
		return s.topics.compacted(name)
	}
	if c.Pattern != "" {
		re, err := regexp.Compile(c.Pattern)
		if err != nil {
			return nil, fmt.Errorf("source %s: pattern: %w", c.Name, err)
		}
		cfg.Pattern = re
	}
	switch unlink := c.LocalDelete == tier.LocalDeleteUnlink; {
	case unlink && c.Layout == tier.LayoutKafka && readOnly:
		cfg.Lock = logdir.NewFileLockLook(c.Path)
	case unlink && c.Layout == tier.LayoutKafka:
		cfg.Lock = logdir.NewFileLock(c.Path)
	case unlink && c.Layout == tier.LayoutFluss && readOnly:
		cfg.Lock = logdir.NewTabletLockLook(c.Path)
	case unlink && c.Layout == tier.LayoutFluss:
		cfg.Lock = logdir.NewTabletLock(c.Path)
	}
	var err error
	if c.Kafka.Bootstrap != "" {
		if s.cluster, err = broker.New(brokerConfig(c.Kafka)); err != nil {
			return nil, fmt.Errorf("source %s: %w", c.Name, err)
		}
		cfg.Broker = s.cluster
	}
	if s.dir, err = logdir.Open(cfg); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close gives back what the source holds.
func (s *source) close() (err error) {
	if s.cluster != nil {
		err = s.cluster.Close()
	}
	if s.dir != nil {
		err = errors.Join(err, s.dir.Close())
	}
	return err
}

// look scans the source. Where there are topics that its cluster was not asked about yet, it is,
// and the source scanned once more: what the cluster compacts must not be copied for as long as it
// takes until it is asked anyway. A cluster that does not answer soon holds nothing up, and is
// asked again.
func (s *source) look(ctx context.Context, now func() tier.Time,
	table func(string) (tier.Table, bool)) (logdir.Result, error) {
	res, err := s.dir.Scan(ctx, now())
	if err != nil || !s.topics.scanned(res.Logs) || s.cluster == nil {
		return res, err
	}
	soon, cancel := context.WithTimeout(ctx, newTopicsTimeout)
	defer cancel()
	s.topics.look(soon, s.cluster, table) // it keeps what is wrong, and tendTopics tells of it
	again, err := s.dir.Scan(ctx, now())
	if err != nil || again.Trouble != nil {
		return res, err // the next scan will tell
	}
	again.Scans = merged(res.Scans, again)
	return again, nil
}

// merged are the scans of two looks, of which each names the logs that were not as they were at the
// one before: of a log the later one, of logs that are still there.
func merged(first []tier.Scan, later logdir.Result) []tier.Scan {
	out := later.Scans
	for _, scan := range first {
		if slices.Contains(later.Unchanged, scan.Log) {
			out = append(out, scan)
		}
	}
	slices.SortFunc(out, func(a, b tier.Scan) int { return a.Log.Compare(b.Log) })
	return out
}

// scan looks at the source once and tells the engine. It reports whether anything was new.
func (d *Daemon) scan(ctx context.Context, s *source) (changed bool, err error) {
	res, err := s.look(ctx, d.now, d.gen.Load().config.Table)
	if err != nil {
		return false, err
	}
	d.scanned(s, &res)
	return len(res.Scans) > 0, nil
}

// scanned takes over what a scan found.
func (d *Daemon) scanned(s *source, res *logdir.Result) {
	if res.Empty && d.emptied(s.Name) {
		res.Trouble = nil
	}
	s.mu.Lock()
	before := s.trouble
	s.trouble, s.problems, s.logs = res.Trouble, res.Problems, len(res.Logs)
	if res.Trouble == nil {
		s.scannedAt = d.opts.Now()
	}
	s.mu.Unlock()
	d.reportScan(s, before, *res)
	for _, scan := range res.Scans {
		d.step(engine.Scanned{Scan: scan})
	}
	d.step(engine.SourceScanned{Source: s.Name, Logs: res.Logs, Trouble: res.Trouble})
	if len(res.Scans) > 0 {
		d.changes.tell()
	}
}

// emptied reports whether it is by tierd's own hand that the source has nothing.
func (d *Daemon) emptied(source string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.engine.Emptied(source)
}

// reportScan writes what changed to the log, once, and sets the metrics.
func (d *Daemon) reportScan(s *source, before *tier.Reason, res logdir.Result) {
	if res.Trouble != nil {
		d.metrics.sourceTrouble.WithLabelValues(s.Name).Set(1)
		if before == nil || *before != *res.Trouble {
			d.log.Error("source in trouble; nothing of it is decided", "source", s.Name,
				"code", res.Trouble.Code, "why", res.Trouble.Text)
		}
		return
	}
	d.metrics.sourceTrouble.WithLabelValues(s.Name).Set(0)
	d.metrics.lastSuccess.WithLabelValues("scan").SetToCurrentTime()
	if before != nil {
		d.log.Info("the source is back", "source", s.Name)
	}
	for _, scan := range res.Scans {
		for _, p := range scan.Problems {
			d.log.Warn("source", "log", scan.Log.String(), "path", p.Path, "code", p.Code, "why", p.Text)
		}
	}
}

// scans looks at the source at each interval, and when its watched files change.
func (d *Daemon) scans(ctx context.Context, s *source) error {
	for {
		timer := time.NewTimer(d.gen.Load().config.Interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-s.rescan:
			timer.Reset(rescanPause)
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-timer.C:
			}
		}
		if _, err := d.scan(ctx, s); err != nil && ctx.Err() == nil {
			d.log.Error("scan", "source", s.Name, "err", err)
		}
	}
}

// lookAgain asks for a rescan of all sources once a table has become DISABLING: no start moves
// before somebody has looked since.
func (d *Daemon) lookAgain(f engine.Effect, r engine.Result) {
	change, ok := f.(engine.ChangeTier)
	if _, done := r.(engine.Done); !ok || !done || change.State != tier.Disabling {
		return
	}
	for _, s := range d.sources {
		s.lookAgain()
	}
}

// lookAgain asks for a rescan, whether or not one is asked for already.
func (s *source) lookAgain() {
	select {
	case s.rescan <- struct{}{}:
	default:
	}
}

// watch asks for a rescan when files of the source change. Where the system has no watches left,
// the interval alone serves.
func (d *Daemon) watch(ctx context.Context, s *source) error {
	err := s.watcher.Run(ctx, func(string) { s.lookAgain() })
	if err != nil && !errors.Is(err, context.Canceled) {
		d.log.Warn("watching ended; the source is scanned at each interval", "source", s.Name,
			"err", err)
	}
	return nil
}

// scanAll looks at every source once, in the order of the configuration.
func (d *Daemon) scanAll(ctx context.Context) (changed bool, err error) {
	for _, s := range d.sources {
		c, err := d.scan(ctx, s)
		if err != nil {
			return changed, err
		}
		changed = changed || c
	}
	return changed, nil
}

// sourceNamed returns the source with the name; nil if there is none.
func (d *Daemon) sourceNamed(name string) *source {
	i := slices.IndexFunc(d.sources, func(s *source) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return d.sources[i]
}
