package sim

import (
	"context"
	"errors"
	"slices"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim/choose"
)

// A store may lose an object, or give back other bytes than it was given. That an object is gone
// shows at the next look. That it rotted shows where it is read back in full: by a scrub, whose
// answer outlives the process.

// badCopy is a copy that a scrub found not to be what was copied.
type badCopy struct {
	log      tier.LogID
	position tier.Position
	why      string
}

// Rot gives an object of the store other bytes of the same size.
func (w *World) Rot(key string) {
	data, ok := w.Objects.Object(key)
	if !ok || len(data) == 0 {
		return
	}
	data = slices.Clone(data)
	data[len(data)/2] ^= 0x20
	w.Objects.Put(key, data)
	if w.oracle != nil {
		w.oracle.lost(key)
		w.oracle.rotten = append(w.oracle.rotten, w.oracle.lostKeys[len(w.oracle.lostKeys)-1])
	}
}

// Scrub looks at every manifest, and reads back every copy that is part of its log, as the daemon's
// scrubber does, and tells the engine what it is like. Where the store does not answer the rest is
// for another time.
func (w *World) Scrub() error {
	return w.act(func() error {
		p := w.process
		for _, id := range p.ledger.Logs() {
			if err := w.mendManifest(id); err != nil || w.stopped {
				return err
			}
		}
		var counted []badCopy
		for _, id := range p.engine.Logs() {
			p.engine.EachCopy(id.Table, func(log tier.LogID, r tier.Remote, _ bool) {
				if log == id {
					counted = append(counted, badCopy{log: id, position: r.Position})
				}
			})
		}
		for _, b := range counted {
			if err := w.readBack(b); err != nil || w.stopped {
				return err
			}
		}
		return nil
	})
}

// readBack reads one copy back.
func (w *World) readBack(b badCopy) error {
	p := w.process
	c, err := p.ledger.Copy(b.log, b.position)
	if errors.Is(err, tier.ErrVanished) {
		return nil
	}
	if err != nil {
		return err
	}
	state, _ := p.ledger.Log(b.log)
	found, err := w.reading.Content(context.Background(), p.store, b.log, state.Layout, &c)
	if err != nil {
		return nil // the store does not answer, and nothing is known
	}
	w.bad = slices.DeleteFunc(w.bad, func(x badCopy) bool {
		return x.log == b.log && x.position == b.position
	})
	ev := engine.Scrubbed{Log: b.log, Position: b.position}
	if len(found) > 0 {
		b.why = found[0].Text
		w.bad = append(w.bad, b)
		ev.Reason = &tier.Reason{Code: tier.CodeStoreLost, Text: b.why}
	}
	if w.oracle != nil {
		w.oracle.scrubbed(b.log, &c)
	}
	w.step(ev)
	return nil
}

// sound is exec.Config.Sound.
func (w *World) sound(id tier.LogID, pos tier.Position) (tier.Truth, string) {
	for _, b := range w.bad {
		if b.log == id && b.position == pos {
			return tier.No, b.why
		}
	}
	return tier.Yes, ""
}

// remind tells a new process what the scrubs of those before it found.
func (w *World) remind() {
	for _, b := range w.bad {
		w.step(engine.Scrubbed{Log: b.log, Position: b.position,
			Reason: &tier.Reason{Code: tier.CodeStoreLost, Text: b.why}})
	}
}

// scrubbed notes that the copy was read back: what is wrong with its files is known from here on,
// and is no excuse any more.
func (o *Oracle) scrubbed(id tier.LogID, c *tier.Copy) {
	o.rotten = slices.DeleteFunc(o.rotten, func(k objstore.Key) bool {
		return k.Log == id && k.Attempt == c.Attempt
	})
}

// hidden reports whether the copy of the file rotted, and nobody has read it back since.
func (o *Oracle) hidden(f fileName) bool {
	return slices.ContainsFunc(o.rotten, func(k objstore.Key) bool {
		return k.Log == f.log && k.Base == f.base && k.Name == f.name
	})
}

// pick chooses an object of one of the kinds; false where there is none.
func (h *play) pick(kinds ...objstore.KeyKind) (string, bool) {
	var all []string
	keys, err := objstore.NewKeys(h.w.process.ledger.ID())
	must(err)
	for _, key := range h.w.Objects.Keys() {
		if k, err := keys.Parse(key); err == nil && slices.Contains(kinds, k.Kind) {
			all = append(all, key)
		}
	}
	if len(all) == 0 {
		return "", false
	}
	return all[choose.Number(h.c, "object", 0, len(all)-1)], true
}

func (h *play) decayActs() []act {
	loses := func(kinds ...objstore.KeyKind) func() {
		return func() {
			if key, ok := h.pick(kinds...); ok {
				h.w.Lose(key)
				h.line(LaneStore, "loses %s", key)
			}
		}
	}
	alters := func(kinds ...objstore.KeyKind) func() {
		return func() {
			if key, ok := h.pick(kinds...); ok {
				h.w.Rot(key)
				h.line(LaneStore, "gives other bytes to %s", key)
			}
		}
	}
	return []act{
		{kindStore, "loses an object", 1, loses(objstore.KeyFile)},
		{kindStore, "gives an object other bytes", 1, alters(objstore.KeyFile)},
		{kindStore, "loses a part of a manifest", 1,
			loses(objstore.KeyEntry, objstore.KeyCheckpoint)},
		{kindStore, "gives a part of a manifest other bytes", 1,
			alters(objstore.KeyEntry, objstore.KeyCheckpoint)},
		{kindProcess, "scrubs the store", 1, func() { h.alive(h.w.Scrub()) }},
	}
}
