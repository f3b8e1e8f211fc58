package kafka

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// copyBelow is how small record batches must be to be copied beside what surrounds them: larger
// ones are sent from where they are.
const copyBelow = 4 << 10

// fetchEncoder writes a Fetch response as pieces, so that records are not copied on their way out.
type fetchEncoder struct {
	version  int16
	flexible bool
	pieces   [][]byte
	dst      []byte // the piece being written
}

// encodeFetch writes the response after head, with the records of each topic and partition in
// pieces. The bytes are those of resp.AppendTo, if the pieces together were its RecordBatches.
func encodeFetch(head []byte, resp *kmsg.FetchResponse, records [][][][]byte) [][]byte {
	e := &fetchEncoder{version: resp.Version, flexible: resp.IsFlexible(), dst: head}
	e.i32(resp.ThrottleMillis)
	if e.version >= 7 {
		e.i16(resp.ErrorCode)
		e.i32(resp.SessionID)
	}
	e.length(len(resp.Topics))
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if e.version < 13 {
			e.text(t.Topic)
		} else {
			e.dst = append(e.dst, t.TopicID[:]...)
		}
		e.length(len(t.Partitions))
		for j := range t.Partitions {
			e.partition(&t.Partitions[j], records[i][j])
		}
		e.noTags()
	}
	e.noTags()
	return append(e.pieces, e.dst)
}

func (e *fetchEncoder) partition(p *kmsg.FetchResponseTopicPartition, records [][]byte) {
	e.i32(p.Partition)
	e.i16(p.ErrorCode)
	e.i64(p.HighWatermark)
	e.i64(p.LastStableOffset)
	if e.version >= 5 {
		e.i64(p.LogStartOffset)
	}
	if p.AbortedTransactions == nil {
		e.null()
	} else {
		e.length(len(p.AbortedTransactions))
	}
	for i := range p.AbortedTransactions {
		e.i64(p.AbortedTransactions[i].ProducerID)
		e.i64(p.AbortedTransactions[i].FirstOffset)
		e.noTags()
	}
	if e.version >= 11 {
		e.i32(p.PreferredReadReplica)
	}
	size := 0
	for _, r := range records {
		size += len(r)
	}
	e.length(size)
	for _, r := range records {
		if len(r) < copyBelow {
			e.dst = append(e.dst, r...)
			continue
		}
		e.pieces = append(e.pieces, e.dst, r)
		e.dst = make([]byte, 0, 256)
	}
	switch d := &p.DivergingEpoch; {
	case !e.flexible:
	case d.Epoch == -1 && d.EndOffset == -1:
		e.noTags()
	default: // one tag: number 0, of 13 bytes
		e.dst = append(e.dst, 1, 0, 13)
		e.i32(d.Epoch)
		e.i64(d.EndOffset)
		e.noTags()
	}
}

func (e *fetchEncoder) i16(v int16) { e.dst = binary.BigEndian.AppendUint16(e.dst, uint16(v)) }
func (e *fetchEncoder) i32(v int32) { e.dst = binary.BigEndian.AppendUint32(e.dst, uint32(v)) }
func (e *fetchEncoder) i64(v int64) { e.dst = binary.BigEndian.AppendUint64(e.dst, uint64(v)) }

// length writes the length of a list or of bytes.
func (e *fetchEncoder) length(n int) {
	if e.flexible {
		e.dst = binary.AppendUvarint(e.dst, uint64(n)+1)
	} else {
		e.i32(int32(n))
	}
}

// null writes a list that is not there.
func (e *fetchEncoder) null() {
	if e.flexible {
		e.dst = append(e.dst, 0)
	} else {
		e.i32(-1)
	}
}

// text writes a string, whose length has two bytes in requests that are not flexible.
func (e *fetchEncoder) text(s string) {
	if e.flexible {
		e.length(len(s))
	} else {
		e.i16(int16(len(s)))
	}
	e.dst = append(e.dst, s...)
}

// noTags writes that there are none.
func (e *fetchEncoder) noTags() {
	if e.flexible {
		e.dst = append(e.dst, 0)
	}
}
