package kafka_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tierd/tierd/runtime/kafka"
)

// fill puts one element into every list of a request, and a little into everything else.
func fill(req any) {
	if d, ok := req.(interface{ Default() }); ok {
		d.Default()
	}
	fillValue(reflect.ValueOf(req).Elem())
}

func fillValue(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		switch v.Type().Field(i).Name {
		case "Version", "UnknownTags":
			continue
		}
		fillField(f)
	}
}

func fillField(f reflect.Value) {
	switch f.Kind() {
	case reflect.String:
		f.SetString("orders")
	case reflect.Pointer:
		if f.Type().Elem().Kind() == reflect.String {
			f.Set(reflect.ValueOf(kmsg.StringPtr("orders")))
		}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if f.Int() == 0 {
			f.SetInt(1)
		}
	case reflect.Struct:
		fillValue(f)
	case reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		fillField(f.Index(0))
	}
}

// script is a connection whose client sends something and then listens to the end. It needs no
// network, so that millions of them can be tried.
type script struct {
	in   *bytes.Reader
	sent int
}

func (s *script) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{Port: 9192} }
func (s *script) RemoteAddr() net.Addr             { return s.LocalAddr() }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) Write(p []byte) (int, error) {
	s.sent += len(p)
	return len(p), nil
}

var _ net.Conn = (*script)(nil)

// play serves a client that sends in.
func play(s *kafka.Server, in []byte) (sent int, err error) {
	c := &script{in: bytes.NewReader(in)}
	err = s.ServeConn(context.Background(), c)
	return c.sent, err
}

// frame puts the size before a request.
func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// quick is a server that never waits.
func quick(t testing.TB, login bool) *kafka.Server {
	cfg := config(orders(t))
	cfg.Observe = func(kafka.Request) {}
	cfg.Wait = func(context.Context, time.Duration, <-chan struct{}) error { return io.EOF }
	if login {
		cfg.Authenticate = func(user, password string) bool { return user == password }
	}
	return kafka.New(cfg)
}

// FuzzConn sends anything to a server, with and without a login. It must neither panic nor send
// more than it can have made of a small log.
func FuzzConn(f *testing.F) {
	for _, key := range []int16{0, 1, 2, 3, 10, 17, 18, 23, 32, 36, 60} {
		for version := int16(0); version <= kmsg.RequestForKey(key).MaxVersion(); version += 3 {
			req := example(key)
			req.SetVersion(version)
			f.Add(formatter.AppendRequest(nil, req, 1))
		}
	}
	f.Add(frame([]byte("GET / HTTP/1.1\r\n\r\n")))
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	open, closed := quick(f, false), quick(f, true)
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, s := range []*kafka.Server{open, closed} {
			if sent, _ := play(s, in); sent > 1<<20+1000*len(in) {
				t.Fatalf("%d bytes sent for %d", sent, len(in))
			}
		}
	})
}

// FuzzRequest sends a body of any kind and version behind a header that is right: it goes deeper
// than FuzzConn.
func FuzzRequest(f *testing.F) {
	for key := range int16(75) {
		if kmsg.RequestForKey(key) == nil {
			continue
		}
		req := example(key)
		for version := int16(0); version <= req.MaxVersion(); version++ {
			req.SetVersion(version)
			f.Add(key, version, req.AppendTo(nil))
		}
	}
	s := quick(f, false)
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		head := binary.BigEndian.AppendUint16(nil, uint16(key))
		head = binary.BigEndian.AppendUint16(head, uint16(version))
		head = append(head, 0, 0, 0, 1, 0xff, 0xff) // no client id
		if req := kmsg.RequestForKey(key); req != nil {
			if req.SetVersion(version); req.IsFlexible() {
				head = append(head, 0)
			}
		}
		in := frame(append(head, body...))
		if sent, _ := play(s, in); sent > 1<<20+1000*len(in) {
			t.Fatalf("%d bytes sent for %d", sent, len(in))
		}
	})
}

// FuzzEncodeFetch compares what goes over the wire with what kmsg makes of the same response.
func FuzzEncodeFetch(f *testing.F) {
	f.Add(int16(4), int32(1), int64(2), 10, 3, true)
	f.Add(int16(18), int32(-1), int64(1)<<40, 9000, 0, false)
	f.Fuzz(func(t *testing.T, version int16, n int32, o int64, size, aborted int, diverging bool) {
		resp := kmsg.NewPtrFetchResponse()
		resp.Version = 4 + version&0x7fff%15
		resp.ThrottleMillis, resp.SessionID = n, n
		var records [][][][]byte
		for i := range 1 + size&3 {
			records = append(records, nil)
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID[3] = "orders", byte(i)
			for range i {
				p := kmsg.NewFetchResponseTopicPartition()
				p.Partition, p.ErrorCode, p.HighWatermark = n, int16(n), o
				p.LastStableOffset, p.LogStartOffset, p.PreferredReadReplica = o+1, o+2, n
				p.RecordBatches = bytes.Repeat([]byte{byte(n)}, size&0x3fff)
				at := len(p.RecordBatches) / (1 + aborted&3)
				records[i] = append(records[i], [][]byte{p.RecordBatches[:at], p.RecordBatches[at:]})
				for range aborted & 7 {
					a := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
					a.ProducerID, a.FirstOffset = o, o+5
					p.AbortedTransactions = append(p.AbortedTransactions, a)
				}
				if diverging {
					p.DivergingEpoch.Epoch, p.DivergingEpoch.EndOffset = n, o
				}
				topic.Partitions = append(topic.Partitions, p)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		got := bytes.Join(kafka.EncodeFetch([]byte("head"), resp, records), nil)
		if want := resp.AppendTo([]byte("head")); !bytes.Equal(got, want) {
			t.Fatalf("v%d: %d bytes, want %d\n% x\n% x", resp.Version, len(got), len(want), got,
				want)
		}
	})
}
