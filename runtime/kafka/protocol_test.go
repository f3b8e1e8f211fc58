package kafka_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tierd/tierd/runtime/kafka"
	"github.com/tierd/tierd/runtime/kafka/kafkatest"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

// wire is a client that sends what it is told.
type wire struct {
	t testing.TB
	net.Conn
}

func dial(t testing.TB, e *endpoint) *wire {
	t.Helper()
	c, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &wire{t, c}
}

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("test"))

// ask sends a request of the version and reads the response to it.
func ask[R kmsg.Response](w *wire, version int16, req kmsg.Request) R {
	w.t.Helper()
	req.SetVersion(version)
	if _, err := w.Write(formatter.AppendRequest(nil, req, 7)); err != nil {
		w.t.Fatal(err)
	}
	resp := req.ResponseKind()
	body := w.frame()
	if id := binary.BigEndian.Uint32(body); id != 7 {
		w.t.Fatalf("correlation id %d, want 7", id)
	}
	body = body[4:]
	if resp.IsFlexible() && resp.Key() != 18 {
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		w.t.Fatalf("%s v%d: %v", kmsg.NameForKey(req.Key()), version, err)
	}
	return resp.(R)
}

// frame reads one response.
func (w *wire) frame() []byte {
	w.t.Helper()
	var size [4]byte
	if _, err := io.ReadFull(w, size[:]); err != nil {
		w.t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(w, body); err != nil {
		w.t.Fatal(err)
	}
	return body
}

// ended waits for the server to end the connection.
func (w *wire) ended() {
	w.t.Helper()
	if n, err := io.Copy(io.Discard, w); n > 0 || errors.Is(err, context.DeadlineExceeded) {
		w.t.Errorf("%d bytes came, then %v; want the end", n, err)
	}
}

// orders is a topic of three batches: offsets 0 to 9, 10 to 19 and 20 to 29.
func orders(t testing.TB) *memLogs {
	t.Helper()
	m := newMemLogs()
	m.change(tier.LogID{Table: "orders", Name: "0"}, func(l *memLog) {
		l.topicID = "TPLl2WaESZiUgUX4yppzog"
		for i := range tier.Offset(3) {
			l.add(t, kbatchtest.V2(nil, kbatchtest.Spec{Base: 10 * i, Last: 10*i + 9, Body: 100}))
		}
	})
	return m
}

var ordersLog = tier.LogID{Table: "orders", Name: "0"}

// from is a request for one partition of orders.
func from(offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = 1 << 20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = "orders", [16]byte{0x4c, 0xf2, 0xe5, 0xd9, 0x66, 0x84, 0x49, 0x98, 0x94,
		0x81, 0x45, 0xf8, 0xca, 0x9a, 0x73, 0xa2}
	p := kmsg.NewFetchRequestTopicPartition()
	p.FetchOffset, p.PartitionMaxBytes = offset, 1<<20
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func only(t testing.TB, resp *kmsg.FetchResponse) *kmsg.FetchResponseTopicPartition {
	t.Helper()
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		t.Fatalf("%+v is not one partition", resp)
	}
	return &resp.Topics[0].Partitions[0]
}

// TestFetchVersions asks for the same in every version that is listed.
func TestFetchVersions(t *testing.T) {
	t.Parallel()
	e := start(t, config(orders(t)))
	w := dial(t, e)
	for version := int16(4); version <= 18; version++ {
		p := only(t, ask[*kmsg.FetchResponse](w, version, from(10)))
		if p.ErrorCode != 0 || len(p.RecordBatches) != 2*161 || p.HighWatermark != 30 ||
			binary.BigEndian.Uint64(p.RecordBatches) != 10 {
			t.Errorf("v%d: %+v", version, p)
		}
	}
}

func TestFetchBounds(t *testing.T) {
	t.Parallel()
	logs := orders(t)
	logs.change(ordersLog, func(l *memLog) { l.bounds.Base = 5 })
	e := start(t, config(logs))
	w := dial(t, e)
	const size = 161
	for _, c := range []struct {
		name   string
		change func(req *kmsg.FetchRequest)
		code   *kerr.Error
		bytes  int
	}{
		{"all", func(*kmsg.FetchRequest) {}, nil, 3 * size},
		{"one batch at a time", func(r *kmsg.FetchRequest) { r.MaxBytes = 1 }, nil, size},
		{"none at all is one", func(r *kmsg.FetchRequest) { r.MaxBytes = 0 }, nil, size},
		{"negative is none", func(r *kmsg.FetchRequest) { r.MaxBytes = -5 }, nil, size},
		{"of the partition", func(r *kmsg.FetchRequest) {
			r.Topics[0].Partitions[0].PartitionMaxBytes = 2*size + 1
		}, nil, 2 * size},
		{"at the end", func(r *kmsg.FetchRequest) { r.Topics[0].Partitions[0].FetchOffset = 30 },
			nil, 0},
		{"beyond the end", func(r *kmsg.FetchRequest) {
			r.Topics[0].Partitions[0].FetchOffset = 31
		}, kerr.OffsetOutOfRange, 0},
		{"far beyond", func(r *kmsg.FetchRequest) {
			r.Topics[0].Partitions[0].FetchOffset = math.MaxInt64
		}, kerr.OffsetOutOfRange, 0},
		{"below the start", func(r *kmsg.FetchRequest) {
			r.Topics[0].Partitions[0].FetchOffset = 4
		}, kerr.OffsetOutOfRange, 0},
		{"negative", func(r *kmsg.FetchRequest) {
			r.Topics[0].Partitions[0].FetchOffset = math.MinInt64
		}, kerr.OffsetOutOfRange, 0},
		{"unknown topic", func(r *kmsg.FetchRequest) { r.Topics[0].Topic = "nothing" },
			kerr.UnknownTopicOrPartition, 0},
		{"unknown partition", func(r *kmsg.FetchRequest) {
			r.Topics[0].Partitions[0].Partition = -1
		}, kerr.UnknownTopicOrPartition, 0},
	} {
		req := from(5)
		c.change(req)
		p := only(t, ask[*kmsg.FetchResponse](w, 12, req))
		if code := kerr.TypedErrorForCode(p.ErrorCode); code != c.code ||
			len(p.RecordBatches) != c.bytes {
			t.Errorf("%s: %v and %d bytes, want %v and %d", c.name, code, len(p.RecordBatches),
				c.code, c.bytes)
		}
	}
	req := from(5)
	req.Topics[0].TopicID[0]++
	if p := only(t, ask[*kmsg.FetchResponse](w, 13, req)); p.ErrorCode != kerr.UnknownTopicID.Code {
		t.Errorf("unknown topic id: code %d", p.ErrorCode)
	}
}

// TestFetchFillsInOrder asks for more partitions than there is room for: they are answered in
// order, and what does not fit is left for the next request.
func TestFetchFillsInOrder(t *testing.T) {
	t.Parallel()
	e := start(t, config(orders(t)))
	w := dial(t, e)
	req := from(0)
	p := req.Topics[0].Partitions[0]
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, p, p)
	req.MaxBytes = 3*161 + 200
	var sizes []int
	for _, p := range ask[*kmsg.FetchResponse](w, 12, req).Topics[0].Partitions {
		sizes = append(sizes, len(p.RecordBatches))
	}
	if diff := cmp.Diff([]int{3 * 161, 161, 0}, sizes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFetchErrors is about what goes wrong on this side: the client gets a code that makes it try
// again, and the operator the reason.
func TestFetchErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want *kerr.Error
		told bool
	}{
		{kafka.ErrGone, kerr.OffsetOutOfRange, false},
		{fmt.Errorf("get x: %w", tier.ErrDamaged), kerr.CorruptMessage, true},
		{fmt.Errorf("get x: %w", context.DeadlineExceeded), kerr.RequestTimedOut, true},
		{errors.New("the store is on fire"), kerr.KafkaStorageError, true},
	} {
		logs := orders(t)
		logs.change(ordersLog, func(l *memLog) { l.err = c.err })
		e := start(t, config(logs))
		w := dial(t, e)
		req := from(0)
		req.MaxWaitMillis = 60000 // an error does not wait
		p := only(t, ask[*kmsg.FetchResponse](w, 12, req))
		if code := kerr.TypedErrorForCode(p.ErrorCode); code != c.want || len(p.RecordBatches) > 0 {
			t.Errorf("%v: %v, want %v", c.err, code, c.want)
		}
		ask[*kmsg.ApiVersionsResponse](w, 0, kmsg.NewPtrApiVersionsRequest())
		r := e.requests()[0]
		if r.Code != c.want.Message || (r.Err != nil) != c.told ||
			c.told && !strings.Contains(r.Err.Error(), "orders/0: ") {
			t.Errorf("%v: seen as %+v", c.err, r)
		}
	}
}

// TestFetchWaits lets a request wait for records, and records come.
func TestFetchWaits(t *testing.T) {
	t.Parallel()
	logs := orders(t)
	cfg := config(logs)
	waiting := make(chan struct{}, 10)
	cfg.Wait = func(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
		waiting <- struct{}{}
		return wait(ctx, d, changed)
	}
	e := start(t, cfg)
	w := dial(t, e)
	req := from(30)
	req.MaxWaitMillis, req.MinBytes = 20000, 200
	req.SetVersion(12)
	if _, err := w.Write(formatter.AppendRequest(nil, req, 7)); err != nil {
		t.Fatal(err)
	}
	for i := range tier.Offset(2) { // the first is less than MinBytes
		<-waiting
		logs.change(ordersLog, func(l *memLog) {
			l.add(t, kbatchtest.V2(nil, kbatchtest.Spec{Base: 30 + i, Last: 30 + i, Body: 100}))
		})
	}
	if body := w.frame(); len(body) < 2*161 {
		t.Errorf("an answer of %d bytes", len(body))
	}
	// Nothing comes: the wait ends.
	req = from(32)
	req.MaxWaitMillis, req.MinBytes = 1, 1
	if p := only(t, ask[*kmsg.FetchResponse](w, 12, req)); len(p.RecordBatches) != 0 ||
		p.ErrorCode != 0 {
		t.Errorf("%+v", p)
	}
}

// TestReadCommitted stops at the last stable offset, and names what was aborted.
func TestReadCommitted(t *testing.T) {
	t.Parallel()
	logs := orders(t)
	logs.change(ordersLog, func(l *memLog) {
		l.stable = 20
		l.aborted = []abortedRange{{kafka.Aborted{ProducerID: 1, First: 2}, 8},
			{kafka.Aborted{ProducerID: 2, First: 15}, 18},
			{kafka.Aborted{ProducerID: 3, First: 25}, 29}}
	})
	e := start(t, config(logs))
	w := dial(t, e)
	req := from(10)
	req.IsolationLevel = 1
	p := only(t, ask[*kmsg.FetchResponse](w, 12, req))
	if len(p.RecordBatches) != 161 || p.LastStableOffset != 20 || len(p.AbortedTransactions) != 1 ||
		p.AbortedTransactions[0].ProducerID != 2 {
		t.Errorf("%+v", p)
	}
	logs.change(ordersLog, func(l *memLog) { l.abortedErr = tier.ErrVanished })
	p = only(t, ask[*kmsg.FetchResponse](w, 12, req))
	if p.ErrorCode != kerr.KafkaStorageError.Code || len(p.RecordBatches) != 0 {
		t.Errorf("where aborted transactions are not known: code %d, %d bytes", p.ErrorCode,
			len(p.RecordBatches))
	}
	req.Topics[0].Partitions[0].FetchOffset = 20
	if p = only(t, ask[*kmsg.FetchResponse](w, 12, req)); len(p.RecordBatches) != 0 ||
		p.HighWatermark != 30 {
		t.Errorf("beyond the last stable offset: %+v", p)
	}
	list := kmsg.NewPtrListOffsetsRequest()
	list.IsolationLevel = 1
	if o := offsetAt(w, 5, list, -1); o.Offset != 20 {
		t.Errorf("latest is %+v, want the last stable offset 20", o)
	}
}

// TestHoles lets a reader pass over offsets that nobody has.
func TestHoles(t *testing.T) {
	t.Parallel()
	logs := newMemLogs()
	logs.change(ordersLog, func(l *memLog) {
		l.topicID = "TPLl2WaESZiUgUX4yppzog"
		l.add(t, kbatchtest.V2(nil, kbatchtest.Spec{Base: 0, Last: 9}))
		l.add(t, kbatchtest.V2(nil, kbatchtest.Spec{Base: 50, Last: 59}))
		l.holes = []tier.Range{{Base: 10, Next: 30}, {Base: 30, Next: 50}, {Base: 60, Next: 80}}
		l.bounds.Next, l.stable = 80, 80
	})
	e := start(t, config(logs))
	w := dial(t, e)
	p := only(t, ask[*kmsg.FetchResponse](w, 12, from(10)))
	if len(p.RecordBatches) != 2*61 || binary.BigEndian.Uint64(p.RecordBatches) != 50 ||
		binary.BigEndian.Uint64(p.RecordBatches[61:]) != 60 {
		t.Errorf("within a hole: %d bytes, want the batch at 50 and the way to the end",
			len(p.RecordBatches))
	}
	// At the end there is no batch to go on with: one without records says where the hole ends.
	p = only(t, ask[*kmsg.FetchResponse](w, 12, from(65)))
	got := records(p.RecordBatches)
	base := binary.BigEndian.Uint64(p.RecordBatches)
	last := base + uint64(binary.BigEndian.Uint32(p.RecordBatches[23:]))
	if len(p.RecordBatches) != 61 || len(got) != 0 || base != 65 || last != 79 {
		t.Errorf("at the last hole: %d bytes for %d to %d, with %d records",
			len(p.RecordBatches), base, last, len(got))
	}
}

// TestZstdForOldClients: they could not read it (KIP-110).
func TestZstdForOldClients(t *testing.T) {
	t.Parallel()
	logs := newMemLogs()
	logs.change(ordersLog, func(l *memLog) {
		l.add(t, kbatchtest.V2(nil, kbatchtest.Spec{Last: 9, Codec: 4}))
	})
	e := start(t, config(logs))
	w := dial(t, e)
	for version, want := range map[int16]*kerr.Error{9: kerr.UnsupportedCompressionType, 10: nil} {
		p := only(t, ask[*kmsg.FetchResponse](w, version, from(0)))
		if code := kerr.TypedErrorForCode(p.ErrorCode); code != want ||
			(len(p.RecordBatches) == 0) != (want != nil) {
			t.Errorf("v%d: %v and %d bytes", version, code, len(p.RecordBatches))
		}
	}
}

// TestSessions: none is given out, and what asks for one is told so.
func TestSessions(t *testing.T) {
	t.Parallel()
	e := start(t, config(orders(t)))
	w := dial(t, e)
	req := from(0)
	req.SessionEpoch = 0
	if resp := ask[*kmsg.FetchResponse](w, 12, req); resp.SessionID != 0 || resp.ErrorCode != 0 {
		t.Errorf("session %d, code %d", resp.SessionID, resp.ErrorCode)
	}
	req.SessionID, req.SessionEpoch = 5, 3
	if resp := ask[*kmsg.FetchResponse](w, 12, req); resp.ErrorCode !=
		kerr.FetchSessionIDNotFound.Code {
		t.Errorf("code %d", resp.ErrorCode)
	}
	req = from(0)
	req.ReplicaID = 3
	if resp := ask[*kmsg.FetchResponse](w, 12, req); resp.ErrorCode !=
		kerr.ClusterAuthorizationFailed.Code {
		t.Errorf("a follower gets code %d", resp.ErrorCode)
	}
}

// offsetAt asks for one timestamp.
func offsetAt(w *wire, version int16, req *kmsg.ListOffsetsRequest, ms int64) (
	out kmsg.ListOffsetsResponseTopicPartition) {
	w.t.Helper()
	return offsetOf(w, version, req, ordersLog.Table, 0, ms)
}

func offsetOf(w *wire, version int16, req *kmsg.ListOffsetsRequest, topic string, partition int32,
	ms int64) (out kmsg.ListOffsetsResponseTopicPartition) {
	w.t.Helper()
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, ms
	t.Partitions = append(t.Partitions, p)
	req.Topics = []kmsg.ListOffsetsRequestTopic{t}
	resp := ask[*kmsg.ListOffsetsResponse](w, version, req)
	return resp.Topics[0].Partitions[0]
}

// TestListOffsetsAsTheBroker compares lookups with what the broker itself answered.
func TestListOffsetsAsTheBroker(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"v4", "v4-live", "magic1"} {
		logs, fixtures := load(t, set)
		w := dial(t, start(t, config(logs)))
		asked := 0
		for _, p := range fixtures {
			req := kmsg.NewPtrListOffsetsRequest()
			if strings.Contains(p.Topic, "compacted") || p.Topic == "upgraded" {
				continue // brokers miss records there, as testdata/kafka/README.md says
			}
			for _, l := range p.Lookups {
				got := offsetOf(w, 7, req, p.Topic, p.Partition, l.AtOrAfter)
				if got.Offset != l.Offset || got.Timestamp != l.Timestamp || got.ErrorCode != 0 {
					t.Errorf("%s at %d: %+v, want %+v", p.Dir, l.AtOrAfter, got, l)
				}
				asked++
			}
			first := offsetOf(w, 7, req, p.Topic, p.Partition, -2)
			last := offsetOf(w, 7, req, p.Topic, p.Partition, -1)
			if first.Offset != int64(p.LogStart) || last.Offset != int64(p.HighWatermark) {
				t.Errorf("%s: %d to %d, want %d to %d", p.Dir, first.Offset, last.Offset,
					p.LogStart, p.HighWatermark)
			}
			if got := offsetOf(w, 7, req, p.Topic, p.Partition, -3); !cmp.Equal(got.Offset,
				newest(logs, p).Offset) {
				t.Errorf("%s: the largest timestamp is at %+v, want %+v", p.Dir, got,
					newest(logs, p))
			}
		}
		if asked == 0 {
			t.Errorf("%s: nothing was asked", set)
		}
	}
}

// newest finds the first record with the largest timestamp by looking at all of them.
func newest(m *memLogs, p kafkatest.Partition) (out kmsg.ListOffsetsResponseTopicPartition) {
	out = kmsg.NewListOffsetsResponseTopicPartition()
	out.Partition, out.Timestamp, out.Offset = p.Partition, -1, -1
	for _, b := range m.logs[p.ID()].batches {
		for _, r := range records(b.bytes) {
			if ms := kafkatest.Timestamp(r); ms > out.Timestamp && r.Offset >= int64(p.LogStart) {
				out.Timestamp, out.Offset = ms, r.Offset
			}
		}
	}
	return out
}

func TestListOffsetsOddities(t *testing.T) {
	t.Parallel()
	logs := orders(t)
	e := start(t, config(logs))
	w := dial(t, e)
	req := kmsg.NewPtrListOffsetsRequest()
	for _, c := range []struct {
		version int16
		ms      int64
		want    int64
		code    *kerr.Error
	}{
		{8, -4, 0, nil},                      // the local start: all of it can be read
		{7, -4, -1, kerr.UnsupportedVersion}, // unknown before
		{9, -5, -1, nil},                     // of no use here
		{11, -7, -1, kerr.UnsupportedVersion},
		{11, math.MinInt64, -1, kerr.UnsupportedVersion},
		{11, math.MaxInt64, -1, nil},
	} {
		if got := offsetAt(w, c.version, req, c.ms); got.Offset != c.want ||
			kerr.TypedErrorForCode(got.ErrorCode) != c.code || got.LeaderEpoch != -1 {
			t.Errorf("v%d of %d: %+v", c.version, c.ms, got)
		}
	}
	if got := offsetOf(w, 7, req, "nothing", 0, -1); got.ErrorCode !=
		kerr.UnknownTopicOrPartition.Code {
		t.Errorf("unknown: %+v", got)
	}
}

// TestLeaderEpochs asks where epochs end, on the lineage of a real log and on one with gaps.
func TestLeaderEpochs(t *testing.T) {
	t.Parallel()
	logs := orders(t)
	logs.change(ordersLog, func(l *memLog) {
		l.epochs = []tier.EpochStart{{Epoch: 2, Start: 5}, {Epoch: 4, Start: 12}, {Epoch: 7, Start: 20}}
	})
	e := start(t, config(logs))
	w := dial(t, e)
	for _, c := range []struct {
		asked, epoch int32
		end          int64
	}{
		{0, 0, 5}, {2, 2, 12}, {3, 2, 12}, {4, 4, 20}, {6, 4, 20}, {7, 7, 30}, {8, -1, -1},
		{-1, -1, -1},
	} {
		for version := int16(0); version <= 4; version++ {
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
			topic.Topic = "orders"
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.LeaderEpoch = c.asked
			topic.Partitions = append(topic.Partitions, p)
			req.Topics = append(req.Topics, topic)
			resp := ask[*kmsg.OffsetForLeaderEpochResponse](w, version, req)
			got := resp.Topics[0].Partitions[0]
			if got.EndOffset != c.end || version > 0 && got.LeaderEpoch != c.epoch ||
				got.ErrorCode != 0 {
				t.Errorf("v%d of epoch %d: %+v, want %d and %d", version, c.asked, got, c.epoch,
					c.end)
			}
		}
	}
	// A reader that says what it read last is told where that ends.
	req := from(25)
	req.Topics[0].Partitions[0].LastFetchedEpoch = 4
	d := only(t, ask[*kmsg.FetchResponse](w, 12, req))
	if d.DivergingEpoch.Epoch != 4 || d.DivergingEpoch.EndOffset != 20 || len(d.RecordBatches) > 0 {
		t.Errorf("%+v", d)
	}
}

// TestMetadata lists topics with and without ids and gaps.
func TestMetadata(t *testing.T) {
	t.Parallel()
	logs := orders(t)
	for name, id := range map[string]string{"gaps/1": "", "gaps/3": "", "far/2000000000": "",
		"mixed/0": "TPLl2WaESZiUgUX4yppzoA", "mixed/1": "", "odd/name": "", "odd/-1": "",
		"odd/01": ""} {
		log, err := tier.ParseLogID(name)
		if err != nil {
			t.Fatal(err)
		}
		logs.change(log, func(l *memLog) { l.topicID = id })
	}
	e := start(t, config(logs))
	w := dial(t, e)
	for version := int16(0); version <= 13; version++ {
		resp := ask[*kmsg.MetadataResponse](w, version, kmsg.NewPtrMetadataRequest())
		var got []string
		for _, topic := range resp.Topics {
			line := *topic.Topic
			if topic.TopicID != ([16]byte{}) {
				line += "+id"
			}
			for _, p := range topic.Partitions {
				line += fmt.Sprintf(" %d@%d", p.Partition, p.Leader)
			}
			got = append(got, line)
		}
		want := []string{"far 2000000000@1", "gaps 0@-1 1@1 2@-1 3@1", "mixed 0@1 1@1",
			"orders 0@1"}
		if version >= 10 {
			want[3] = "orders+id 0@1"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("v%d (-want +got):\n%s", version, diff)
		}
		host, port, _ := net.SplitHostPort(e.addr)
		if b := resp.Brokers; len(b) != 1 || b[0].Host != host || fmt.Sprint(b[0].Port) != port {
			t.Errorf("v%d: brokers %+v, want %s", version, b, e.addr)
		}
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range []string{"orders", "nothing", "orders", "not/legal"} {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, topic)
	}
	var codes []int16
	for _, topic := range ask[*kmsg.MetadataResponse](w, 12, req).Topics {
		codes = append(codes, topic.ErrorCode)
	}
	if diff := cmp.Diff([]int16{3, 17, 0}, codes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	req.Topics = []kmsg.MetadataRequestTopic{}
	if resp := ask[*kmsg.MetadataResponse](w, 12, req); len(resp.Topics) != 0 {
		t.Errorf("no topic was asked for: %+v", resp.Topics)
	}
}

// TestRefusals asks for everything that is refused, in all versions: the answer decodes and says
// no.
func TestRefusals(t *testing.T) {
	t.Parallel()
	e := start(t, config(orders(t)))
	w := dial(t, e)
	listed := ask[*kmsg.ApiVersionsResponse](w, 4, kmsg.NewPtrApiVersionsRequest())
	read := []int16{1, 2, 3, 17, 18, 23, 32, 36, 60}
	refused := 0
	for _, k := range listed.ApiKeys {
		if slices.Contains(read, k.ApiKey) {
			continue
		}
		refused++
		for version := k.MinVersion; version <= k.MaxVersion; version++ {
			req := example(k.ApiKey)
			req.SetVersion(version)
			ask[kmsg.Response](w, version, req)
		}
	}
	if refused != 29 {
		t.Errorf("%d kinds of request are refused, want 29", refused)
	}
	for _, r := range e.requests()[1:] {
		if !strings.HasSuffix(r.Code, "_AUTHORIZATION_FAILED") {
			t.Errorf("%s v%d is answered with %q", r.API, r.Version, r.Code)
		}
	}
}

// example is a request that asks for something.
func example(key int16) kmsg.Request {
	req := kmsg.RequestForKey(key)
	fill(req)
	return req
}

// TestProduceWithoutAnswer ends the connection, since its sender reads no response.
func TestProduceWithoutAnswer(t *testing.T) {
	t.Parallel()
	e := start(t, config(orders(t)))
	w := dial(t, e)
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(9)
	req.Acks = 0
	if _, err := w.Write(formatter.AppendRequest(nil, req, 7)); err != nil {
		t.Fatal(err)
	}
	w.ended()
}

// stingy gives one batch at a time, and an error from an offset on.
type stingy struct {
	*memLogs
	bad tier.Offset
}

func (s stingy) Read(ctx context.Context, id tier.LogID, from tier.Offset, _ int) (kafka.Chunk,
	error) {
	if from >= s.bad {
		return kafka.Chunk{}, fmt.Errorf("get x: %w", tier.ErrDamaged)
	}
	return s.memLogs.Read(ctx, id, from, 1)
}

// TestFetchReadsOn fills an answer by several reads. What is wrong behind the first of them is told
// by the next answer.
func TestFetchReadsOn(t *testing.T) {
	t.Parallel()
	logs := batches(t, 4, 100<<10)
	cfg := config(logs)
	cfg.Logs = stingy{logs, 30}
	w := dial(t, start(t, cfg))
	for _, c := range []struct {
		most    int32
		batches int
	}{{1 << 20, 3}, {400 << 10, 2}, {200 << 10, 1}} {
		req := from(0)
		req.MaxBytes = c.most
		p := only(t, ask[*kmsg.FetchResponse](w, 12, req))
		if len(p.RecordBatches) != c.batches*100<<10 || p.ErrorCode != 0 {
			t.Errorf("up to %d: %d bytes, code %d, want %d batches", c.most, len(p.RecordBatches),
				p.ErrorCode, c.batches)
		}
	}
	if p := only(t, ask[*kmsg.FetchResponse](w, 12, from(30))); p.ErrorCode !=
		kerr.CorruptMessage.Code {
		t.Errorf("where it is wrong: code %d", p.ErrorCode)
	}
}

// TestAdvertised tells clients to go on where the configuration says.
func TestAdvertised(t *testing.T) {
	t.Parallel()
	cfg := config(orders(t))
	cfg.Advertised = "archive.example.com:9292"
	w := dial(t, start(t, cfg))
	m := ask[*kmsg.MetadataResponse](w, 12, kmsg.NewPtrMetadataRequest())
	c := ask[*kmsg.DescribeClusterResponse](w, 0, kmsg.NewPtrDescribeClusterRequest())
	if b := m.Brokers[0]; b.Host != "archive.example.com" || b.Port != 9292 ||
		m.ControllerID != b.NodeID || *m.ClusterID != "cluster" {
		t.Errorf("%+v", m)
	}
	if b := c.Brokers[0]; b.Host != "archive.example.com" || b.Port != 9292 ||
		c.ControllerID != b.NodeID || c.ClusterID != "cluster" {
		t.Errorf("%+v", c)
	}
}

// TestDescribeConfigs answers that there are none, of what there is.
func TestDescribeConfigs(t *testing.T) {
	t.Parallel()
	w := dial(t, start(t, config(orders(t))))
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, name := range []string{"orders", "nothing"} {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, name
		req.Resources = append(req.Resources, r)
	}
	resp := ask[*kmsg.DescribeConfigsResponse](w, 4, req)
	if len(resp.Resources) != 2 || resp.Resources[0].ErrorCode != 0 ||
		resp.Resources[1].ErrorCode != kerr.UnknownTopicOrPartition.Code {
		t.Errorf("%+v", resp)
	}
}

// TestAnotherBroker: a client that takes this for a broker that it knew is sent back to its
// beginnings.
func TestAnotherBroker(t *testing.T) {
	t.Parallel()
	w := dial(t, start(t, config(orders(t))))
	for _, c := range []struct {
		cluster *string
		node    int32
		want    *kerr.Error
	}{
		{nil, -1, nil},
		{kmsg.StringPtr("cluster"), kafka.NodeID, nil},
		{kmsg.StringPtr("another"), kafka.NodeID, kerr.RebootstrapRequired},
		{kmsg.StringPtr("cluster"), 7, kerr.RebootstrapRequired},
		{nil, kafka.NodeID, kerr.InvalidRequest},
	} {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClusterID, req.NodeID = c.cluster, c.node
		resp := ask[*kmsg.ApiVersionsResponse](w, 5, req)
		if code := kerr.TypedErrorForCode(resp.ErrorCode); code != c.want {
			t.Errorf("node %d: %v, want %v", c.node, code, c.want)
		}
	}
}
