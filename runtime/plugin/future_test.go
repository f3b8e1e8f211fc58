package plugin

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// future writes a batch as a later tierd of the same ABI might: with a longer header, columns in
// another order, columns that nobody knows, and without some that are known.
func future(b *Batch, n int, drop ...Column) []byte {
	const header = 96
	le := binary.LittleEndian
	now := make([]byte, inputBytes(n))
	b.encode(now, n)
	type column struct {
		id   Column
		typ  byte
		data []byte
	}
	columns := []column{{900, 1, make([]byte, 8*n)}, {901, 2, make([]byte, n)}, {902, 7, []byte{1}}}
	for k := range int(le.Uint32(now[8:])) {
		entry := now[headerBytes+directoryBytes*k:]
		id, size := Column(le.Uint16(entry)), 8*n
		if entry[2] == byte(typeUint8) {
			size = n
		}
		at := int(le.Uint32(entry[4:]))
		if !slices.Contains(drop, id) {
			columns = append(columns, column{id, entry[2], now[at : at+size]})
		}
	}
	slices.Reverse(columns)
	out := append(slices.Clone(now[:headerBytes]), make([]byte, header-headerBytes)...)
	le.PutUint32(out[4:], header)
	le.PutUint32(out[8:], uint32(len(columns)))
	end := header + directoryBytes*len(columns)
	var data []byte
	for _, c := range columns {
		entry := make([]byte, directoryBytes)
		le.PutUint16(entry, uint16(c.id))
		entry[2] = c.typ
		le.PutUint32(entry[4:], uint32(end+len(data)))
		out = append(out, entry...)
		data = append(data, c.data...)
		data = append(data, make([]byte, padded(len(data))-len(data))...)
	}
	out = append(out, data...)
	le.PutUint32(out[16:], uint32(len(out)))
	return out
}

// TestGuestsReadTheDirectory: plugins of every SDK go on working under a later tierd.
func TestGuestsReadTheDirectory(t *testing.T) {
	t.Parallel()
	tables, err := NewTables([]Table{{Name: "cold"}, {Name: "hot"}})
	if err != nil {
		t.Fatal(err)
	}
	b := &Batch{Now: epoch, Tables: tables}
	for i := range 2 {
		l := Log{Table: i, State: tier.Enabled}
		for k := range 3 {
			l.Segments = append(l.Segments, Segment{Bytes: 100,
				MaxTime: epoch.Add(-time.Duration(2-2*i+k) * time.Hour)})
		}
		b.Logs = append(b.Logs, l)
	}
	n := b.Len()
	for name, wasm := range map[string][]byte{
		"c":    readModule(t, filepath.Join(modules, "c-hottest.wasm")),
		"rust": readModule(t, filepath.Join(modules, "rust-hottest.wasm")),
		"go":   goPlugin(t, "hottest"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worker(t, Options{Limits: Limits{WallMax: time.Hour}}, wasm)
			r := ask(w, b)
			if len(r.Faults) != 0 || !slices.Equal(r.scores[0], []int64{0, 0, 0, 100, 100, 100}) {
				t.Fatalf("today: scores %d, faults %v", r.scores[0], r.Faults)
			}
			inst := w.slots[0].inst
			for _, c := range []struct {
				what string
				drop []Column
				want int64 // score of the hot table
			}{
				{"with more columns", nil, 100},
				{"without columns that it does not use", []Column{ColumnVerified, ColumnDiskFree},
					100},
				{"without a column that it uses", []Column{ColumnMaxTimestamp}, 0},
			} {
				scores := askRaw(t, inst, future(b, n, c.drop...), n)
				if want := []int64{0, 0, 0, c.want, c.want, c.want}; !slices.Equal(scores, want) {
					t.Errorf("%s: scores %d, want %d", c.what, scores, want)
				}
			}
		})
	}
}

// askRaw asks an instance about a batch that is given as bytes.
func askRaw(t *testing.T, i *instance, in []byte, n int) []int64 {
	t.Helper()
	i.refuel(i.code.batchFuel(n))
	pointer, view, fault := i.allocate(len(in))
	if fault != nil {
		t.Fatal(fault)
	}
	copy(view, in)
	i.args = [2]uint64{uint64(pointer), uint64(n)}
	if fault := i.call(i.selectFn, 2, exportSelect); fault != nil {
		t.Fatal(fault)
	}
	out, ok := i.mod.Memory().Read(uint32(i.args[0]>>32), uint32(i.args[0]))
	if !ok || len(out) != 9*n {
		t.Fatalf("the answer has %d bytes, want %d", len(out), 9*n)
	}
	scores := make([]int64, n)
	for k := range scores {
		scores[k] = int64(binary.LittleEndian.Uint64(out[8*k:]))
	}
	return scores
}
