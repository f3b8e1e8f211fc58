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
	add("%s", h.w.persistent())
	dirs := []string{auditDir}
	for _, l := range h.o.logs {
		dir := path.Join(h.w.source(), h.w.logDir(l.id))
		dirs = append(dirs, dir, path.Join(dir, trashDir))
	}
	for _, dir := range dirs {
		add("%s", dir)
		file := func(i vfs.Info, data []byte) { add("%s %q", i.Name, data) }
		h.w.Disk.Look(dir, file)
		h.w.Disk.LookSynced(dir, file) // what a crash would leave
	}
	for _, late := range h.w.Bucket.Late() {
		add("%s %s %q", late.Kind, late.Key, late.Data)
	}
	add("%d %v %d", h.w.Now, h.w.Paused, h.disk)
	for _, id := range h.w.process.engine.Logs() {
		v, _ := h.w.process.engine.Log(id)
		add("%s", plainly(v))
	}
	add("%d %d", h.w.process.engine.RetryAt(), h.disturbed)
	if left, agree := h.w.process.clocks.Left(h.w.passed); left > 0 {
		add("%s %s", left, agree)
	}
	for _, f := range h.w.Queued() {
		add("%T%+v", f, f)
	}
	return hash.Sum64()
}
