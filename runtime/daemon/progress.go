package daemon

import (
	"sync/atomic"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// counts are what this run has done so far.
type counts struct {
	copiedSegments, copiedBytes   atomic.Int64
	deletedSegments, deletedBytes atomic.Int64
	removedSegments, removedBytes atomic.Int64
	removedOrphans                atomic.Int64
}

func (c *counts) add(f engine.Effect, r engine.Result) {
	switch r := r.(type) {
	case engine.Copied:
		if _, ok := f.(engine.Copy); ok {
			c.copiedSegments.Add(1)
			c.copiedBytes.Add(r.Remote.Bytes)
		}
	case engine.Deleted:
		for _, s := range r.Gone {
			c.deletedSegments.Add(1)
			c.deletedBytes.Add(s.Bytes)
		}
	}
}

// remove adds what went from the store.
func (c *counts) remove(d *tier.Deletion) {
	if d.Action == tier.DeleteOrphan {
		c.removedOrphans.Add(1)
		return
	}
	c.removedSegments.Add(1)
	c.removedBytes.Add(d.Bytes)
}

// progressNow adds what is left to what was done.
func (d *Daemon) progressNow() Progress {
	p := Progress{
		CopiedSegments: d.done.copiedSegments.Load(), CopiedBytes: d.done.copiedBytes.Load(),
		DeletedSegments: d.done.deletedSegments.Load(), DeletedBytes: d.done.deletedBytes.Load(),
		RemovedSegments: d.done.removedSegments.Load(), RemovedBytes: d.done.removedBytes.Load(),
		RemovedOrphans: d.done.removedOrphans.Load(),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range d.engine.Tallies() {
		p.UncopiedSegments += t.Uncopied.Segments
		p.UncopiedBytes += t.Uncopied.Bytes
	}
	return p
}

func (d *Daemon) progress() {
	if d.opts.Progress != nil {
		d.opts.Progress(d.progressNow())
	}
}
