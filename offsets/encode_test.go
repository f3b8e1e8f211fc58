package offsets

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/tierd/tierd/runtime/tier"
)

// equal compares what was written with what was read back. Empty and missing slices are alike.
func equal(t interface{ Fatalf(string, ...any) }, want, got any, err error) {
	if err != nil {
		t.Fatalf("read back %+v: %v", want, err)
	}
	all := cmp.Exporter(func(reflectType) bool { return true })
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), all); diff != "" {
		t.Fatalf("-written +read:\n%s", diff)
	}
}

// TestRoundTrip writes arbitrary values of every kind and reads them back.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		offset := tier.Offset(rapid.Int64().Draw(t, "offset"))
		pos := tier.Position(rapid.Uint64().Draw(t, "position"))

		root := rootState{id: rapid.Make[[16]byte]().Draw(t, "id"), nextLog: uint64(pos),
			clock: tier.Time(offset), tally: tally{uint64(pos), uint64(offset)}}
		gotRoot, err := decodeRoot(root.encode())
		equal(t, root, gotRoot, err)

		h := header{number: 7, copies: uint64(pos), gone: 1,
			ahead: rapid.Make[tier.RangeSet]().Draw(t, "ahead"),
			state: rapid.Make[tier.LogState]().Draw(t, "state")}
		h.state.Holes = nil // stored as entries of their own
		for i := range h.state.Accepted {
			h.state.Accepted[i].Log = h.state.Log
		}
		for i := range h.state.Clips {
			h.state.Clips[i].At = 0 // stands in the mark
		}
		gotHeader, err := decodeHeader(7, h.encode(), map[string]string{})
		equal(t, &h, gotHeader, err)

		c := storedCopy{Copy: rapid.Make[tier.Copy]().Draw(t, "copy"), copied: offset}
		c.Position = pos
		c.Content.Problems = nil // not of the content
		c.Verified = rapid.SampledFrom(verifyModes[:]).Draw(t, "verified")
		gotCopy, err := decodeCopy(pos, c.encode())
		equal(t, c, gotCopy, err)
		remote, err := decodeRemote(pos, c.encode())
		equal(t, c.Remote(), remote, err)

		tomb := Tombstone{Attempt: rapid.Make[tier.Attempt]().Draw(t, "attempt"), Cause: "x",
			At: tier.Time(offset)}
		tomb.Position = pos
		gotAttempt, err := decodeAttempt(pos, encodeAttempt(&tomb.Attempt))
		equal(t, tomb.Attempt, gotAttempt, err)
		gotTomb, err := decodeTombstone(pos, tomb.encode())
		equal(t, tomb, gotTomb, err)

		m := storedMark{mark: markClip, epoch: 3, offset: offset, copied: 9, at: tier.Time(offset)}
		gotMark, err := decodeMark(m.encode())
		equal(t, m, gotMark, err)

		hole := storedHole{Hole: rapid.Make[tier.Hole]().Draw(t, "hole"), epoch: 3, copied: offset}
		gotHole, err := decodeHole(hole.encode(), nil)
		equal(t, hole, gotHole, err)

		table := rapid.Make[tier.TableState]().Draw(t, "table")
		gotTable, err := decodeTable(table.Table, encodeTable(&table))
		equal(t, table, gotTable, err)

		p := place{number: uint64(pos), position: pos}
		gotPlace, err := decodePlace(p.encode())
		equal(t, p, gotPlace, err)
	})
}

// TestRemoteAllocates keeps the decoder of the start free of allocations.
func TestRemoteAllocates(t *testing.T) {
	c := storedCopy{Copy: benchCopy(1, tier.Range{Base: 1 << 40, Next: 1<<40 + 1000})}
	body := c.encode()
	n := testing.AllocsPerRun(100, func() {
		if _, err := decodeRemote(1, body); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("decoding a Remote allocates %v times", n)
	}
}

// TestCountIsBounded shows that a count which the body cannot hold is not believed.
func TestCountIsBounded(t *testing.T) {
	t.Parallel()
	d := decoder{b: binary.AppendUvarint(nil, 1<<60)}
	if got := d.ranges(); len(got) > 0 || d.end() == nil {
		t.Errorf("got %d ranges, error %v", len(got), d.end())
	}
}

// TestScramble keeps the tally's scrambling as it is: it is part of the format.
func TestScramble(t *testing.T) {
	t.Parallel()
	for crc, want := range map[uint32]uint64{0: 0xe220a8397b1dcdaf, 1: 0x910a2dec89025cc1} {
		if got := scramble(crc); got != want {
			t.Errorf("scramble(%d): got %#x, want %#x", crc, got, want)
		}
	}
}

// FuzzValue reads bytes as the body of each kind. It must not panic; what can be read and written
// again reads the same.
func FuzzValue(f *testing.F) {
	root := rootState{format: 1, nextLog: 3, clock: 9, tally: tally{2, math.MaxUint64}}
	c := storedCopy{Copy: benchCopy(1, tier.Range{Base: 3, Next: 9}), copied: 9}
	a := benchAttempt(1, tier.Range{Base: 3, Next: 9})
	for _, body := range [][]byte{nil, {0}, {0xFF, 0xFF, 0xFF}, root.encode(), c.encode(),
		encodeAttempt(&a), (&storedHole{copied: 4}).encode(), place{1, 2}.encode(),
		(&storedMark{mark: markOpen, offset: 4}).encode()} {
		for k := range byte(kindMark) + 1 {
			f.Add(k, body)
		}
	}
	f.Fuzz(func(t *testing.T, k byte, body []byte) {
		switch kind(k) {
		case kindRoot:
			if v, err := decodeRoot(body); err == nil {
				again, err := decodeRoot(v.encode())
				equal(t, v, again, err)
			}
		case kindLog:
			if v, err := decodeHeader(1, body, nil); err == nil {
				again, err := decodeHeader(1, v.encode(), nil)
				equal(t, v, again, err)
			}
		case kindCopy:
			if v, err := decodeCopy(1, body); err == nil {
				again, err := decodeCopy(1, v.encode())
				equal(t, v, again, err)
				remote, err := decodeRemote(1, body)
				equal(t, v.Remote(), remote, err)
			} else if _, err := decodeRemote(1, body); err != nil && !errors.Is(err, tier.ErrDamaged) {
				t.Fatal(err)
			}
		case kindAttempt:
			if v, err := decodeAttempt(1, body); err == nil {
				again, err := decodeAttempt(1, encodeAttempt(&v))
				equal(t, v, again, err)
			}
		case kindTombstone:
			if v, err := decodeTombstone(1, body); err == nil {
				again, err := decodeTombstone(1, v.encode())
				equal(t, v, again, err)
			}
		case kindHole:
			if v, err := decodeHole(body, nil); err == nil {
				again, err := decodeHole(v.encode(), nil)
				equal(t, v, again, err)
			}
		case kindMark:
			if v, err := decodeMark(body); err == nil {
				again, err := decodeMark(v.encode())
				equal(t, v, again, err)
			}
		case kindTable:
			if v, err := decodeTable("x", body); err == nil {
				again, err := decodeTable("x", encodeTable(&v))
				equal(t, v, again, err)
			}
		case kindAttemptID:
			if v, err := decodePlace(body); err == nil {
				again, err := decodePlace(v.encode())
				equal(t, v, again, err)
			}
		}
	})
}

// FuzzEntry puts any body, with a checksum and a tally that fit, in the place of an entry of a
// ledger. Opening and reading it must not panic, and appending neither.
func FuzzEntry(f *testing.F) {
	m := NewMemory([16]byte{1})
	l, err := Open(m)
	if err != nil {
		f.Fatal(err)
	}
	id := tier.LogID{Table: "t", Name: "0"}
	under, done := benchAttempt(1, span(0, 9)), benchCopy(2, span(0, 9))
	lost := benchAttempt(3, span(9, 20))
	done.Position = 1
	for _, r := range []tier.Record{
		tier.LogOpened{Log: id, Epoch: 1}, tier.CopyStarted{Log: id, Attempt: under},
		tier.CopyStarted{Log: id, Attempt: benchAttempt(2, span(0, 9))},
		tier.CopyFinished{Log: id, Copy: done}, tier.CopyStarted{Log: id, Attempt: lost},
		tier.CopyAbandoned{Log: id, Position: 2},
		tier.HoleRecorded{Log: id, Hole: tier.Hole{Range: span(9, 20)}},
		tier.StartMoved{Log: id, Start: 9, Expired: tier.RangeSet{span(0, 9)},
			Cause: tier.MoveExpired},
		tier.Diverged{Log: id, Offset: 15},
	} {
		if _, err := l.Append(context.Background(), r); err != nil {
			f.Fatal(err)
		}
	}
	var keys, bodies [][]byte
	if err := m.View(func(r Reader) error {
		return r.Scan(nil, nil, func(key, value []byte) error {
			keys = append(keys, key)
			bodies = append(bodies, value[1:len(value)-4])
			return nil
		})
	}); err != nil {
		f.Fatal(err)
	}
	for i := range keys {
		f.Add(i, bodies[i])
	}
	f.Fuzz(func(t *testing.T, i int, body []byte) {
		key := keys[uint(i)%uint(len(keys))]
		m := m.Clone()
		if err := m.Update(func(tx Tx) error { return replace(tx, key, body) }); err != nil {
			t.Fatal(err)
		}
		l, err := Open(m)
		if err != nil {
			return
		}
		for _, id := range l.Logs() {
			for pos := range tier.Position(7) {
				l.Copy(id, pos)
				l.Attempt(id, pos)
			}
			l.Facts(id, 0, 9)
			l.Tombstones(id)
			l.Append(context.Background(), tier.CopyFinished{Log: id, Copy: benchCopy(1, span(0, 9))})
			l.Append(context.Background(), tier.HoleRecorded{Log: id,
				Hole: tier.Hole{Range: span(30, 40)}})
			l.Append(context.Background(), tier.StartMoved{Log: id, Start: 10,
				Cause: tier.MoveExpired})
			l.Append(context.Background(), tier.CopyRemoved{Log: id, Position: 1})
			l.Append(context.Background(), tier.Diverged{Log: id, Offset: 5})
		}
		l.Restore(func(tier.LogState, []tier.Remote, []tier.Attempt) error { return nil })
	})
}

// replace puts a body in the place of an entry, nil removes it, and corrects the root for it.
func replace(tx Tx, key, body []byte) error {
	if kind(key[0]) == kindRoot {
		return tx.Put(key, enclose(key, body))
	}
	root, err := readRoot(tx)
	if err != nil {
		return err
	}
	w := writer{tx, root.tally}
	if body == nil {
		err = w.delete(key)
	} else {
		err = w.put(key, enclose(key, body), false)
	}
	if err != nil {
		return err
	}
	root.tally = w.tally
	return tx.Put(rootKey(), enclose(rootKey(), root.encode()))
}

func span(base, next tier.Offset) tier.Range { return tier.Range{Base: base, Next: next} }
