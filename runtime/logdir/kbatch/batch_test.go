package kbatch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

type spec = kbatchtest.Spec

// walk feeds data in pieces of n bytes and returns what was visited.
func walk(data []byte, n int) ([]kbatch.Batch, error) { return walkAs(kbatch.Kafka, data, n) }

func walkAs(f kbatch.Format, data []byte, n int) ([]kbatch.Batch, error) {
	var seen []kbatch.Batch
	w := f.NewWalker(int64(len(data)), func(b kbatch.Batch) error {
		seen = append(seen, b)
		return nil
	})
	for chunk := data; len(chunk) > 0; chunk = chunk[min(n, len(chunk)):] {
		if _, err := w.Write(chunk[:min(n, len(chunk))]); err != nil {
			break
		}
	}
	return seen, w.Close()
}

// mixed is one of each kind of batch, in ascending order of offsets.
func mixed() []byte {
	data := kbatchtest.V01(nil, 0, spec{Last: 0, Body: 3})
	data = kbatchtest.V01(data, 0, spec{Last: 4, Codec: kbatch.Gzip, Body: 40})
	data = kbatchtest.V01(data, 1, spec{Last: 5, MaxTimestamp: 1000})
	data = kbatchtest.V01(data, 1, spec{Last: 9, MaxTimestamp: 2000, Codec: kbatch.LZ4,
		AppendTime: true, Body: 9})
	data = kbatchtest.V2(data, spec{Base: 10, Last: 19, Epoch: 3, MaxTimestamp: 3000, Body: 100})
	data = kbatchtest.V2(data, spec{Base: 20, Last: 20, Epoch: 4, MaxTimestamp: -1, Control: true,
		Transactional: true, Body: 6})
	return kbatchtest.V2(data, spec{Base: 30, Last: 39, Epoch: 4, Codec: kbatch.Zstd, Empty: true,
		DeleteHorizon: true, AppendTime: true})
}

func TestWalkerDecodesEveryMagic(t *testing.T) {
	t.Parallel()
	const none = tier.NoLeaderEpoch
	want := []kbatch.Batch{
		{Magic: 0, Epoch: none, MaxTimestamp: -1, ProducerID: -1, Records: 1, Size: 29},
		{Magic: 0, Base: 4, Last: 4, Epoch: none, MaxTimestamp: -1, ProducerID: -1, Records: -1,
			Codec: kbatch.Gzip, Size: 66},
		{Magic: 1, Base: 5, Last: 5, Epoch: none, MaxTimestamp: 1000, ProducerID: -1, Records: 1,
			Size: 34},
		{Magic: 1, Base: 9, Last: 9, Epoch: none, MaxTimestamp: 2000, ProducerID: -1, Records: -1,
			Codec: kbatch.LZ4, AppendTime: true, Size: 43},
		{Magic: 2, Base: 10, Last: 19, Epoch: 3, MaxTimestamp: 3000, ProducerID: -1, Records: 10,
			Size: 161},
		{Magic: 2, Base: 20, Last: 20, Epoch: 4, MaxTimestamp: -1, ProducerID: -1, Records: 1,
			Control: true, Transactional: true, Size: 67},
		{Magic: 2, Base: 30, Last: 39, Epoch: 4, ProducerID: -1, Codec: kbatch.Zstd,
			DeleteHorizon: true, AppendTime: true, Size: 61},
	}
	data := mixed()
	for _, n := range []int{1, 2, 16, 17, 18, 60, 61, 62, 1000} {
		got, err := walk(data, n)
		if err != nil {
			t.Fatalf("in pieces of %d bytes: %v", n, err)
		}
		pos := int64(0)
		for i := range got {
			if got[i].Position != pos {
				t.Errorf("batch %d at byte %d, want %d", i, got[i].Position, pos)
			}
			pos += got[i].Size
			got[i].Position, got[i].CRC = 0, 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pieces of %d bytes (-want +got):\n%s", n, diff)
		}
	}
}

// TestEveryBitIsCovered turns each bit of each batch over: none but those of a leader epoch may
// pass unseen, and then the epoch is another.
func TestEveryBitIsCovered(t *testing.T) {
	t.Parallel()
	everyBit(t, kbatch.Kafka, mixed(), outsideChecksum)
}

// everyBit turns each bit of the batches over, and sees that each is noticed; and by the checksum
// where that covers it.
func everyBit(t *testing.T, format kbatch.Format, data []byte,
	outside func(batches []kbatch.Batch, pos int64) bool) {
	t.Helper()
	whole, err := walkAs(format, data, len(data))
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			got, err := walkAs(format, data, len(data))
			if err == nil && cmp.Equal(whole, got) {
				t.Errorf("byte %d bit %d: not noticed", i, bit)
			}
			if err != nil && !errors.Is(err, tier.ErrDamaged) {
				t.Errorf("byte %d bit %d: %v is not ErrDamaged", i, bit, err)
			}
			if err == nil && !outside(whole, int64(i)) {
				t.Errorf("byte %d bit %d: passed the checksum", i, bit)
			}
			data[i] ^= 1 << bit
		}
	}
}

// outsideChecksum reports whether no checksum covers the byte at pos: the offset, and the leader
// epoch of magic 2.
func outsideChecksum(batches []kbatch.Batch, pos int64) bool {
	for _, b := range batches {
		if in := pos - b.Position; in >= 0 && in < b.Size {
			return in < 8 || b.Magic == 2 && in >= 12 && in < 16
		}
	}
	return false
}

func TestEveryCutIsTorn(t *testing.T) {
	t.Parallel()
	everyCut(t, kbatch.Kafka, mixed())
}

// everyCut cuts the file off at each byte: that is torn, but between two batches.
func everyCut(t *testing.T, format kbatch.Format, data []byte) {
	t.Helper()
	whole, err := walkAs(format, data, len(data))
	if err != nil {
		t.Fatal(err)
	}
	ends := map[int64]int{0: 0}
	for i, b := range whole {
		ends[b.Position+b.Size] = i + 1
	}
	for n := range data {
		got, err := walkAs(format, data[:n], 7)
		count, boundary := ends[int64(n)]
		if boundary {
			if err != nil || len(got) != count {
				t.Errorf("cut to %d bytes: %d batches and %v, want %d and none", n, len(got), err,
					count)
			}
			continue
		}
		if !errors.Is(err, kbatch.ErrTorn) {
			t.Errorf("cut to %d bytes: %v, want ErrTorn", n, err)
		}
	}
}

// refusal is a batch that is damaged, and what is said of it.
type refusal struct {
	name   string
	batch  []byte
	change func([]byte)
	want   string
}

// refused walks a sound batch and then the damaged one, which begins at that byte.
func (c *refusal) refused(t *testing.T, format kbatch.Format, sound []byte, at int) {
	t.Helper()
	data := append(bytes.Clone(sound), c.batch...)
	c.change(data[len(sound):])
	got, err := walkAs(format, data, len(data))
	if len(got) != 1 || !errors.Is(err, tier.ErrDamaged) ||
		!strings.Contains(err.Error(), c.want) ||
		!strings.HasPrefix(err.Error(), fmt.Sprintf("byte %d: batch at offset ", at)) {
		t.Errorf("%d batches, then %v; want 1 and %q", len(got), err, c.want)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	put32 := func(at int, v uint32) func([]byte) {
		return func(b []byte) { binary.BigEndian.PutUint32(b[at:], v) }
	}
	put64 := func(at int, v uint64) func([]byte) {
		return func(b []byte) { binary.BigEndian.PutUint64(b[at:], v) }
	}
	v2 := kbatchtest.V2(nil, spec{Base: 120, Last: 129, Body: 50})
	v1 := kbatchtest.V01(nil, 1, spec{Last: 7, Body: 50})
	v0 := kbatchtest.V01(nil, 0, spec{Last: 7, Body: 50})
	for _, c := range []refusal{
		{"negative offset", v2, put64(0, 1<<63), "no such offset"},
		{"greatest offset", v1, put64(0, 1<<63-1), "no such offset"},
		{"negative length", v2, put32(8, 1<<31), "a length of -2147483648"},
		{"length too small", v2, put32(8, 48), "a length of 48, where at least 49"},
		{"length too small for magic 1", v1, put32(8, 21), "a length of 21, where at least 22"},
		{"length too small for magic 0", v0, put32(8, 13), "a length of 13, where at least 14"},
		{"length beyond the file", v2, put32(8, 1<<31-1), "are left: cut short"},
		{"unknown magic", v2, func(b []byte) { b[16] = 3 }, "magic 3"},
		{"negative magic", v2, func(b []byte) { b[16] = 0xff }, "magic -1"},
		{"leader epoch", v2, put32(12, 0xfffffffe), "leader epoch -2"},
		{"negative delta", v2, put32(23, 1<<31), "last offset delta -"},
		{"delta beyond the offsets", v2, put64(0, 1<<63-3), "leaves the range"},
		{"negative count", v2, put32(57, 1<<31), "records in 10 offsets"},
		{"more records than offsets", v2, put32(57, 11), "11 records in 10 offsets"},
		{"checksum", v2, put32(17, 0), "computed, 0x00000000 stored"},
		{"checksum of magic 1", v1, put32(12, 1), "computed, 0x00000001 stored"},
		{"checksum of magic 0", v0, put32(12, 1), "computed, 0x00000001 stored"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.refused(t, kbatch.Kafka, v2, 111)
		})
	}
}

func TestWalkerEndsWithVisit(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	calls := 0
	w := kbatch.NewWalker(1<<20, func(kbatch.Batch) error { calls++; return stop })
	data := mixed()
	n, err := w.Write(data)
	if err != stop || n != 29 {
		t.Errorf("took %d bytes with %v, want the 29 of the first batch and stop", n, err)
	}
	if _, err := w.Write(data[n:]); err != stop || calls != 1 {
		t.Errorf("a walk that has ended took more: %d visits, %v", calls, err)
	}
	if err := w.Close(); err != stop {
		t.Errorf("Close says %v, want stop", err)
	}
}

// TestWalkerMissesBytes closes a walker that was given less than the whole file.
func TestWalkerMissesBytes(t *testing.T) {
	t.Parallel()
	data := mixed()
	for n, want := range map[int]string{28: "1 of its 29 bytes are missing",
		40: "11 bytes are too few"} {
		w := kbatch.NewWalker(int64(len(data)), func(kbatch.Batch) error { return nil })
		if _, err := w.Write(data[:n]); err != nil {
			t.Fatal(err)
		}
		err := w.Close()
		if !errors.Is(err, kbatch.ErrTorn) || !strings.Contains(err.Error(), want) {
			t.Errorf("after %d bytes: %v, want %s", n, err, want)
		}
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	data := mixed()
	want, err := walk(data, len(data))
	if err != nil {
		t.Fatal(err)
	}
	var got []kbatch.Batch
	pos, size := int64(0), int64(len(data))
	for range len(data) {
		b, err := kbatch.Next(bytes.NewReader(data), pos, size)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b)
		pos += b.Size
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-walker +next):\n%s", diff)
	}
	if _, err := kbatch.Next(bytes.NewReader(data), size-3, size); !errors.Is(err, kbatch.ErrTorn) {
		t.Errorf("3 bytes before the end: %v, want ErrTorn", err)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	type batch struct{ base, last tier.Offset }
	for _, c := range []struct {
		name    string
		batches []batch
		want    string // of the last one; "" if all are right
	}{
		{"dense", []batch{{100, 109}, {110, 110}, {111, 199}}, ""},
		{"gaps", []batch{{103, 109}, {150, 160}}, ""},
		{"none", nil, ""},
		{"below the base", []batch{{99, 105}}, "below the segment's base 100"},
		{"the same twice", []batch{{100, 109}, {100, 109}}, "ends at offset 109"},
		{"overlap", []batch{{100, 109}, {109, 115}}, "ends at offset 109"},
		{"back", []batch{{150, 159}, {120, 130}}, "ends at offset 159"},
		{"into the next segment", []batch{{190, 200}}, "the next segment begins at 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := kbatch.NewOrder(tier.Range{Base: 100, Next: 200})
			next := tier.Offset(100)
			for i, b := range c.batches {
				err := o.Add(&kbatch.Batch{Base: b.base, Last: b.last})
				if i == len(c.batches)-1 && c.want != "" {
					if !errors.Is(err, tier.ErrDamaged) || !strings.Contains(err.Error(), c.want) {
						t.Errorf("got %v, want %q", err, c.want)
					}
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				next = b.last + 1
			}
			if o.Next() != next {
				t.Errorf("next is %d, want %d", o.Next(), next)
			}
		})
	}
}

// FuzzBatches feeds anything, in pieces of two sizes: what comes out must not depend on the
// pieces, and batches must follow each other without a gap in the bytes.
func FuzzBatches(f *testing.F) {
	f.Add(mixed(), 1)
	f.Add(mixed()[:70], 64)
	f.Add([]byte{}, 5)
	f.Add(bytes.Repeat([]byte{0}, 200), 17)
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		n = max(1, min(n, 1<<20))
		got, err := walk(data, n)
		again, errAgain := walk(data, len(data)+1)
		if !cmp.Equal(got, again) || (err == nil) != (errAgain == nil) ||
			err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("in pieces of %d: %v, %v; at once: %v, %v", n, got, err, again, errAgain)
		}
		pos := int64(0)
		for _, b := range got {
			if b.Position != pos || b.Size < 26 || b.Last < b.Base || b.Base < 0 || b.Next() < 0 {
				t.Fatalf("at byte %d: %+v", pos, b)
			}
			pos += b.Size
			head, err := kbatch.Next(bytes.NewReader(data), b.Position, int64(len(data)))
			if err != nil || !cmp.Equal(head, b) {
				t.Fatalf("Next says %+v, %v; the walker %+v", head, err, b)
			}
		}
		if err == nil && pos != int64(len(data)) {
			t.Fatalf("%d of %d bytes are batches", pos, len(data))
		}
		if err != nil && !errors.Is(err, tier.ErrDamaged) {
			t.Fatalf("%v is not ErrDamaged", err)
		}
	})
}
