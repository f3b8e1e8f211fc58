package logdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"github.com/tierd/tierd/runtime/tier"
)

// Watcher tells early that files came or went in a source, so that a new segment need not wait for
// the next scan. It only saves time: what it misses, the periodic scan finds.
type Watcher struct {
	path    string
	dirsMax int
	dirs    int // watched at most; those that went away are still counted

	mu       sync.Mutex
	degraded *tier.Reason
}

// NewWatcher returns a watcher for the source's directory at path. It watches at most dirsMax
// directories, the source's own included.
func NewWatcher(path string, dirsMax int) *Watcher {
	return &Watcher{path: filepath.Clean(path), dirsMax: dirsMax}
}

// Degraded says why some directories are not watched; nil if all are.
func (w *Watcher) Degraded() *tier.Reason {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.degraded
}

// Run watches until ctx is done, and returns nil then. It calls changed, in the caller's goroutine,
// with the directory in which a name came or went, slash-separated below the source's; "." stands
// for the source's directory itself, and for changes that were lost because too many came at once.
// An error means that nothing can be watched: then only the periodic scan is left.
func (w *Watcher) Run(ctx context.Context, changed func(dir string)) (err error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.path, err)
	}
	defer func() { err = errors.Join(err, notify.Close()) }()
	if err := notify.Add(w.path); err != nil {
		return fmt.Errorf("watch %s: %w", w.path, err)
	}
	w.dirs = 1
	w.addBelow(notify, w.path, 0)
	changed(".") // whatever happened before the first watch stood
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-notify.Events:
			if !open {
				return fmt.Errorf("watch %s: %w", w.path, fsnotify.ErrClosed)
			}
			w.event(notify, event, changed)
		case err, open := <-notify.Errors:
			if !open {
				return fmt.Errorf("watch %s: %w", w.path, fsnotify.ErrClosed)
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				w.degrade(err)
			}
			changed(".")
		}
	}
}

// event reports a name that came or went. Writes to files that stay are of no interest.
func (w *Watcher) event(notify *fsnotify.Watcher, event fsnotify.Event, changed func(dir string)) {
	if !event.Has(fsnotify.Create) && !event.Has(fsnotify.Remove) && !event.Has(fsnotify.Rename) {
		return
	}
	if filepath.Base(event.Name)[0] == '.' {
		return // tierd's own trash among others
	}
	if event.Has(fsnotify.Create) {
		if info, err := os.Lstat(event.Name); err == nil && info.IsDir() {
			w.add(notify, event.Name)
			w.addBelow(notify, event.Name, 0)
		}
	}
	below, err := filepath.Rel(w.path, filepath.Dir(event.Name))
	if err != nil || event.Name == w.path {
		below = "."
	}
	changed(filepath.ToSlash(below))
}

// addBelow watches the directories below dir, as far as they can be read.
func (w *Watcher) addBelow(notify *fsnotify.Watcher, dir string, depth int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			w.degrade(err)
		}
		return
	}
	for _, e := range entries {
		if !e.IsDir() || e.Name()[0] == '.' || depth >= dirDepthMax {
			continue
		}
		sub := filepath.Join(dir, e.Name())
		if !w.add(notify, sub) {
			return
		}
		w.addBelow(notify, sub, depth+1)
	}
}

// add watches one directory. It reports false if no more can be.
func (w *Watcher) add(notify *fsnotify.Watcher, dir string) bool {
	if w.dirs >= w.dirsMax {
		w.dirs = len(notify.WatchList())
	}
	if w.dirs >= w.dirsMax {
		w.degrade(fmt.Errorf("more than %d directories", w.dirsMax))
		return false
	}
	err := notify.Add(dir)
	w.dirs++
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return true
	case errors.Is(err, syscall.ENOSPC):
		w.degrade(fmt.Errorf("%w: raise fs.inotify.max_user_watches", err))
		return false
	default:
		w.degrade(err)
		return true
	}
}

// degrade notes the first reason for which not everything is watched.
func (w *Watcher) degrade(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.degraded == nil {
		w.degraded = &tier.Reason{Code: tier.CodeRetry, Text: fmt.Sprintf("not every directory of "+
			"%s is watched, so changes are seen at the next scan only: %v", w.path, err)}
	}
}
