package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tierd/tierd/runtime/read"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// readCacheDir is the cache of what was read from the store, in data_dir.
const readCacheDir = "read-cache"

// The bounds of reading. The memory is for the whole process.
const (
	readMemoryBytes = 64 << 20
	readAheadChunks = 2
	readAheads      = 2 // that read ahead at one time
)

// local is the daemon's sources as a reader sees them: through the engine's last look.
type local struct{ d *Daemon }

var _ read.Local = local{}

// Logs implements read.Local.
func (l local) Logs() []tier.LogID {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	return l.d.engine.Logs()
}

// Log implements read.Local.
func (l local) Log(id tier.LogID) (tier.LocalLog, bool) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	x, ok := l.d.engine.Readable(id)
	if x.Away && l.d.sourceNamed(x.Source) == nil {
		// Nobody looks there any more. Where no other source has the log, the store has all there is.
		x.Away = slices.ContainsFunc(l.d.sources, func(s *source) bool {
			return l.d.engine.Away(s.Name)
		})
	}
	return x, ok
}

// From implements read.Local.
func (l local) From(id tier.LogID, o tier.Offset) (tier.LocalSegment, bool) {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	return l.d.engine.LocalFrom(id, o)
}

// Open implements read.Local.
func (l local) Open(ctx context.Context, id tier.LogID, name string) (read.File, error) {
	s, err := l.source(id)
	if err != nil {
		return nil, err
	}
	return s.dir.Open(ctx, id, name)
}

// LogFile implements read.Local.
func (l local) LogFile(ctx context.Context, id tier.LogID, base tier.Offset) (string, error) {
	s, err := l.source(id)
	if err != nil {
		return "", err
	}
	return s.dir.LogFile(ctx, id, base)
}

// CountsBytes implements read.Local.
func (l local) CountsBytes(id tier.LogID) bool {
	s, err := l.source(id)
	return err == nil && s.dir.CountsBytes()
}

// source is the source that has the log.
func (l local) source(id tier.LogID) (*source, error) {
	l.d.mu.Lock()
	x, _ := l.d.engine.Readable(id)
	l.d.mu.Unlock()
	s := l.d.sourceNamed(x.Source)
	if s == nil {
		return nil, fmt.Errorf("log %s: the source %q: %w", id, x.Source, tier.ErrVanished)
	}
	return s, nil
}

// openReader makes the reader over both tiers. A process that runs no daemon keeps nothing on disk,
// since the directory is the daemon's.
func (d *Daemon) openReader(onDisk bool) error {
	c := read.CacheConfig{Store: d.store, MemoryBytes: readMemoryBytes, Now: d.now}
	g := d.gen.Load()
	if onDisk && g.config.Read.CacheBytes > 0 {
		at := filepath.Join(g.config.DataDir, readCacheDir)
		if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("read cache: %w", err)
		}
		dir, err := vfs.OpenOS(at)
		if err != nil {
			return fmt.Errorf("read cache: %w", err)
		}
		c.Dir, c.DiskBytes = dir, g.config.Read.CacheBytes
		c.Age = tier.Time(g.config.Read.CacheAge)
	}
	cache, err := read.NewCache(c)
	if err != nil {
		if c.Dir != nil {
			err = errors.Join(err, c.Dir.Close())
		}
		return err
	}
	d.cache = cache
	registerReads(d.opts.Registry, cache.Stats)
	d.scrubber = newScrubber(d)
	d.reader = read.New(read.Config{Ledger: d.ledger, Local: local{d}, Cache: cache, Now: d.now,
		Grace: func() tier.Time { return d.gen.Load().exec.Grace }, Ahead: readAheadChunks,
		Suspect: d.suspect})
	return nil
}

// readAhead reads ahead of readers until ctx ends.
func (d *Daemon) readAhead(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for range readAheads {
		g.Go(func() error { return d.reader.Run(ctx) })
	}
	return g.Wait()
}

// Reader reads the daemon's logs over both tiers.
func (d *Daemon) Reader() *read.Reader { return d.reader }
