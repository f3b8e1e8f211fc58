package offsets

import (
	"encoding/binary"
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
)

// The bodies of the values, version 1. doc.go shows them byte by byte. Each has an append or
// encode function and a decode function beside it, which must never change: a version 2 gets
// functions of its own.

// Tombstone is an abandoned attempt: objects under its names may still appear in the store.
type Tombstone struct {
	tier.Attempt
	Cause string
	At    tier.Time // when it was abandoned
}

// rootState is the entry of the ledger itself.
type rootState struct {
	format  uint64 // version of the ledger as a whole
	id      [16]byte
	nextLog uint64 // number of the next log
	clock   tier.Time
	rebuilt tier.Time // when it was put together anew; absent if it never was
	tally   tally     // of all other entries
}

func (r *rootState) encode() []byte {
	b := binary.AppendUvarint(nil, r.format)
	b = append(b, r.id[:]...)
	b = binary.AppendUvarint(b, r.nextLog)
	b = binary.AppendVarint(b, int64(r.clock))
	b = binary.AppendVarint(b, int64(r.rebuilt))
	b = binary.AppendUvarint(b, r.tally.entries)
	return binary.BigEndian.AppendUint64(b, r.tally.sum)
}

func decodeRoot(body []byte) (r rootState, err error) {
	d := decoder{b: body}
	r.format = d.uint()
	if !d.bad && r.format > formatVersion {
		return r, fmt.Errorf("%w: its format is %d, this tierd knows up to %d", tier.ErrNewer,
			r.format, formatVersion)
	}
	copy(r.id[:], d.take(len(r.id)))
	r.nextLog = d.uint()
	r.clock = tier.Time(d.int())
	r.rebuilt = tier.Time(d.int())
	r.tally.entries = d.uint()
	if b := d.take(8); b != nil {
		r.tally.sum = binary.BigEndian.Uint64(b)
	}
	return r, d.end()
}

// header is what the ledger keeps of a log, in memory as on the medium; but the holes have
// entries of their own there.
type header struct {
	number uint64 // of the log; part of its keys
	copies uint64 // finished copies that are stored
	gone   uint64 // of these, the ones that are out of the log: only still to be removed
	// ahead are the ranges of copies and holes beyond the contiguous prefix, which ends at
	// state.Copied: every one of them begins above it.
	ahead tier.RangeSet
	state tier.LogState
}

func (h *header) encode() []byte { return h.append(make([]byte, 0, 128)) }

func (h *header) append(b []byte) []byte {
	s := &h.state
	b = appendString(b, s.Log.Table)
	b = appendString(b, s.Log.Name)
	b = appendString(b, s.Source)
	b = appendString(b, string(s.Layout))
	b = appendString(b, s.Incarnation)
	b = binary.AppendUvarint(b, uint64(s.Epoch))
	b = binary.AppendUvarint(b, uint64(s.Fresh))
	b = binary.AppendVarint(b, int64(s.Start))
	b = binary.AppendVarint(b, int64(s.Copied))
	b = binary.AppendVarint(b, int64(s.LogStart))
	b = binary.AppendUvarint(b, uint64(s.Next))
	b = binary.AppendUvarint(b, h.copies)
	b = binary.AppendUvarint(b, h.gone)
	b = appendRanges(b, h.ahead)
	b = appendRanges(b, s.Expired)
	b = binary.AppendUvarint(b, uint64(len(s.Unpublished)))
	for _, p := range s.Unpublished {
		b = binary.AppendUvarint(b, uint64(p))
	}
	b = binary.AppendUvarint(b, uint64(len(s.Checkpoints)))
	for _, n := range s.Checkpoints {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Accepted)))
	for _, a := range s.Accepted {
		b = appendRange(b, a.Range)
		b = append(b, a.SHA256[:]...)
		b = binary.AppendVarint(b, int64(a.At))
	}
	b = binary.AppendUvarint(b, uint64(len(s.Moves)))
	for _, m := range s.Moves {
		b = binary.AppendVarint(b, int64(m.Start))
		b = binary.AppendVarint(b, int64(m.At))
		b = appendString(b, string(m.Cause))
	}
	b = binary.AppendUvarint(b, uint64(len(s.Clips)))
	for _, c := range s.Clips {
		b = binary.AppendUvarint(b, uint64(c.Position))
		b = binary.AppendVarint(b, int64(c.Offset))
	}
	if s.Emptied {
		b = append(b, 1)
	}
	return b
}

// decodeHeader reads a log's header. words keeps one copy of each text that many logs share.
func decodeHeader(number uint64, body []byte, words map[string]string) (*header, error) {
	d := decoder{b: body, words: words}
	h := &header{number: number}
	s := &h.state
	s.Log.Table = d.word()
	s.Log.Name = d.string()
	s.Source = d.word()
	s.Layout = tier.Layout(d.word())
	s.Incarnation = d.word()
	s.Epoch = tier.TierEpoch(d.uint32())
	s.Fresh = tier.TierEpoch(d.uint32())
	s.Start = tier.Offset(d.int())
	s.Copied = tier.Offset(d.int())
	s.LogStart = tier.Offset(d.int())
	s.Next = tier.Position(d.uint())
	h.copies = d.uint()
	h.gone = d.uint()
	h.ahead = d.ranges()
	s.Expired = d.ranges()
	for range d.count() {
		s.Unpublished = append(s.Unpublished, tier.Position(d.uint()))
	}
	for range d.count() {
		s.Checkpoints = append(s.Checkpoints, d.uint())
	}
	for range d.count() {
		a := tier.LossAccepted{Log: s.Log, Range: d.rangeOf()}
		copy(a.SHA256[:], d.take(len(a.SHA256)))
		a.At = tier.Time(d.int())
		s.Accepted = append(s.Accepted, a)
	}
	for range d.count() {
		s.Moves = append(s.Moves, tier.StartMove{Start: tier.Offset(d.int()), At: tier.Time(d.int()),
			Cause: tier.MoveCause(d.word())})
	}
	for range d.count() {
		s.Clips = append(s.Clips, tier.Clip{Position: tier.Position(d.uint()),
			Offset: tier.Offset(d.int())})
	}
	if !d.bad && len(d.b) > 0 {
		s.Emptied, d.bad = d.b[0] == 1, d.b[0] != 1
		d.b = d.b[1:]
	}
	return h, d.end()
}

// storedCopy is a finished copy with the copied offset that held once it counted.
type storedCopy struct {
	tier.Copy
	copied tier.Offset
}

func (c *storedCopy) encode() []byte {
	b := append(make([]byte, 0, 384), c.Attempt[:]...)
	b = binary.AppendUvarint(b, uint64(c.Epoch))
	b = appendRange(b, c.Content.Range)
	b = binary.AppendVarint(b, int64(c.copied-c.Content.Range.Next))
	b = append(b, verifyByte(c.Verified))
	b = binary.AppendVarint(b, int64(c.ModTime))
	b = binary.AppendVarint(b, int64(c.FinishedAt))
	b = binary.AppendVarint(b, int64(c.Content.MaxTime))
	b = binary.AppendVarint(b, c.Content.Batches)
	b = binary.AppendVarint(b, int64(c.Content.LastNext-c.Content.Range.Next))
	b = binary.AppendUvarint(b, uint64(len(c.Content.Files)))
	before := ""
	for i := range c.Content.Files {
		b = appendFile(b, before, &c.Content.Files[i])
		before = c.Content.Files[i].Name
	}
	b = binary.AppendUvarint(b, uint64(len(c.Content.Lineage)))
	for _, e := range c.Content.Lineage {
		b = binary.AppendVarint(b, int64(e.Epoch))
		b = binary.AppendVarint(b, int64(e.Start))
	}
	return b
}

func decodeCopy(pos tier.Position, body []byte) (c storedCopy, err error) {
	d := decoder{b: body}
	c.Position = pos
	d.copyHead(&c)
	before := ""
	for range d.count() {
		f := tier.SourceFile{}
		shared, rest := d.name(len(before))
		f.Name = before[:shared] + string(rest)
		d.file(&f)
		c.Content.Files = append(c.Content.Files, f)
		before = f.Name
	}
	for range d.count() {
		e := tier.EpochStart{Epoch: tier.LeaderEpoch(d.int32()), Start: tier.Offset(d.int())}
		c.Content.Lineage = append(c.Content.Lineage, e)
	}
	return c, d.end()
}

// decodeRemote reads what Copy.Remote gives, without making a Copy: no names, no allocation.
func decodeRemote(pos tier.Position, body []byte) (tier.Remote, error) {
	d := decoder{b: body}
	var c storedCopy
	d.copyHead(&c)
	r := tier.Remote{
		Range: c.Content.Range, Position: pos, Epoch: c.Epoch, Verified: c.Verified != "",
		MaxTime: c.Content.MaxTime, ModTime: c.ModTime, FinishedAt: c.FinishedAt,
	}
	for i := range d.count() {
		var f tier.SourceFile
		d.name(nameBytesMax)
		d.file(&f)
		r.Bytes += f.Size
		if i == 0 {
			r.Log = f.Stat
		}
	}
	r.Last = tier.NoLeaderEpoch
	for range d.count() {
		r.Last = tier.LeaderEpoch(d.int32())
		d.int()
	}
	return r, d.end()
}

// copyHead reads all that stands before the files.
func (d *decoder) copyHead(c *storedCopy) {
	copy(c.Attempt[:], d.take(len(c.Attempt)))
	c.Epoch = tier.TierEpoch(d.uint32())
	c.Content.Range = d.rangeOf()
	c.copied = c.Content.Range.Next + tier.Offset(d.int())
	c.Verified = d.verifyMode()
	c.ModTime = tier.Time(d.int())
	c.FinishedAt = tier.Time(d.int())
	c.Content.MaxTime = tier.Time(d.int())
	c.Content.Batches = d.int()
	c.Content.LastNext = c.Content.Range.Next + tier.Offset(d.int())
}

// appendFile writes a file. Of its name only what differs from the file before is written: the
// files of a segment share the base offset in their names.
func appendFile(b []byte, before string, f *tier.SourceFile) []byte {
	shared := 0
	for shared < min(len(before), len(f.Name)) && before[shared] == f.Name[shared] {
		shared++
	}
	b = binary.AppendUvarint(b, uint64(shared))
	b = appendString(b, f.Name[shared:])
	b = binary.AppendVarint(b, f.Size)
	b = append(b, f.SHA256[:]...)
	b = binary.BigEndian.AppendUint32(b, f.CRC32C)
	b = binary.AppendUvarint(b, f.Stat.Inode)
	b = binary.AppendVarint(b, f.Stat.Size-f.Size)
	return binary.AppendVarint(b, int64(f.Stat.ModTime))
}

// name reads how many bytes a name shares with the one before, which has sharedMax, and the rest.
func (d *decoder) name(sharedMax int) (shared int, rest []byte) {
	n := d.uint()
	if n > uint64(sharedMax) {
		d.bad = true
		return 0, nil
	}
	return int(n), d.take(d.count())
}

func (d *decoder) file(f *tier.SourceFile) {
	f.Size = d.int()
	copy(f.SHA256[:], d.take(len(f.SHA256)))
	if b := d.take(4); b != nil {
		f.CRC32C = binary.BigEndian.Uint32(b)
	}
	f.Stat.Inode = d.uint()
	f.Stat.Size = f.Size + d.int()
	f.Stat.ModTime = tier.Time(d.int())
}

func encodeAttempt(a *tier.Attempt) []byte { return appendAttempt(make([]byte, 0, 192), a) }

func appendAttempt(b []byte, a *tier.Attempt) []byte {
	b = append(b, a.ID[:]...)
	b = binary.AppendUvarint(b, uint64(a.Epoch))
	b = appendRange(b, a.Range)
	b = binary.AppendVarint(b, int64(a.StartedAt))
	b = binary.AppendUvarint(b, uint64(len(a.Names)))
	for _, name := range a.Names {
		b = appendString(b, name)
	}
	return b
}

func (d *decoder) attempt(pos tier.Position) tier.Attempt {
	a := tier.Attempt{Position: pos}
	copy(a.ID[:], d.take(len(a.ID)))
	a.Epoch = tier.TierEpoch(d.uint32())
	a.Range = d.rangeOf()
	a.StartedAt = tier.Time(d.int())
	for range d.count() {
		a.Names = append(a.Names, d.string())
	}
	return a
}

func decodeAttempt(pos tier.Position, body []byte) (tier.Attempt, error) {
	d := decoder{b: body}
	a := d.attempt(pos)
	return a, d.end()
}

func (t *Tombstone) encode() []byte {
	b := appendAttempt(nil, &t.Attempt)
	b = appendString(b, t.Cause)
	return binary.AppendVarint(b, int64(t.At))
}

func decodeTombstone(pos tier.Position, body []byte) (Tombstone, error) {
	d := decoder{b: body}
	t := Tombstone{Attempt: d.attempt(pos)}
	t.Cause = d.string()
	t.At = tier.Time(d.int())
	return t, d.end()
}

// storedHole is a hole with what its fact says beside it.
type storedHole struct {
	tier.Hole
	epoch  tier.TierEpoch
	copied tier.Offset
}

func (h *storedHole) encode() []byte {
	b := binary.AppendUvarint(nil, uint64(h.epoch))
	b = appendRange(b, h.Range)
	b = binary.AppendVarint(b, int64(h.copied-h.Range.Next))
	b = appendString(b, string(h.Cause))
	return binary.AppendVarint(b, int64(h.At))
}

func decodeHole(body []byte, words map[string]string) (storedHole, error) {
	d := decoder{b: body, words: words}
	h := storedHole{epoch: tier.TierEpoch(d.uint32())}
	h.Range = d.rangeOf()
	h.copied = h.Range.Next + tier.Offset(d.int())
	h.Cause = tier.HoleCause(d.word())
	h.At = tier.Time(d.int())
	return h, d.end()
}

// mark says what a storedMark says of its offset. The numbers are part of the format.
type mark byte

const (
	markStart mark = 1 // the log starts there
	markClip  mark = 2 // copies at lower positions end there
	markOpen  mark = 3 // a tier epoch begins there, with nothing of the older ones
)

// storedMark is a fact that consists of one offset.
type storedMark struct {
	mark   mark
	epoch  tier.TierEpoch
	offset tier.Offset
	copied tier.Offset // the copied offset once it counted
	at     tier.Time
}

func (m *storedMark) encode() []byte {
	b := binary.AppendUvarint([]byte{byte(m.mark)}, uint64(m.epoch))
	b = binary.AppendVarint(b, int64(m.offset))
	b = binary.AppendVarint(b, int64(m.copied-m.offset))
	return binary.AppendVarint(b, int64(m.at))
}

func decodeMark(body []byte) (m storedMark, err error) {
	d := decoder{b: body}
	if b := d.take(1); b != nil {
		m.mark = mark(b[0])
	}
	if m.mark < markStart || m.mark > markOpen {
		d.bad = true
	}
	m.epoch = tier.TierEpoch(d.uint32())
	m.offset = tier.Offset(d.int())
	m.copied = m.offset + tier.Offset(d.int())
	m.at = tier.Time(d.int())
	return m, d.end()
}

// fact gives what the manifest has at the mark's position.
func (m *storedMark) fact(pos tier.Position) tier.Fact {
	f := tier.Fact{Position: pos, Epoch: m.epoch, At: m.at, Copied: m.copied}
	switch m.mark {
	case markStart:
		f.Start = &m.offset
	case markClip:
		f.Clip = &m.offset
	case markOpen:
		f.Open = &m.offset
	}
	return f
}

func encodeTable(t *tier.TableState) []byte {
	b := appendString(nil, string(t.State))
	b = binary.AppendUvarint(b, uint64(t.Epoch))
	b = appendString(b, string(t.Policy))
	b = binary.AppendUvarint(b, uint64(t.Fresh))
	b = binary.AppendVarint(b, int64(t.Since))
	b = appendString(b, t.Entry)
	b = binary.AppendVarint(b, int64(t.Window.Since))
	b = binary.AppendVarint(b, t.Window.Segments)
	b = binary.AppendVarint(b, t.Window.Bytes)
	b = binary.AppendVarint(b, int64(t.Dropped))
	if t.Paused == nil {
		return append(b, 0)
	}
	b = append(b, 1)
	b = appendString(b, string(t.Paused.Code))
	b = appendString(b, t.Paused.Text)
	b = appendString(b, t.Paused.Rule)
	b = appendString(b, t.Paused.Title)
	return binary.AppendVarint(b, int64(t.Paused.Until))
}

func decodeTable(name string, body []byte) (tier.TableState, error) {
	d := decoder{b: body}
	t := tier.TableState{Table: name, State: tier.TierState(d.string())}
	t.Epoch = tier.TierEpoch(d.uint32())
	t.Policy = tier.DisablePolicy(d.string())
	t.Fresh = tier.TierEpoch(d.uint32())
	t.Since = tier.Time(d.int())
	t.Entry = d.string()
	t.Window.Since = tier.Time(d.int())
	t.Window.Segments = d.int()
	t.Window.Bytes = d.int()
	t.Dropped = tier.Time(d.int())
	if d.flag() {
		t.Paused = &tier.Reason{Code: tier.Code(d.string()), Text: d.string(), Rule: d.string(),
			Title: d.string(), Until: tier.Time(d.int())}
	}
	return t, d.end()
}

// place is where an attempt id was used.
type place struct {
	number   uint64
	position tier.Position
}

func (p place) encode() []byte {
	b := binary.AppendUvarint(make([]byte, 0, 8), p.number)
	return binary.AppendUvarint(b, uint64(p.position))
}

func decodePlace(body []byte) (place, error) {
	d := decoder{b: body}
	p := place{number: d.uint(), position: tier.Position(d.uint())}
	return p, d.end()
}
