package main

import (
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/tierd/tierd/cmd/internal/screen"
)

// byteBar shows on a terminal how many of a number of bytes are done. Elsewhere it does nothing.
type byteBar struct {
	container *mpb.Progress
	bar       *mpb.Bar
}

// newByteBar returns a bar that draws only if stderr is a terminal.
func newByteBar(a *app, name string, total int64) *byteBar {
	if !screen.Terminal(a.stderr) || total <= 0 {
		return &byteBar{}
	}
	c := mpb.New(mpb.WithOutput(a.stderr), mpb.WithWidth(64))
	return &byteBar{c, c.AddBar(total, mpb.PrependDecorators(decor.Name(name)),
		mpb.AppendDecorators(decor.CountersKibiByte("% .1f / % .1f"), decor.Name(" "),
			decor.AverageETA(decor.ET_STYLE_GO)))}
}

// add says that n more bytes are done. It is safe for concurrent use.
func (b *byteBar) add(n int64) {
	if b.bar != nil {
		b.bar.IncrInt64(n)
	}
}

// finish ends the drawing and waits until it has ended.
func (b *byteBar) finish() {
	if b.bar != nil {
		b.bar.Abort(false)
		b.container.Wait()
	}
}
