package plugin

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/runtime/tier"
)

// TestEncodeByteByByte pins the layout of a batch of two segments, as the package comment and
// docs/plugins.md give it. A change here is a new version of the ABI.
func TestEncodeByteByByte(t *testing.T) {
	t.Parallel()
	tables, err := NewTables([]Table{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	if err != nil {
		t.Fatal(err)
	}
	b := &Batch{Now: 0x0102030405060708, Tables: tables, Logs: []Log{
		{Table: 2, State: tier.Disabling, LocalBytes: 0x11, DiskUsedBytes: 0x22,
			DiskFreeBytes: 0x33,
			Segments: []Segment{{Range: tier.Range{Base: 1, Next: 2}, Bytes: 3, MaxTime: 4, Age: 5,
				Local: true, Copied: true}}},
		{Table: -1, Segments: []Segment{{Range: tier.Range{Base: 6, Next: 7}, Bytes: 8, MaxTime: 9,
			Age: 10, Local: true, Remote: true, Verified: true}}},
	}}
	var want []byte
	u16 := func(v uint16) { want = binary.LittleEndian.AppendUint16(want, v) }
	u32 := func(v uint32) { want = binary.LittleEndian.AppendUint32(want, v) }
	i64 := func(v ...int64) {
		for _, v := range v {
			want = binary.LittleEndian.AppendUint64(want, uint64(v))
		}
	}
	want = append(want, "TRD1"...)
	u32(64)  // the directory's place
	u32(14)  // columns
	u32(2)   // segments
	u32(368) // bytes in all
	u32(3)   // tables
	u32(2)   // logs
	u32(0)
	i64(0x0102030405060708, 0, 0, 0)
	for i := range 14 { // the directory
		u16(uint16(i + 1))
		if i < 10 {
			want = append(want, 1, 0)
			u32(uint32(64 + 14*8 + 16*i))
		} else {
			want = append(want, 2, 0)
			u32(uint32(64 + 14*8 + 16*10 + 8*(i-10)))
		}
	}
	i64(1, 6)    // base
	i64(2, 7)    // next
	i64(3, 8)    // bytes
	i64(4, 9)    // max timestamp
	i64(5, 10)   // age
	i64(0x11, 0) // local bytes
	i64(0x22, 0) // disk used
	i64(0x33, 0) // disk free
	i64(2, -1)   // table
	i64(0, 1)    // log
	i64(0x0301)  // tiers: two bytes and padding
	i64(0x0001)  // copied
	i64(0x0100)  // verified
	i64(0x0002)  // tier state
	got := make([]byte, inputBytes(2))
	b.encode(got, 2)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%x\nwant\n%x", got, want)
	}
}

// drawBatch draws a batch with extreme numbers.
func drawBatch(t *rapid.T, segments int) *Batch {
	number := rapid.Int64()
	b := &Batch{Now: tier.Time(number.Draw(t, "now"))}
	for range rapid.IntRange(0, 5).Draw(t, "logs") {
		l := Log{Table: rapid.IntRange(-1, 5).Draw(t, "table"),
			State: rapid.SampledFrom([]tier.TierState{"", tier.Enabled, tier.Disabling,
				tier.Disabled,
				"LATER"}).Draw(t, "state"),
			LocalBytes: number.Draw(t, "local"), DiskUsedBytes: number.Draw(t, "used"),
			DiskFreeBytes: number.Draw(t, "free")}
		for range rapid.IntRange(0, segments).Draw(t, "segments") {
			flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
			l.Segments = append(l.Segments, Segment{
				Range: tier.Range{Base: tier.Offset(number.Draw(t, "base")),
					Next: tier.Offset(number.Draw(t, "next"))},
				Bytes: number.Draw(t, "bytes"), MaxTime: tier.Time(number.Draw(t, "newest")),
				Age: time.Duration(number.Draw(t, "age")), Local: flag("local"),
				Remote: flag("remote"), Copied: flag("copied"), Verified: flag("verified")})
		}
		b.Logs = append(b.Logs, l)
	}
	return b
}

// TestEncodeReadsBack reads batches by the directory alone, as a guest of any version does.
func TestEncodeReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := drawBatch(t, 9)
		n := b.Len()
		in := make([]byte, inputBytes(n))
		for i := range in {
			in[i] = 0xaa // what a plugin left there
		}
		b.encode(in, n)
		le := binary.LittleEndian
		place := map[Column]int{}
		for k := range int(le.Uint32(in[8:])) {
			entry := in[int(le.Uint32(in[4:]))+8*k:]
			place[Column(le.Uint16(entry))] = int(le.Uint32(entry[4:]))
		}
		row := 0
		for i, l := range b.Logs {
			for _, s := range l.Segments {
				for column, want := range map[Column]int64{
					ColumnBase: int64(s.Base), ColumnNext: int64(s.Next), ColumnBytes: s.Bytes,
					ColumnMaxTimestamp: int64(s.MaxTime), ColumnAge: int64(s.Age),
					ColumnLocalBytes: l.LocalBytes, ColumnDiskUsed: l.DiskUsedBytes,
					ColumnDiskFree: l.DiskFreeBytes, ColumnTable: int64(l.Table),
					ColumnLog: int64(i),
				} {
					if got := int64(le.Uint64(in[place[column]+8*row:])); got != want {
						t.Fatalf("row %d, column %d: %d, want %d", row, column, got, want)
					}
				}
				states := map[tier.TierState]byte{tier.Enabled: 1, tier.Disabling: 2,
					tier.Disabled: 3}
				for column, want := range map[Column]byte{
					ColumnTiers:  bit(s.Local) | bit(s.Remote)<<1,
					ColumnCopied: bit(s.Copied), ColumnVerified: bit(s.Verified),
					ColumnTierState: states[l.State],
				} {
					if got := in[place[column]+row]; got != want {
						t.Fatalf("row %d, column %d: %d, want %d", row, column, got, want)
					}
				}
				row++
			}
		}
	})
}
