package sim

import (
	"fmt"
	"path"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// SegmentOffsets is how many offsets each segment that Append writes has.
const SegmentOffsets = 10

// logDir is where a log of the plain source lies on the world's disk.
func logDir(id tier.LogID) string { return path.Join(sourceDir, id.Table, id.Name) }

// SegmentPath is the file of the segment with the base.
func SegmentPath(id tier.LogID, base tier.Offset) string {
	return path.Join(logDir(id), fmt.Sprintf("%020d.log", base))
}

// Content is what Append writes into a segment; version tells rewrites of one base apart.
func Content(id tier.LogID, base tier.Offset, version int) []byte {
	return fmt.Appendf(nil, "%s %d v%d %s\n", id, base, version, strings.Repeat(".", int(base%7)))
}

// Write plays the program that owns the log: it writes one segment file, whole and synced, over
// whatever has its name.
func (w *World) Write(id tier.LogID, base tier.Offset, data []byte) error {
	dir := sourceDir
	for _, step := range strings.Split(id.String(), "/") {
		parent := dir
		dir = path.Join(dir, step)
		if _, err := w.Disk.Stat(dir); err == nil {
			continue
		}
		if err := w.Disk.Mkdir(dir); err != nil {
			return err
		}
		if err := w.Disk.Sync(parent); err != nil {
			return err
		}
	}
	name := SegmentPath(id, base)
	if _, err := w.Disk.Stat(name); err == nil {
		if err := w.Disk.Remove(name); err != nil {
			return err
		}
	}
	f, err := w.Disk.Create(name)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return w.Disk.Sync(dir)
}

// Append rolls the log so many times: each roll closes the active segment and begins a new one. The
// first one of a log begins it at offset 0.
func (w *World) Append(id tier.LogID, rolls int) error {
	base, found, err := w.lastBase(id)
	if err != nil {
		return err
	}
	if !found {
		if err := w.Write(id, 0, Content(id, 0, 1)); err != nil {
			return err
		}
	}
	for range rolls {
		base += SegmentOffsets
		if err := w.Write(id, base, Content(id, base, 1)); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) lastBase(id tier.LogID) (base tier.Offset, found bool, err error) {
	if _, err := w.Disk.Stat(logDir(id)); err != nil {
		return 0, false, nil
	}
	infos, err := w.Disk.List(logDir(id))
	if err != nil {
		return 0, false, err
	}
	for _, i := range infos {
		var b tier.Offset
		if n, _ := fmt.Sscanf(i.Name, "%d.log", &b); n == 1 && strings.HasSuffix(i.Name, ".log") {
			base, found = max(base, b), true
		}
	}
	return base, found, nil
}

// Remove plays the program that owns the log: it removes one segment file, durably.
func (w *World) Remove(id tier.LogID, base tier.Offset) error {
	if err := w.Disk.Remove(SegmentPath(id, base)); err != nil {
		return err
	}
	return w.Disk.Sync(logDir(id))
}

// Stray leaves an object in the store that nothing names, as an attempt of a lost ledger would.
func (w *World) Stray(id tier.LogID) {
	key, err := w.process.store.FileKey(tier.ObjectKey{Log: id, Epoch: 1,
		Attempt: tier.AttemptID{0xff}, Name: "00000000000000000000.log"})
	if err != nil {
		panic(err)
	}
	w.Objects.Put(key, []byte("stray"))
}
