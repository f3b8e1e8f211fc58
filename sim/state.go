package sim

import (
	"fmt"
	"hash/fnv"
)

// state identifies what the world holds now: disk, store, ledger, clock and what waits. Two
// histories that come to the same state go on alike.
func (h *play) state() uint64 {
	hash := fnv.New64a()
	add := func(format string, args ...any) { _, _ = fmt.Fprintf(hash, format, args...) }
	ledger, err := h.w.ledgerNow()
	if err != nil {
		add("%v", err)
	} else {
		for i := range ledger.logs {
			l := &ledger.logs[i]
			add("%s %s %s %s", plainly(l.state), plainly(l.attempts), plainly(l.tombstones),
				summary(l.facts))
		}
		add("%s", plainly(ledger.tables))
	}
	for _, l := range h.o.logs {
		for _, f := range h.w.files(l.id) {
			add("%s %q", f.at, f.data)
		}
	}
	for _, in := range h.w.intents() {
		add("%+v", *in)
	}
	add("%v %d %v %d", h.w.Objects.Keys(), h.w.Now, h.w.Paused, h.disk)
	for _, id := range h.w.process.engine.Logs() {
		v, _ := h.w.process.engine.Log(id)
		add("%s", plainly(v))
	}
	add("%d %d", h.w.process.engine.RetryAt(), h.disturbed)
	for _, f := range h.w.Queued() {
		add("%T%+v", f, f)
	}
	return hash.Sum64()
}
