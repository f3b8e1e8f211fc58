package main

import (
	"log/slog"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/runtime/daemon"
)

// bars shows on a terminal how far run --once is. Elsewhere it does nothing.
type bars struct {
	container *mpb.Progress
	mu        sync.Mutex // guards bar
	bar       *mpb.Bar
}

// newBars returns bars that draw only if stderr is a terminal.
func newBars(a *app) *bars {
	if !screen.Terminal(a.stderr) {
		return &bars{}
	}
	return &bars{container: mpb.New(mpb.WithOutput(a.stderr), mpb.WithWidth(64))}
}

// logger is the logger of a run with these bars: its lines stand above them.
func (b *bars) logger(a *app) *slog.Logger {
	if b.container == nil {
		return a.log
	}
	return newLogger(b.container, a.cli)
}

// update is called from many goroutines.
func (b *bars) update(p daemon.Progress) {
	if b.container == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bar == nil {
		b.bar = b.container.AddBar(0,
			mpb.PrependDecorators(decor.Name("copied ")),
			mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f")))
	}
	b.bar.SetTotal(p.CopiedBytes+p.UncopiedBytes, false)
	b.bar.SetCurrent(p.CopiedBytes)
}

// finish ends the drawing and waits until it has ended.
func (b *bars) finish() {
	if b.container == nil {
		return
	}
	b.mu.Lock()
	if b.bar != nil {
		b.bar.SetTotal(-1, true)
	}
	b.mu.Unlock()
	b.container.Wait()
}
