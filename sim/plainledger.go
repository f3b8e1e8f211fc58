package sim

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// The ledger's entries as the oracle reads them, by what doc.go of package offsets says of each
// byte, and by none of the daemon's own decoders: at the end of a history both have to say the
// same, so that what one of these reads otherwise than it was meant does not pass for the truth
// here as well.

// The kinds of entries.
const (
	entryRoot      = 0
	entryLog       = 1
	entryCopy      = 2
	entryAttempt   = 3
	entryTombstone = 4
	entryHole      = 5
	entryTable     = 6
	entryMark      = 8
)

// spelled is a body that is read from its start. After the first mistake it is short, and gives
// zeros.
type spelled struct {
	b     []byte
	short bool
}

func (s *spelled) bytes(n uint64) []byte {
	if s.short = s.short || n > uint64(len(s.b)); s.short {
		return make([]byte, min(n, 32))
	}
	out := s.b[:n]
	s.b = s.b[n:]
	return out
}

func (s *spelled) unsigned() uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		b := s.bytes(1)[0]
		if v |= uint64(b&0x7f) << shift; b < 0x80 {
			return v
		}
	}
	s.short = true
	return 0
}

func (s *spelled) signed() int64 {
	v := s.unsigned()
	return int64(v>>1) ^ -int64(v&1)
}

func (s *spelled) text() string { return string(s.bytes(s.unsigned())) }

func (s *spelled) offset() tier.Offset   { return tier.Offset(s.signed()) }
func (s *spelled) time() tier.Time       { return tier.Time(s.signed()) }
func (s *spelled) epoch() tier.TierEpoch { return tier.TierEpoch(s.unsigned()) }

func (s *spelled) span() tier.Range {
	base := s.offset()
	return tier.Range{Base: base, Next: base + s.offset()}
}

// times calls read as often as the number says that comes next.
func (s *spelled) times(read func()) {
	for n := s.unsigned(); n > 0 && !s.short; n-- {
		read()
	}
}

// plainLedger is a ledger, as its entries say.
type plainLedger struct {
	ID     string
	Clock  tier.Time
	Logs   []*plainLog
	Tables []tier.TableState
}

// plainLog is what the ledger has of a log.
type plainLog struct {
	State      tier.LogState
	Facts      []tier.Fact
	Attempts   []tier.Attempt
	Tombstones []offsets.Tombstone
}

// readPlain reads the entries of a medium. The error is of the first that does not say what it
// should.
func readPlain(m offsets.Medium) (*plainLedger, error) {
	l := &plainLedger{}
	numbered := map[uint64]*plainLog{}
	err := m.View(func(r offsets.Reader) error {
		return r.Scan([]byte{entryRoot}, nil, func(key, value []byte) error {
			end := len(value) - 4
			sum := crc32.Checksum(slices.Concat(key, value[:max(end, 0)]),
				crc32.MakeTable(crc32.Castagnoli))
			if end < 1 || value[0] != 1 || binary.BigEndian.Uint32(value[end:]) != sum {
				return fmt.Errorf("entry %x has no value of version 1 with its checksum", key)
			}
			s := &spelled{b: value[1:end]}
			l.entry(numbered, key, s)
			if s.short || len(s.b) > 0 {
				return fmt.Errorf("the value of entry %x is not as long as it says", key)
			}
			return nil
		})
	})
	for _, log := range l.Logs {
		log.finish()
	}
	return l, err
}

// entry takes one over. Those of logs come before those of what logs have.
func (l *plainLedger) entry(numbered map[uint64]*plainLog, key []byte, s *spelled) {
	number, pos := uint64(0), tier.Position(0)
	if len(key) >= 9 && key[0] != entryTable {
		number = binary.BigEndian.Uint64(key[1:])
	}
	if len(key) == 17 {
		pos = tier.Position(binary.BigEndian.Uint64(key[9:]))
	}
	log := numbered[number]
	switch key[0] {
	case entryRoot:
		s.short = s.unsigned() > 2
		l.ID = hex.EncodeToString(s.bytes(16))
		s.unsigned()
		l.Clock = s.time()
		s.time()
		s.unsigned()
		s.bytes(8)
		return
	case entryTable:
		l.Tables = append(l.Tables, tableSpelled(string(key[1:]), s))
		return
	case entryLog:
		log = &plainLog{State: stateSpelled(s)}
		numbered[number], l.Logs = log, append(l.Logs, log)
		return
	}
	if log == nil { // it says where an attempt is
		s.unsigned()
		s.unsigned()
		return
	}
	switch key[0] {
	case entryCopy:
		log.Facts = append(log.Facts, copySpelled(pos, s))
	case entryAttempt:
		log.Attempts = append(log.Attempts, attemptSpelled(pos, s))
	case entryTombstone:
		log.Tombstones = append(log.Tombstones, offsets.Tombstone{Attempt: attemptSpelled(pos, s),
			Cause: s.text(), At: s.time()})
	case entryHole:
		f := tier.Fact{Position: pos, Epoch: s.epoch(), Hole: &tier.Hole{Range: s.span()}}
		f.Copied = f.Hole.Next + s.offset()
		f.Hole.Cause, f.Hole.At = tier.HoleCause(s.text()), s.time()
		f.At = f.Hole.At
		log.Facts = append(log.Facts, f)
	case entryMark:
		what := s.bytes(1)[0]
		f := tier.Fact{Position: pos, Epoch: s.epoch()}
		at := s.offset()
		f.Copied, f.At = at+s.offset(), s.time()
		switch what {
		case 1:
			f.Start = &at
		case 2:
			f.Clip = &at
		case 3:
			f.Open = &at
		}
		log.Facts = append(log.Facts, f)
	default:
		s.unsigned()
		s.unsigned()
	}
}

func stateSpelled(s *spelled) tier.LogState {
	l := tier.LogState{Log: tier.LogID{Table: s.text(), Name: s.text()}, Source: s.text(),
		Layout: tier.Layout(s.text()), Incarnation: s.text(), Epoch: s.epoch(), Fresh: s.epoch(),
		Start: s.offset(), Copied: s.offset(), LogStart: s.offset(),
		Next: tier.Position(s.unsigned())}
	s.unsigned()
	s.unsigned()
	s.times(func() { s.span() })
	s.times(func() { l.Expired = append(l.Expired, s.span()) })
	s.times(func() { l.Unpublished = append(l.Unpublished, tier.Position(s.unsigned())) })
	s.times(func() { l.Checkpoints = append(l.Checkpoints, s.unsigned()) })
	s.times(func() {
		a := tier.LossAccepted{Log: l.Log, Range: s.span()}
		copy(a.SHA256[:], s.bytes(32))
		a.At = s.time()
		l.Accepted = append(l.Accepted, a)
	})
	s.times(func() {
		l.Moves = append(l.Moves, tier.StartMove{Start: s.offset(), At: s.time(),
			Cause: tier.MoveCause(s.text())})
	})
	s.times(func() {
		l.Clips = append(l.Clips, tier.Clip{Position: tier.Position(s.unsigned()), Offset: s.offset()})
	})
	if len(s.b) > 0 {
		l.Emptied = s.bytes(1)[0] == 1
	}
	return l
}

func copySpelled(pos tier.Position, s *spelled) tier.Fact {
	c := &tier.Copy{Position: pos}
	copy(c.Attempt[:], s.bytes(16))
	c.Epoch, c.Content.Range = s.epoch(), s.span()
	copied := c.Content.Range.Next + s.offset()
	modes := []tier.VerifyMode{"", tier.VerifySize, tier.VerifySample, tier.VerifyFull}
	c.Verified = modes[s.bytes(1)[0]%4]
	c.ModTime, c.FinishedAt, c.Content.MaxTime = s.time(), s.time(), s.time()
	c.Content.Batches, c.Content.LastNext = s.signed(), c.Content.Range.Next+s.offset()
	name := ""
	s.times(func() {
		name = name[:min(s.unsigned(), uint64(len(name)))] + s.text()
		f := tier.SourceFile{FileDigest: tier.FileDigest{Name: name, Size: s.signed()}}
		copy(f.SHA256[:], s.bytes(32))
		f.CRC32C = binary.BigEndian.Uint32(s.bytes(4))
		f.Stat.Inode, f.Stat.Size, f.Stat.ModTime = s.unsigned(), f.Size+s.signed(), s.time()
		c.Content.Files = append(c.Content.Files, f)
	})
	s.times(func() {
		c.Content.Lineage = append(c.Content.Lineage, tier.EpochStart{
			Epoch: tier.LeaderEpoch(s.signed()), Start: s.offset()})
	})
	return tier.Fact{Position: pos, Epoch: c.Epoch, At: c.FinishedAt, Copied: copied, Add: c}
}

func attemptSpelled(pos tier.Position, s *spelled) tier.Attempt {
	a := tier.Attempt{Position: pos}
	copy(a.ID[:], s.bytes(16))
	a.Epoch, a.Range, a.StartedAt = s.epoch(), s.span(), s.time()
	s.times(func() { a.Names = append(a.Names, s.text()) })
	return a
}

func tableSpelled(name string, s *spelled) tier.TableState {
	t := tier.TableState{Table: name, State: tier.TierState(s.text()), Epoch: s.epoch(),
		Policy: tier.DisablePolicy(s.text()), Fresh: s.epoch(), Since: s.time(), Entry: s.text(),
		Window:  tier.BrakeWindow{Since: s.time(), Segments: s.signed(), Bytes: s.signed()},
		Dropped: s.time()}
	if s.bytes(1)[0] == 1 {
		t.Paused = &tier.Reason{Code: tier.Code(s.text()), Text: s.text(), Rule: s.text(),
			Title: s.text(), Until: s.time()}
	}
	return t
}

// finish puts together what follows from several entries: which holes count, and when a clip was.
func (l *plainLog) finish() {
	slices.SortFunc(l.Facts, func(a, b tier.Fact) int { return cmp.Compare(a.Position, b.Position) })
	asFacts := &ledgerLog{state: l.State}
	for i := range l.Facts {
		f := &l.Facts[i]
		f.Incarnation = l.State.Incarnation
		for k := range l.State.Clips {
			if c := &l.State.Clips[k]; f.Clip != nil && c.Position == f.Position {
				c.At = f.At
			}
		}
		if f.Hole == nil || f.Epoch < l.State.Fresh {
			continue
		}
		h := *f.Hole
		if h.Range = asFacts.clip(f.Position, h.Range); !h.Range.Empty() {
			l.State.Holes = append(l.State.Holes, h)
		}
	}
}

// spelled (L3): the ledger's entries say what the daemon reads in them.
func (o *Oracle) spelled(ledger *ledgerTruth) {
	plain, err := readPlain(o.w.Medium)
	if err != nil {
		o.violate(Settled, "the ledger: %v", err)
		return
	}
	read := &plainLedger{ID: ledger.id, Clock: ledger.clock, Tables: ledger.tables}
	for _, l := range ledger.logs {
		read.Logs = append(read.Logs, &plainLog{l.state, l.facts, l.attempts, l.tombstones})
	}
	says, is := read.text(), plain.text()
	for i := range max(len(says), len(is)) {
		if i >= len(says) || i >= len(is) || !bytes.Equal(says[i], is[i]) {
			o.violate(Settled, "the ledger says %s, and is read as %s",
				slices.Concat(is[min(i, len(is)):]...), slices.Concat(says[min(i, len(says)):]...))
			return
		}
	}
}

// text writes the ledger down, one line for itself and one for each log.
func (l *plainLedger) text() (out [][]byte) {
	line := func(v any) {
		text, err := json.Marshal(v)
		must(err)
		out = append(out, bytes.ReplaceAll(text, []byte("null"), []byte("[]"))) // nothing is nothing
	}
	line([]any{l.ID, l.Clock, l.Tables})
	for _, log := range l.Logs {
		state := log.State
		state.Holes = slices.Clone(state.Holes)
		slices.SortStableFunc(state.Holes, func(a, b tier.Hole) int {
			return cmp.Or(cmp.Compare(a.Base, b.Base), cmp.Compare(a.Next, b.Next),
				cmp.Compare(a.At, b.At))
		})
		line([]any{state, log.Facts, log.Attempts, log.Tombstones})
	}
	return out
}
