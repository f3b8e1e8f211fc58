package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"path"
	"slices"
	"time"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim/choose"
)

// A disk may give back other bytes than it was given. What tierd promises then depends on who could
// tell. Batches of Kafka have checksums: of a segment that rotted no copy is ever taken. A plain
// file has none: before it was copied nobody can tell, and what is copied is what the disk says. In
// either, a segment that was copied and rots then goes on the proof of what was copied, or stays.
// Nobody promises that the bytes are anywhere which rotted before they were copied.

// rot is what a disk does to a file by itself.
type rot uint8

const (
	rotBit     rot = iota // another bit; nothing else tells
	rotTouched            // another bit, and a new mtime, as of a file system that repaired something
	rotTail               // the end is gone, and the mtime is new
)

// rotNames say what rots, for people.
var rotNames = []string{rotBit: "one bit", rotTouched: "one bit, and its time", rotTail: "its end"}

// tailBytes is less than what each file of a segment has, and less than a batch.
const tailBytes = 3

// Rots lets a file of a closed segment rot. part says where, of so many as the layout has.
func (w *World) Rots(id tier.LogID, name string, how rot, part int) error {
	at := path.Join(w.source(), w.logDir(id), name)
	var was, is []byte
	err := w.Disk.Rot(at, func(data []byte) []byte {
		was = slices.Clone(data)
		if how == rotTail {
			is = data[:max(0, len(data)-tailBytes)]
			return slices.Clone(is)
		}
		if len(data) > 0 {
			data[w.spot(data, part)] ^= 0x04
		}
		is = data
		return slices.Clone(is)
	})
	if err != nil {
		return err
	}
	if how != rotBit {
		if err := w.Disk.Touch(at); err != nil {
			return err
		}
	}
	if w.oracle != nil {
		w.oracle.rotted(id, name, was, is, how)
	}
	return nil
}

// spot is where a bit of the file changes: anywhere in one without checksums, at the end of a batch
// in one of Kafka. What of a batch has no checksum, its offset and its leader epoch, is a weakness
// of its format, and nobody's promise.
func (w *World) spot(data []byte, part int) int {
	if w.Config.Layout != tier.LayoutKafka {
		return part * (len(data) - 1) / (spots - 1)
	}
	// A batch begins with its base offset, 8 bytes, and how many bytes follow, 4.
	const head = 12
	var ends []int
	for at := 0; at+head <= len(data); {
		at += head + int(binary.BigEndian.Uint32(data[at+8:]))
		ends = append(ends, at-1)
	}
	if ends == nil { // what is left of a file that was cut off
		return len(data) - 1
	}
	return min(ends[part*(len(ends)-1)/(spots-1)], len(data)-1)
}

// spots is how many places of a file can rot.
const spots = 4

// rotted notes that a file rotted. Where that has no trace but the bytes, or the bytes have a
// checksum, it is still the file that its owner wrote; else it is one that was written again.
func (o *Oracle) rotted(id tier.LogID, name string, was, is []byte, how rot) {
	o.changed = true
	base, _ := baseOfAny(name)
	s := o.record(id).segment(base)
	if s == nil {
		return
	}
	before := s.knows(fileName{log: id, base: base, name: name}, was)
	if before == nil {
		return // it was no file of this one's
	}
	after := version{data: is, at: o.w.Now, rotten: true}
	known := s.knows(fileName{log: id, base: base, name: name}, is)
	says := o.w.Now // the file, of its age; that counts where the clock went back in between
	if how == rotBit {
		says = before.at
	}
	if known != nil {
		// The same bit, again: it is what it was before, and as old.
		after = *known
		after.at = min(known.at, says)
	}
	// That a file beside the records has another time only a deletion looks at.
	if how == rotBit || o.w.Config.Layout == tier.LayoutKafka || name != segmentName(base) {
		after.was = before
		if known == nil {
			after.at = min(before.at, says)
		}
	}
	for i := range s.files {
		if f := &s.files[i]; f.name == name {
			f.versions = append(f.versions, after)
		}
	}
}

// missing says what the store lacks of a version of the file; "" is nothing. Of one that rotted
// what it was before will do.
func (t *storeTruth) missing(f fileName, v *version) (why string) {
	for ; v != nil; v = v.was {
		if why = t.proves(f, v.data); why == "" {
			return ""
		}
	}
	return why
}

// has reports whether it, or what it was before it rotted, has the digest.
func (v *version) has(sum tier.SHA256) bool {
	for ; v != nil; v = v.was {
		if sha256.Sum256(v.data) == sum {
			return true
		}
	}
	return false
}

// before reports whether it, or what it was before it rotted, has the bytes.
func (v *version) before(data []byte) bool {
	for ; v != nil; v = v.was {
		if bytes.Equal(v.data, data) {
			return true
		}
	}
	return false
}

// repair has the owner of a log write again what rotted of it, as a broker has it from a replica;
// also what rotted back meanwhile, since of that a file shows nothing, and it is still quarantined.
// What was given up it writes only where it is to be whole.
func (b *broker) repair(l *brokerLog, whole bool) {
	for _, x := range liveRecords(b.w.files(l.id)) {
		v := b.w.oracle.knows(x.fileName, x.data)
		rotted := v != nil && (v.rotten || v.was != nil)
		if rotted && (whole || !b.w.oracle.passes(&x)) {
			delete(l.written, x.base)
		}
	}
	b.flush(l)
}

// rotActs let files rot.
func (h *play) rotActs() []act {
	return []act{{kindDisk, "lets a segment rot", 3, func() {
		if deed := h.rots(); deed != nil {
			deed()
		}
	}}}
}

// rots chooses what rots, and returns what lets it; nil where nothing can.
func (h *play) rots() func() {
	id, base, ok := h.segment()
	if !ok {
		return nil
	}
	how := rot(choose.Pick(h.c, "what rots", rotNames, nil))
	part := choose.Number(h.c, "where", 0, spots-1)
	return func() {
		files := slices.DeleteFunc(slices.Clone(h.w.files(id)), func(f file) bool {
			return f.place != live || f.base != base
		})
		if len(files) == 0 {
			return
		}
		if how != rotBit {
			h.w.Advance(time.Millisecond) // as file systems tell changes apart
		}
		name := files[part%len(files)].name
		must(h.w.Rots(id, name, how, part))
		h.line(LaneDisk, "%s of %s rots: %s", name, id, rotNames[how])
	}
}
