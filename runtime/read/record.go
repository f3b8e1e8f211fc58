package read

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// headersMax bounds the headers of one record: two bytes of a batch can claim one.
const headersMax = 1 << 20

// Header is a header of a record.
type Header struct {
	Key   string
	Value []byte // nil is null
}

// Record is one decoded record. Its bytes share memory with what it was decoded from.
type Record struct {
	Offset    tier.Offset
	Timestamp int64  // milliseconds since the Unix epoch; -1 where there is none
	Key       []byte // nil is null
	Value     []byte // nil is null
	Headers   []Header
	Control   bool // a transaction marker: no record of a producer
}

// decodesMax is how many readers decode at one time: a batch of a few kilobytes may decompress to
// recordBytesMax.
const decodesMax = 4

// Records calls fn for each record of the whole batches in p, which a Reader gave, ascending, of
// whatever magic and codec. Errors wrap tier.ErrDamaged, or are those of fn and of ctx: others may
// be decoding.
func (r *Reader) Records(ctx context.Context, p []byte, fn func(*Record) error) error {
	select {
	case r.decodes <- struct{}{}:
		defer func() { <-r.decodes }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return decode(p, fn)
}

// decode is Records for whoever bounds itself. Checksums are not looked at.
func decode(p []byte, fn func(*Record) error) error {
	for pos := int64(0); pos < int64(len(p)); {
		b, err := kbatch.Parse(p[pos:], pos, int64(len(p))-pos)
		if err != nil {
			return err
		}
		if err := decodeBatch(&b, p[pos:pos+b.Size], fn); err != nil {
			return err
		}
		pos += b.Size
	}
	return nil
}

func decodeBatch(b *kbatch.Batch, p []byte, fn func(*Record) error) error {
	wrong := func(err error) error {
		return fmt.Errorf("batch at offset %d: %w: %w", b.Base, err, tier.ErrDamaged)
	}
	if b.Magic < 2 {
		list, err := decodeMessage(b, p)
		if err != nil {
			return wrong(err)
		}
		for i := range list {
			if err := fn(&list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	body, err := decompress(b.Codec, b.Magic, p[kbatch.HeaderMax:])
	if err != nil {
		return wrong(err)
	}
	first := int64(binary.BigEndian.Uint64(p[27:]))
	in := input{p: body}
	for range b.Records {
		r := Record{Control: b.Control}
		size := in.varint()
		end := len(in.p) - int(size)
		if size < 0 || end < 0 {
			return wrong(errShort)
		}
		in.take(1) // attributes, of which there are none
		r.Timestamp = first + in.varint()
		r.Offset = b.Base + tier.Offset(in.varint())
		r.Key, r.Value = in.bytes(), in.bytes()
		n := in.varint()
		if n > headersMax {
			return wrong(fmt.Errorf("%d headers, more than %d", n, headersMax))
		}
		for ; n > 0 && in.err == nil; n-- {
			key := in.bytes()
			r.Headers = append(r.Headers, Header{string(key), in.bytes()})
		}
		if b.AppendTime {
			r.Timestamp = b.MaxTimestamp
		}
		switch {
		case in.err != nil:
			return wrong(in.err)
		case len(in.p) != end || r.Offset < b.Base || r.Offset > b.Last:
			return wrong(errors.New("a record that is not as long as it says, or not of this batch"))
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
	return nil
}

// decodeMessage decodes a message of magic 0 or 1: one record, or a wrapper with others in it. The
// offsets in a wrapper of magic 1 count from that of its first record; its own is that of the last.
func decodeMessage(b *kbatch.Batch, p []byte) ([]Record, error) {
	in := input{p: p[18:]} // offset, size, crc, magic, attributes
	r := Record{Offset: b.Last, Timestamp: kbatch.NoTimestamp}
	if b.Magic == 1 {
		r.Timestamp = int64(binary.BigEndian.Uint64(in.take(8)))
	}
	r.Key, r.Value = in.sized(), in.sized()
	if in.err != nil || !b.Wrapper() {
		return []Record{r}, in.err
	}
	body, err := decompress(b.Codec, b.Magic, r.Value)
	if err != nil {
		return nil, err
	}
	var out []Record
	for pos := int64(0); pos < int64(len(body)); {
		inner, err := kbatch.Parse(body[pos:], pos, int64(len(body))-pos)
		if err != nil {
			return nil, err
		}
		if inner.Magic > 1 || inner.Wrapper() {
			return nil, errNested
		}
		list, err := decodeMessage(&inner, body[pos:pos+inner.Size])
		if err != nil {
			return nil, err
		}
		out, pos = append(out, list...), pos+inner.Size
	}
	if n := len(out); n > 0 && b.Magic == 1 {
		by := b.Last - out[n-1].Offset
		for i := range out {
			out[i].Offset += by
			if b.AppendTime {
				out[i].Timestamp = b.MaxTimestamp
			}
		}
	}
	return out, nil
}

var (
	errShort  = errors.New("it ends within a record")
	errNested = errors.New("a wrapper within a wrapper")
)

// input reads what Kafka writes into batches. After an error everything is empty.
type input struct {
	p   []byte
	err error
}

func (in *input) take(n int64) []byte {
	if in.err == nil && n <= int64(len(in.p)) && n >= 0 {
		out := in.p[:n:n]
		in.p = in.p[n:]
		return out
	}
	in.err, in.p = errShort, nil
	return make([]byte, min(max(n, 0), 8))
}

// varint reads a zigzag varint.
func (in *input) varint() int64 {
	v, n := binary.Varint(in.p)
	if n <= 0 {
		in.err, in.p = errShort, nil
		return 0
	}
	in.p = in.p[n:]
	return v
}

// bytes reads a varint and so many bytes; nil for -1.
func (in *input) bytes() []byte {
	n := in.varint()
	if n < 0 {
		return nil
	}
	return in.take(n)
}

// sized reads a 32-bit length and so many bytes; nil for -1.
func (in *input) sized() []byte {
	n := int32(binary.BigEndian.Uint32(in.take(4)))
	if n < 0 {
		return nil
	}
	return in.take(int64(n))
}
