package offsetstest

import (
	"errors"

	"github.com/tierd/tierd/offsets"
)

var errInjected = errors.New("injected")

// failing fails one commit of a medium, before or after it took effect.
type failing struct {
	offsets.Medium
	commits int // until it fails; below 0 it has failed
	after   bool
}

func (f *failing) Update(fn func(offsets.Tx) error) error {
	f.commits--
	switch {
	case f.commits != -1:
		return f.Medium.Update(fn)
	case f.after:
		return errors.Join(f.Medium.Update(fn), errInjected)
	default:
		return f.Medium.Update(func(tx offsets.Tx) error { return errors.Join(fn(tx), errInjected) })
	}
}

// gated lets each commit begin only when it is told so, and counts them.
type gated struct {
	offsets.Medium
	begin   chan struct{}
	commits int
}

func (g *gated) Update(fn func(offsets.Tx) error) error {
	<-g.begin
	g.commits++
	return g.Medium.Update(fn)
}

// counting counts the commits that took place.
type counting struct {
	offsets.Medium
	commits int
}

func (c *counting) Update(fn func(offsets.Tx) error) error {
	err := c.Medium.Update(fn)
	if err == nil {
		c.commits++
	}
	return err
}
