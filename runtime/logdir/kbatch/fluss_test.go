package kbatch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

// mixedFluss is one of each kind of Fluss's batches, in ascending order of offsets.
func mixedFluss() []byte {
	data := kbatchtest.Fluss(nil, 0, spec{Base: 0, Last: 9, MaxTimestamp: 1000, Body: 40})
	data = kbatchtest.Fluss(data, 0, spec{Base: 10, Last: 10, MaxTimestamp: 1001, Empty: true,
		Changes: true})
	data = kbatchtest.Fluss(data, 1, spec{Base: 11, Last: 12, MaxTimestamp: 1002, Statistics: 16,
		Body: 9})
	data = kbatchtest.Fluss(data, 1, spec{Base: 13, Last: 13, MaxTimestamp: 1003, Body: 5})
	data = kbatchtest.Fluss(data, 2, spec{Base: 14, Last: 20, Epoch: 3, MaxTimestamp: 1004, Body: 7})
	return kbatchtest.Fluss(data, 2, spec{Base: 21, Last: 21, Epoch: -1, MaxTimestamp: 1005,
		Statistics: 3, Body: 1, Changes: true})
}

func TestFlussEveryMagic(t *testing.T) {
	t.Parallel()
	const none = tier.NoLeaderEpoch
	want := []kbatch.Batch{
		{Base: 0, Last: 9, Epoch: none, MaxTimestamp: 1000, Records: 10, Size: 88, AppendOnly: true},
		{Base: 10, Last: 10, Epoch: none, MaxTimestamp: 1001, Size: 48},
		{Magic: 1, Base: 11, Last: 12, Epoch: none, MaxTimestamp: 1002, Records: 2, Size: 77,
			AppendOnly: true},
		{Magic: 1, Base: 13, Last: 13, Epoch: none, MaxTimestamp: 1003, Records: 1, Size: 57,
			AppendOnly: true},
		{Magic: 2, Base: 14, Last: 20, Epoch: 3, MaxTimestamp: 1004, Records: 7, Size: 63,
			AppendOnly: true},
		{Magic: 2, Base: 21, Last: 21, Epoch: none, MaxTimestamp: 1005, Records: 1, Size: 60},
	}
	data, pos := mixedFluss(), int64(0)
	for i := range want {
		want[i].Format, want[i].AppendTime, want[i].ProducerID = kbatch.Fluss, true, -1
		want[i].Position = pos
		pos += want[i].Size
	}
	for _, n := range []int{1, 12, 13, 14, 47, 48, 49, 52, 56, 1000} {
		got, err := walkAs(kbatch.Fluss, data, n)
		if err != nil {
			t.Fatalf("in pieces of %d bytes: %v", n, err)
		}
		for i := range got {
			got[i].CRC = 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pieces of %d bytes (-want +got):\n%s", n, diff)
		}
	}
	for i := range want {
		b, err := kbatch.Fluss.Next(bytes.NewReader(data), want[i].Position, pos)
		if err == nil {
			err = b.Check(data[b.Position:])
		}
		if b.CRC = 0; err != nil || b != want[i] || b.Wrapper() {
			t.Errorf("next at byte %d: %+v, %v", want[i].Position, b, err)
		}
	}
	if _, err := kbatch.Fluss.Next(bytes.NewReader(data), pos, pos); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// TestFlussEveryBitIsCovered turns each bit of each batch over: none but those that a server
// writes after the checksum was made may pass it, and they are read anew.
func TestFlussEveryBitIsCovered(t *testing.T) {
	t.Parallel()
	everyBit(t, kbatch.Fluss, mixedFluss(), outsideFlussChecksum)
}

// outsideFlussChecksum reports whether no checksum covers the byte at pos: the offset, the commit
// timestamp, the leader epoch of magic 2, and the magic, where 0 and 1 have it in the same place.
func outsideFlussChecksum(batches []kbatch.Batch, pos int64) bool {
	for _, b := range batches {
		if in := pos - b.Position; in >= 0 && in < b.Size {
			return in < 8 || in >= 13 && in < 21 || in == 12 && b.Magic < 2 ||
				in >= 21 && in < 25 && b.Magic == 2
		}
	}
	return false
}

func TestFlussEveryCutIsTorn(t *testing.T) {
	t.Parallel()
	everyCut(t, kbatch.Fluss, mixedFluss())
}

func TestFlussRefuses(t *testing.T) {
	t.Parallel()
	put32 := func(at int, v uint32) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], v) }
	}
	put64 := func(at int, v uint64) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint64(b[at:], v) }
	}
	v0 := kbatchtest.Fluss(nil, 0, spec{Base: 120, Last: 129, Body: 50})
	v1 := kbatchtest.Fluss(nil, 1, spec{Base: 120, Last: 129, Body: 50})
	v2 := kbatchtest.Fluss(nil, 2, spec{Base: 120, Last: 129, Body: 50})
	for _, c := range []refusal{
		{"negative offset", v0, put64(0, 1<<63), "no such offset"},
		{"greatest offset", v1, put64(0, 1<<63-1), "no such offset"},
		{"negative length", v2, put32(8, 1<<31), "a length of -2147483648"},
		{"length too small", v0, put32(8, 35), "a length of 35, where at least 36"},
		{"length too small for magic 1", v1, put32(8, 39), "a length of 39, where at least 40"},
		{"length too small for magic 2", v2, put32(8, 43), "a length of 43, where at least 44"},
		{"length beyond the file", v0, put32(8, 1<<31-1), "are left: cut short"},
		{"unknown magic", v0, func(b []byte) { b[12] = 3 }, "magic 3"},
		{"negative magic", v0, func(b []byte) { b[12] = 0xff }, "magic -1"},
		{"leader epoch", v2, put32(21, 0xfffffffe), "leader epoch -2"},
		{"negative delta", v0, put32(28, 1<<31), "last offset delta -"},
		{"negative delta of magic 2", v2, put32(32, 1<<31), "last offset delta -"},
		{"delta beyond the offsets", v0, put64(0, 1<<63-3), "leaves the range"},
		{"negative count", v0, put32(44, 1<<31), "records in 10 offsets"},
		{"more records than offsets", v2, put32(48, 11), "11 records in 10 offsets"},
		{"negative statistics", v1, put32(48, 1<<31), "bytes of statistics in a batch of 102"},
		{"statistics beyond the batch", v2, put32(52, 51), "51 bytes of statistics in a batch of 106"},
		{"checksum", v0, put32(21, 0), "computed, 0x00000000 stored"},
		{"checksum of magic 1", v1, put32(21, 1), "computed, 0x00000001 stored"},
		{"checksum of magic 2", v2, put32(25, 1), "computed, 0x00000001 stored"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.refused(t, kbatch.Fluss, v0, 98)
		})
	}
}

// FuzzFluss walks any bytes: it ends, and what it visits can be read again where it was.
func FuzzFluss(f *testing.F) {
	f.Add(mixedFluss(), uint8(7))
	f.Add([]byte{}, uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, piece uint8) {
		got, err := walkAs(kbatch.Fluss, data, int(piece)+1)
		if err != nil && !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%v is not ErrDamaged", err)
		}
		pos := int64(0)
		for _, b := range got {
			again, err := kbatch.Fluss.Next(bytes.NewReader(data), b.Position, int64(len(data)))
			if err != nil || again != b || b.Position != pos || b.Last < b.Base {
				t.Errorf("%+v, read again as %+v, %v", b, again, err)
			}
			pos += b.Size
		}
		if err == nil && pos != int64(len(data)) {
			t.Errorf("it ends without an error at byte %d of %d", pos, len(data))
		}
	})
}
