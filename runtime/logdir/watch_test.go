package logdir_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tierd/tierd/runtime/logdir"
)

// watched is a running watcher; heard gives the directories that it reports.
type watched struct {
	t     *testing.T
	dir   string
	heard chan string
}

func watch(t *testing.T, w *logdir.Watcher, dir string) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	heard, done := make(chan string, 100), make(chan error, 1)
	go func() {
		done <- w.Run(ctx, func(dir string) {
			select {
			case heard <- dir:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	if got := <-heard; got != "." {
		t.Errorf("begins with %q, want a look at everything", got)
	}
	return &watched{t: t, dir: dir, heard: heard}
}

// wants waits until a change in dir is reported.
func (w *watched) wants(dir string) {
	w.t.Helper()
	for {
		select {
		case got := <-w.heard:
			if got == dir {
				return
			}
		case <-w.t.Context().Done():
			w.t.Fatalf("%s is not reported", dir)
		}
	}
}

func (w *watched) write(name string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte("x"), 0o666); err != nil {
		w.t.Fatal(err)
	}
}

func mkdir(t *testing.T, names ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(names...), 0o777); err != nil {
		t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mkdir(t, dir, "a", "b")
	watcher := logdir.NewWatcher(dir, 100)
	w := watch(t, watcher, dir)
	w.write("1.log")
	w.wants(".")
	w.write("a/b/1.log")
	w.wants("a/b")
	err := os.Rename(filepath.Join(dir, "a/b/1.log"), filepath.Join(dir, "a/2.log"))
	if err != nil {
		t.Fatal(err)
	}
	w.wants("a/b")
	w.wants("a")
	if err := os.Remove(filepath.Join(dir, "a/2.log")); err != nil {
		t.Fatal(err)
	}
	w.wants("a")
	mkdir(t, dir, "new")
	w.wants(".")
	w.write("new/1.log")
	w.wants("new")
	if got := watcher.Degraded(); got != nil {
		t.Errorf("degraded: %+v", got)
	}
}

func TestWatchIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		mkdir(t, dir, name)
	}
	watcher := logdir.NewWatcher(dir, 2)
	w := watch(t, watcher, dir)
	if watcher.Degraded() == nil {
		t.Error("more directories than may be watched, and nobody is told")
	}
	w.write("1.log")
	w.wants(".")
	w.write("a/1.log")
	w.wants("a")
}

func TestWatchOfNothing(t *testing.T) {
	t.Parallel()
	w := logdir.NewWatcher(filepath.Join(t.TempDir(), "none"), 10)
	if err := w.Run(context.Background(), func(string) { t.Error("called") }); err == nil {
		t.Error("no error")
	}
}

// TestWatchEnds ends a watcher; TestMain looks for what it left running.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	w := logdir.NewWatcher(t.TempDir(), 10)
	if err := w.Run(ctx, func(string) { cancel() }); err != nil {
		t.Error(err)
	}
}
