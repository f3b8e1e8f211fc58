package main

import (
	"log/slog"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/tierd/tierd/cmd/internal/screen"
)

// bar shows on a terminal how far a command is. Elsewhere it does nothing. It is safe for
// concurrent use.
type bar struct {
	container     *mpb.Progress // nil where stderr is no terminal
	before, after []decor.Decorator

	mu    sync.Mutex // guards what follows
	bar   *mpb.Bar   // nil before there is anything to show
	total int64
}

// newBar returns a bar with what stands before and after it.
func newBar(a *app, before, after []decor.Decorator) *bar {
	if !screen.Terminal(a.stderr) {
		return &bar{}
	}
	return &bar{container: mpb.New(mpb.WithOutput(a.stderr), mpb.WithWidth(64)), before: before,
		after: after}
}

// newByteBar returns a bar of bytes, with the name of what is done with them.
func newByteBar(a *app, name string, after ...decor.Decorator) *bar {
	bytes := decor.CountersKibiByte("% .1f / % .1f")
	return newBar(a, []decor.Decorator{decor.Name(name)}, append([]decor.Decorator{bytes}, after...))
}

// newTimedBar returns a bar of so many bytes, with when it will be done.
func newTimedBar(a *app, name string, total int64) *bar {
	b := newByteBar(a, name, decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO))
	if total > 0 {
		b.set(0, total)
	}
	return b
}

// logger is the logger of a command with this bar: its lines stand above it.
func (b *bar) logger(a *app) *slog.Logger {
	if b.container == nil {
		return a.log
	}
	return newLogger(b.container, a.cli)
}

// set shows that so much of the total is done.
func (b *bar) set(done, total int64) {
	if b.container == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar == nil {
		b.bar = b.container.AddBar(0, mpb.PrependDecorators(b.before...),
			mpb.AppendDecorators(b.after...))
	}
	b.total = total
	b.bar.SetTotal(total, false)
	b.bar.SetCurrent(done)
}

// add shows that n more are done of what was set.
func (b *bar) add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar != nil {
		b.bar.IncrInt64(n)
	}
}

// finish ends the drawing, which stays as it is, and waits until it has ended.
func (b *bar) finish() {
	if b.container == nil {
		return
	}
	b.mu.Lock()
	switch {
	case b.bar == nil:
	case b.bar.Current() >= b.total:
		b.bar.SetTotal(-1, true)
	default:
		b.bar.Abort(false)
	}
	b.mu.Unlock()
	b.container.Wait()
}
