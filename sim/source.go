package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// SegmentOffsets is how many offsets each segment that Append writes has.
const SegmentOffsets = 10

// Companion is the extension of a file that belongs to a segment beside its records.
const Companion = ".index"

// source is where the source's directory is now.
func (w *World) source() string {
	if w.vanished {
		return elsewhereDir
	}
	return sourceDir
}

// logDir is the directory of a log below the source's.
func (w *World) logDir(id tier.LogID) string {
	if w.Config.Layout == tier.LayoutKafka {
		return id.Table + "-" + id.Name
	}
	return id.String()
}

// SegmentPath is the file of a plain log's segment, from the root of the world's disk.
func SegmentPath(id tier.LogID, base tier.Offset) string {
	return path.Join(sourceDir, id.String(), segmentName(base))
}

func segmentName(base tier.Offset) string {
	digits := strconv.FormatInt(int64(base), 10)
	return "00000000000000000000"[min(len(digits), 20):] + digits + ".log"
}

// Content is what Append writes into a segment; version tells rewrites of one base apart.
func Content(id tier.LogID, base tier.Offset, version int) []byte {
	return fmt.Appendf(nil, "%s %d v%d %s\n", id, base, version, strings.Repeat(".", int(base%7)))
}

// Write plays the program that owns the log: it writes one segment file, whole and synced, over
// whatever has its name.
func (w *World) Write(id tier.LogID, base tier.Offset, data []byte) error {
	return w.write(id, base, segmentName(base), data)
}

// WriteCompanion writes a second file of a segment, likewise.
func (w *World) WriteCompanion(id tier.LogID, base tier.Offset, data []byte) error {
	name := strings.TrimSuffix(segmentName(base), ".log") + Companion
	return w.write(id, base, name, data)
}

func (w *World) write(id tier.LogID, base tier.Offset, name string, data []byte) error {
	dir := w.source()
	for step := range strings.SplitSeq(w.logDir(id), "/") {
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
	at := path.Join(dir, name)
	if _, err := w.Disk.Stat(at); err == nil {
		if err := w.Disk.Remove(at); err != nil {
			return err
		}
	}
	if err := w.append(at, data); err != nil {
		return err
	}
	if err := w.Disk.Sync(dir); err != nil {
		return err
	}
	if w.oracle != nil {
		w.oracle.wrote(id, base, name, data)
	}
	return nil
}

// append adds to a file, which it makes if it is not there.
func (w *World) append(at string, data []byte) error {
	f, err := w.Disk.Append(at)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// Grow plays a program that does not keep to its word: it appends to a segment in place.
func (w *World) Grow(id tier.LogID, base tier.Offset, more []byte) error {
	at := path.Join(w.source(), w.logDir(id), segmentName(base))
	if err := w.append(at, more); err != nil {
		return err
	}
	if w.oracle != nil {
		data, err := readFile(w.Disk, at)
		if err != nil {
			return err
		}
		w.oracle.wrote(id, base, segmentName(base), data)
	}
	return nil
}

// Append rolls the log so many times: each roll closes the active segment and begins a new one. The
// first one of a log begins it at offset 0.
func (w *World) Append(id tier.LogID, rolls int) error {
	bases, err := w.Bases(id)
	if err != nil {
		return err
	}
	var base tier.Offset
	if n := len(bases); n > 0 {
		base = bases[n-1]
	} else if err := w.Write(id, 0, Content(id, 0, 1)); err != nil {
		return err
	}
	for range rolls {
		base += SegmentOffsets
		if err := w.Write(id, base, Content(id, base, 1)); err != nil {
			return err
		}
	}
	return nil
}

// Bases are those of the segment files that the log has on disk, ascending.
func (w *World) Bases(id tier.LogID) ([]tier.Offset, error) {
	dir := path.Join(w.source(), w.logDir(id))
	if _, err := w.Disk.Stat(dir); err != nil {
		return nil, nil
	}
	infos, err := w.Disk.List(dir)
	if err != nil {
		return nil, err
	}
	var out []tier.Offset
	for _, i := range infos {
		if base, ok := baseOf(i.Name); ok {
			out = append(out, base)
		}
	}
	return out, nil
}

// baseOf reads the name of a file with records.
func baseOf(name string) (tier.Offset, bool) {
	stem, ok := strings.CutSuffix(name, ".log")
	base, err := strconv.ParseInt(stem, 10, 64)
	return tier.Offset(base), ok && err == nil && segmentName(tier.Offset(base)) == name
}

// Remove plays the program that owns the log: it removes the files of one segment, durably.
func (w *World) Remove(id tier.LogID, base tier.Offset) error {
	dir := path.Join(w.source(), w.logDir(id))
	if err := w.Disk.Remove(path.Join(dir, segmentName(base))); err != nil {
		return err
	}
	companion := strings.TrimSuffix(segmentName(base), ".log") + Companion
	err := w.Disk.Remove(path.Join(dir, companion))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.Disk.Sync(dir); err != nil {
		return err
	}
	if w.oracle != nil {
		w.oracle.removed(id, base)
	}
	return nil
}

// Vanish takes the source's directory away, as a lost mount does; Return puts it back.
func (w *World) Vanish() error {
	if w.vanished {
		return nil
	}
	w.vanished = true
	return w.move(sourceDir, elsewhereDir)
}

// Return puts the source's directory back.
func (w *World) Return() error {
	if !w.vanished {
		return nil
	}
	w.vanished = false
	return w.move(elsewhereDir, sourceDir)
}

func (w *World) move(from, to string) error {
	if err := w.Disk.Rename(from, to); err != nil {
		return err
	}
	return w.Disk.Sync(".")
}

// Lose takes an object out of the store, as no store should.
func (w *World) Lose(key string) {
	w.Objects.Remove(key)
	if w.oracle != nil {
		w.oracle.lost(key)
	}
}

// Stray leaves an object in the store that nothing names, as an attempt of a lost ledger would.
func (w *World) Stray(id tier.LogID) {
	key, err := w.process.store.FileKey(tier.ObjectKey{Log: id, Epoch: 1,
		Attempt: tier.AttemptID{0xff}, Name: "00000000000000000000.log"})
	if err != nil {
		panic(err)
	}
	if w.oracle != nil {
		w.oracle.stray(key)
	}
	w.Objects.Put(key, []byte("stray"))
}
