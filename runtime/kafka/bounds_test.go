package kafka_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tierd/tierd/runtime/kafka"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
)

// pipe serves one end of a pipe, which holds no bytes: what the client does not take is still the
// server's. What ServeConn returned comes over the channel.
func pipe(t testing.TB, s *kafka.Server) (*wire, <-chan error) {
	t.Helper()
	client, server := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeConn(context.Background(), server) }()
	t.Cleanup(func() { _ = client.Close() })
	if err := client.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &wire{t, client}, ended
}

// hurried is a configuration in which patience soon ends.
func hurried(t testing.TB, logs *memLogs) kafka.Config {
	cfg := config(logs)
	cfg.Observe = func(kafka.Request) {}
	cfg.Limits.Frame, cfg.Limits.Write = 50*time.Millisecond, 50*time.Millisecond
	cfg.Limits.Idle = 50 * time.Millisecond
	return cfg
}

// batches are a log of many of them, of the size in bytes.
func batches(t testing.TB, number, size int) *memLogs {
	t.Helper()
	m := newMemLogs()
	m.change(ordersLog, func(l *memLog) {
		for i := range number {
			s := kbatchtest.Spec{Base: l.bounds.Next, Last: l.bounds.Next + 9, Body: size - 61}
			if i == 0 {
				s.Base, s.Last = 0, 9
			}
			l.add(t, kbatchtest.V2(nil, s))
		}
	})
	return m
}

// TestSlowClients are cut off, each with one error that says why.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		send []byte
		want string // "" is an end without an error
	}{
		{"idle", nil, ""},
		{"half a size", []byte{0, 0}, "no whole request within 50ms"},
		{"half a request", []byte{0, 0, 0, 20, 0, 18, 0}, "3 of the 20 bytes of a request within"},
		{"takes nothing", formatter.AppendRequest(nil, from(0), 1),
			"took 0 bytes within 50ms, less than 65536"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := hurried(t, batches(t, 10, 32<<10))
			if c.send != nil {
				cfg.Limits.Idle = time.Hour // a request that has begun is not idle
			}
			w, ended := pipe(t, kafka.New(cfg))
			if len(c.send) > 20 {
				req := from(0)
				req.SetVersion(12)
				c.send = formatter.AppendRequest(nil, req, 1)
			}
			if _, err := w.Write(c.send); err != nil {
				t.Fatal(err)
			}
			err := <-ended
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestHalfClosed lets a client end its side after a request: the answer still comes.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	e := start(t, config(orders(t)))
	w := dial(t, e)
	req := from(0)
	req.SetVersion(12)
	if _, err := w.Write(formatter.AppendRequest(nil, req, 7)); err != nil {
		t.Fatal(err)
	}
	if err := w.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if body := w.frame(); len(body) < 3*161 {
		t.Errorf("%d bytes", len(body))
	}
	w.ended()
}

// TestBadFrames ends connections whose requests cannot be answered.
func TestBadFrames(t *testing.T) {
	t.Parallel()
	long := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	head := func(key, version int16, rest ...byte) []byte {
		b := binary.BigEndian.AppendUint16(nil, uint16(key))
		b = binary.BigEndian.AppendUint16(b, uint16(version))
		return frame(append(append(b, 0, 0, 0, 1), rest...))
	}
	for _, c := range []struct {
		name string
		send []byte
		want string
	}{
		{"negative", long(1<<32 - 1), "a request of -1 bytes, where 8 to 1114112 are allowed"},
		{"huge", long(1<<31 - 1), "a request of 2147483647 bytes"},
		{"too small", long(7), "a request of 7 bytes"},
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), "the client speaks HTTP"},
		{"TLS", []byte{0x16, 3, 1, 2, 0, 1, 0}, "the client speaks TLS"},
		{"no such kind", head(999, 0, 0xff, 0xff), "kind 999, which does not exist"},
		{"a broker's own", head(4, 0, 0xff, 0xff), "LeaderAndISR, which is not listed"},
		{"old version", head(1, 3, 0xff, 0xff), "version 3 of Fetch, where 4 to 18 are listed"},
		{"new version", head(3, 99, 0xff, 0xff), "version 99 of Metadata, where 0 to 13 are"},
		{"no client id", head(3, 5), "ends within the client id"},
		{"client id too long", head(3, 5, 0x7f, 0xff), "a client id of 32767 bytes, where 0 follow"},
		{"tags", head(3, 12, 0xff, 0xff, 5), "the tags of the header are not well formed"},
		{"body", head(3, 5, 0xff, 0xff, 0, 0, 0, 9), "Metadata v5: the request ends within a field"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := config(orders(t))
			cfg.Observe = func(kafka.Request) {}
			sent, err := play(kafka.New(cfg), c.send)
			if err == nil || !strings.Contains(err.Error(), c.want) || sent > 0 {
				t.Errorf("%v with %d bytes sent, want %q", err, sent, c.want)
			}
		})
	}
}

// TestVersionOfTheFirstRequest: a client that is newer than all that is known here finds out what
// it may say.
func TestVersionOfTheFirstRequest(t *testing.T) {
	t.Parallel()
	w := dial(t, start(t, config(orders(t))))
	req := kmsg.NewPtrApiVersionsRequest()
	req.SetVersion(30)
	if _, err := w.Write(formatter.AppendRequest(nil, req, 7)); err != nil {
		t.Fatal(err)
	}
	var resp kmsg.ApiVersionsResponse
	if err := resp.ReadFrom(w.frame()[4:]); err != nil || resp.ErrorCode !=
		kerr.UnsupportedVersion.Code || len(resp.ApiKeys) < 30 {
		t.Errorf("%+v, %v", resp, err)
	}
}

// TestManySlowClients asks for far more than there is memory for, by 1,000 clients that take
// nothing of it. Each gets some, and all of it together stays within the bounds.
func TestManySlowClients(t *testing.T) {
	t.Parallel()
	const clients = 1000
	cfg := config(batches(t, 200, 16<<10))
	cfg.Observe = func(kafka.Request) {}
	cfg.Limits.FetchesBytesMax = 8 << 20
	s := kafka.New(cfg)
	var total, least int64
	var wires []*wire
	var ends []<-chan error
	for range clients {
		w, ended := pipe(t, s)
		req := from(0)
		req.SetVersion(12)
		if _, err := w.Write(formatter.AppendRequest(nil, req, 1)); err != nil {
			t.Fatal(err)
		}
		var size [4]byte
		if _, err := io.ReadFull(w, size[:]); err != nil {
			t.Fatal(err)
		}
		n := int64(binary.BigEndian.Uint32(size[:]))
		total, least = total+n, min(n, max(least, n))
		if n < 16<<10 {
			t.Fatalf("a client got %d bytes", n)
		}
		wires, ends = append(wires, w), append(ends, ended)
	}
	if most := int64(clients*(64<<10+1<<10) + 8<<20); total > most {
		t.Errorf("%d bytes are under way, more than %d", total, most)
	}
	if got := kafka.Free(s); got < 0 || got > 1<<20 {
		t.Errorf("%d bytes are free of the shared memory, which should be used", got)
	}
	for i, w := range wires {
		_ = w.Close()
		<-ends[i]
	}
	if got := kafka.Free(s); got != 8<<20 {
		t.Errorf("%d bytes are free in the end, want all", got)
	}
}

// TestWaitingHoldsNothing lets a client wait for more than there is: what was read meanwhile is not
// held.
func TestWaitingHoldsNothing(t *testing.T) {
	t.Parallel()
	logs := batches(t, 10, 100<<10)
	cfg := config(logs)
	cfg.Observe = func(kafka.Request) {}
	all, waiting := cfg.Limits.FetchesBytesMax, make(chan struct{}, 1)
	cfg.Wait = func(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
		waiting <- struct{}{}
		return wait(ctx, d, changed)
	}
	s := kafka.New(cfg)
	w, _ := pipe(t, s)
	req := from(0)
	req.SetVersion(12)
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 20000, 2<<20, 4<<20
	req.Topics[0].Partitions[0].PartitionMaxBytes = 4 << 20
	if _, err := w.Write(formatter.AppendRequest(nil, req, 1)); err != nil {
		t.Fatal(err)
	}
	<-waiting
	if got := kafka.Free(s); got != all {
		t.Errorf("%d bytes are held while nothing is sent", all-got)
	}
}

// TestBatchLargerThanItsRoom waits until there is room, and is sent then.
func TestBatchLargerThanItsRoom(t *testing.T) {
	t.Parallel()
	cfg := config(batches(t, 2, 3<<20))
	cfg.Observe = func(kafka.Request) {}
	cfg.Limits.FetchesBytesMax = 4 << 20
	s := kafka.New(cfg)
	req := from(0)
	req.SetVersion(12)
	first, _ := pipe(t, s)
	if _, err := first.Write(formatter.AppendRequest(nil, req, 1)); err != nil {
		t.Fatal(err)
	}
	size := make([]byte, 4)
	if _, err := io.ReadFull(first, size); err != nil {
		t.Fatal(err)
	}
	second, _ := pipe(t, s)
	if p := only(t, ask[*kmsg.FetchResponse](second, 12, from(0))); len(p.RecordBatches) != 0 {
		t.Errorf("%d bytes came without room for them", len(p.RecordBatches))
	}
	if _, err := io.ReadFull(first, make([]byte, binary.BigEndian.Uint32(size))); err != nil {
		t.Fatal(err)
	}
	ask[*kmsg.ApiVersionsResponse](first, 0, kmsg.NewPtrApiVersionsRequest())
	if p := only(t, ask[*kmsg.FetchResponse](second, 12, from(0))); len(p.RecordBatches) != 3<<20 {
		t.Errorf("%d bytes with room for them", len(p.RecordBatches))
	}
}

// TestLargeRequests wait for each other, and go on.
func TestLargeRequests(t *testing.T) {
	t.Parallel()
	cfg := config(orders(t))
	cfg.Limits.RequestsBytesMax = 1 << 20
	e := start(t, cfg)
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for range 5000 {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr("nothing")
		req.Topics = append(req.Topics, topic)
	}
	var wg sync.WaitGroup
	for range 8 {
		w, own := dial(t, e), *req
		wg.Go(func() {
			if got := ask[*kmsg.MetadataResponse](w, 9, &own); len(got.Topics) != 5000 {
				t.Errorf("%d topics", len(got.Topics))
			}
		})
	}
	wg.Wait()
}

// TestStop ends connections that wait, whatever they wait for.
func TestStop(t *testing.T) {
	t.Parallel()
	cfg := config(orders(t))
	waiting := make(chan struct{}, 1)
	cfg.Wait = func(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
		waiting <- struct{}{}
		return wait(ctx, d, changed)
	}
	e := start(t, cfg)
	dial(t, e) // sends nothing
	w := dial(t, e)
	req := from(30)
	req.SetVersion(12)
	req.MaxWaitMillis, req.MinBytes = 1<<30, 1
	if _, err := w.Write(formatter.AppendRequest(nil, req, 7)); err != nil {
		t.Fatal(err)
	}
	<-waiting
	e.finish()
	w.ended()
	if len(e.errs) > 0 {
		t.Errorf("%v", e.errs)
	}
}

// TestPipeline sends several requests at once: they are answered one after the other, in order.
func TestPipeline(t *testing.T) {
	t.Parallel()
	w := dial(t, start(t, config(orders(t))))
	var all []byte
	for i := range int32(5) {
		req := from(int64(10 * (i % 3)))
		req.SetVersion(12)
		all = append(all, formatter.AppendRequest(nil, req, i)...)
	}
	if _, err := w.Write(all); err != nil {
		t.Fatal(err)
	}
	var got []uint32
	for range 5 {
		got = append(got, binary.BigEndian.Uint32(w.frame()))
	}
	if !slices.Equal(got, []uint32{0, 1, 2, 3, 4}) {
		t.Errorf("answers to %v", got)
	}
}

// TestWrongBytes never reach a client: what a reader finds damaged is an error, and its cause is
// told.
func TestWrongBytes(t *testing.T) {
	t.Parallel()
	logs := orders(t)
	logs.change(ordersLog, func(l *memLog) {
		l.err = errors.Join(errors.New("get x: 5 bytes, want 500"), os.ErrDeadlineExceeded)
	})
	e := start(t, config(logs))
	w := dial(t, e)
	p := only(t, ask[*kmsg.FetchResponse](w, 12, from(0)))
	if p.ErrorCode != kerr.KafkaStorageError.Code || !bytes.Equal(p.RecordBatches, []byte{}) {
		t.Errorf("%+v", p)
	}
}
