package sim

import (
	"fmt"
	"hash/fnv"
	"path"

	"github.com/tierd/tierd/runtime/vfs"
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
		dir := path.Join(h.w.source(), h.w.logDir(l.id))
		for _, d := range []string{dir, path.Join(dir, trashDir)} { // what a crash would leave
			h.w.Disk.LookSynced(d, func(i vfs.Info, data []byte) { add("%s/%s %q", d, i.Name, data) })
		}
	}
	for _, in := range h.w.intents() {
		add("%+v", *in)
	}
	h.w.Objects.Look(func(key string, data []byte) { add("%s %q", key, data) })
	for _, late := range h.w.Bucket.Late() {
		add("%s %q", late.Key, late.Data)
	}
	add("%d %v %d", h.w.Now, h.w.Paused, h.disk)
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
