package sim

import (
	"context"
	"slices"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/sim/choose"
)

// lands lets one of the calls that are still under way in the store take effect, of those that are
// meant.
func (h *play) lands(meant func(fault.Late) bool) {
	var which []int
	for i, l := range h.w.Bucket.Late() {
		if meant(l) {
			which = append(which, i)
		}
	}
	if len(which) > 0 {
		h.land(which[choose.Number(h.c, "late upload", 0, len(which)-1)])
	}
}

func (h *play) land(i int) {
	l := h.w.Bucket.Late()[i]
	h.situationsLate(l)
	must(h.w.Bucket.Land(context.Background(), i))
	h.o.changed = true
	switch {
	case l.Again:
		h.line(LaneStore, "does again what it did: %s %s", l.Kind, l.Key)
	case l.Kind == fault.OpDelete:
		h.line(LaneStore, "deletes late: %s", l.Key)
	default:
		h.line(LaneStore, "lands late: %s", l.Key)
	}
}

// landsAllAgain lets everything that takes effect twice have done so.
func (h *play) landsAllAgain() {
	again := func(l fault.Late) bool { return l.Again }
	for {
		i := slices.IndexFunc(h.w.Bucket.Late(), again)
		if i < 0 {
			return
		}
		h.land(i)
	}
}

// landsAgain lets some calls take effect once more; uploads of what went meanwhile, if there are
// any.
func (h *play) landsAgain() {
	for range choose.Number(h.c, "calls", 1, 4) {
		meant := func(l fault.Late) bool { return l.Again }
		if slices.ContainsFunc(h.w.Bucket.Late(), h.wentMeanwhile) {
			meant = h.wentMeanwhile
		}
		h.lands(meant)
	}
}

// wentMeanwhile reports whether it is an upload that took effect, of something that a log had, and
// is there no more.
func (h *play) wentMeanwhile(l fault.Late) bool {
	_, there := h.w.Objects.Object(l.Key)
	return l.Again && l.Kind == fault.OpUpload && !there && h.keyOf(l.Key).Kind != objstore.KeyProbe
}

func (h *play) keyOf(key string) objstore.Key {
	keys, err := objstore.NewKeys(h.w.process.ledger.ID())
	must(err)
	k, err := keys.Parse(key)
	must(err)
	return k
}

// storeWorks ends all faults of the store. What is late still is.
func (h *play) storeWorks() {
	h.store, h.storm, h.lag, h.twice = nil, false, false, false
}

// situationsLate looks at a call that takes effect after all, or once more.
func (h *play) situationsLate(l fault.Late) {
	if h.wentMeanwhile(l) {
		h.met(TwiceAfterRemoval)
	}
	k := h.keyOf(l.Key)
	late := l.Kind == fault.OpUpload && k.Epoch != 0
	if late && k.Epoch < h.w.process.ledger.Table(k.Log.Table).Epoch {
		h.met(LateOldEpoch)
	}
}
