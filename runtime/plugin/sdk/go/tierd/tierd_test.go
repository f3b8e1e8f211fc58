package tierd

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// column is one column of a batch that a test makes.
type column struct {
	id     uint16
	wide   []int64
	narrow []uint8
}

// encode lays columns out as the ABI says, in memory from allocate.
func encode(n, logs int, now int64, columns ...column) []byte {
	le := binary.LittleEndian
	out := make([]byte, headerBytes)
	copy(out, "TRD1")
	le.PutUint32(out[4:], headerBytes)
	le.PutUint32(out[8:], uint32(len(columns)))
	le.PutUint32(out[12:], uint32(n))
	le.PutUint32(out[24:], uint32(logs))
	le.PutUint64(out[32:], uint64(now))
	end := headerBytes + directoryBytes*len(columns)
	var data []byte
	for _, c := range columns {
		typ := byte(typeUint8)
		if c.wide != nil {
			typ = typeInt64
		}
		out = le.AppendUint16(out, c.id)
		out = append(out, typ, 0)
		out = le.AppendUint32(out, uint32(end+len(data)))
		for _, v := range c.wide {
			data = le.AppendUint64(data, uint64(v))
		}
		data = append(data, c.narrow...)
		data = append(data, make([]byte, (8-len(data)%8)%8)...)
	}
	out = append(out, data...)
	le.PutUint32(out[16:], uint32(len(out)))
	in := unsafe.Slice((*byte)(allocate(uint32(len(out)))), len(out))
	copy(in, out)
	return in
}

// sample answers with what it was given, for a test to compare.
type sample struct {
	setup Setup
	err   error
	do    func(*Batch, *Choices)
}

func (s *sample) Configure(setup *Setup) error {
	s.setup = *setup
	return s.err
}

func (s *sample) Select(b *Batch, out *Choices) { s.do(b, out) }

// TestPlugin goes through a plugin's life. The package holds one plugin, as a module does, so all
// of it is one test.
func TestPlugin(t *testing.T) {
	t.Parallel()
	if configure([]byte(`{}`)) == 0 {
		t.Error("configured without a plugin")
	}
	p := &sample{}
	Register(p)
	text := `{"abi":1,"plugin":"p","node":"n","config":{"k":1},"later":true,` +
		`"tables":[{"name":"orders","labels":{"tier":"hot"}}]}`
	if configure([]byte(text)) != 0 || p.setup.Plugin != "p" || p.setup.Node != "n" ||
		string(p.setup.Config) != `{"k":1}` || p.setup.Tables[0].Labels["tier"] != "hot" {
		t.Errorf("setup %+v", p.setup)
	}
	if configure([]byte("{")) == 0 {
		t.Error("configured with nonsense")
	}
	p.err = errors.New("no")
	if configure([]byte(text)) == 0 {
		t.Error("an error did not refuse the configuration")
	}

	for round := range 2 { // the second one finds what the first one left
		p.do = func(b *Batch, out *Choices) {
			if b.Len() != 3 || b.Logs != 2 || b.Now != -5 ||
				!slices.Equal(b.Base, []int64{1, -2, 3}) ||
				!slices.Equal(b.Tiers, []uint8{1, 2, 3}) ||
				!slices.Equal(b.Age, []int64{0, 0, 0}) ||
				!slices.Equal(b.Verified, []uint8{0, 0, 0}) {
				t.Errorf("batch %+v", b)
			}
			if !slices.Equal(out.Score, []int64{0, 0, 0}) ||
				!slices.Equal(out.Action, []Action{0, 0, 0}) {
				t.Errorf("round %d begins with %v", round, out)
			}
			out.Score[2], out.Action[1] = -7, Keep
		}
		in := encode(3, 2, -5, column{id: 1, wide: []int64{1, -2, 3}},
			column{id: 11, narrow: []uint8{1, 2, 3}}, column{id: 77, wide: []int64{9, 9, 9}},
			column{id: 1, narrow: []uint8{9, 9, 9}}) // an id with another type is another column
		at, size := selectBatch(in)
		answer := unsafe.Slice((*byte)(at), size)
		want := slices.Concat(make([]byte, 16),
			binary.LittleEndian.AppendUint64(nil, uint64(1<<64-7)),
			[]byte{0, 2, 0})
		if !slices.Equal(answer, want) {
			t.Errorf("answer %x, want %x", answer, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	valid := func() []byte {
		in := make([]byte, headerBytes+directoryBytes+8)
		copy(in, "TRD1")
		for at, v := range map[int]uint32{4: headerBytes, 8: 1, 12: 1, 16: uint32(len(in)),
			headerBytes: 1 | typeInt64<<16, headerBytes + 4: headerBytes + directoryBytes} {
			binary.LittleEndian.PutUint32(in[at:], v)
		}
		return in
	}
	var b Batch
	if err := decode(valid(), &b); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func([]byte) []byte{
		"does not begin with TRD1": func(in []byte) []byte { in[0] = 'X'; return in },
		"the batch does not begin": func(in []byte) []byte { return in[:40] },
		"columns do not fit":       func(in []byte) []byte { in[9] = 1; return in },
		"column 1 lies outside":    func(in []byte) []byte { in[12] = 2; return in },
		"outside of the batch":     func(in []byte) []byte { in[headerBytes+4]++; return in },
	} {
		if err := decode(spoil(valid()), &b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
