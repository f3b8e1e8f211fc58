package kafka_test

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tierd/tierd/runtime/kafka"
	"github.com/tierd/tierd/runtime/kafka/kafkatest"
	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// fixtures are log directories of real brokers; expected.json in each says what the broker and a
// real consumer say of it.
const fixtures = "../../testdata/kafka"

// batch is one batch of a log in memory.
type batch struct {
	kbatch.Batch
	bytes []byte
}

// memLog is one log in memory.
type memLog struct {
	topicID string
	bounds  tier.Range
	stable  tier.Offset
	batches []batch
	holes   []tier.Range
	epochs  []tier.EpochStart
	aborted []abortedRange
	err     error // of every read
	// abortedErr is of reading aborted transactions alone.
	abortedErr error
}

type abortedRange struct {
	kafka.Aborted
	last tier.Offset
}

// memLogs are logs in memory. They implement kafka.Logs for tests, with the answers that the format
// demands and no cleverness.
type memLogs struct {
	mu      sync.Mutex
	logs    map[tier.LogID]*memLog
	changed chan struct{}
	reads   int
}

var _ kafka.Logs = (*memLogs)(nil)

func newMemLogs() *memLogs {
	return &memLogs{logs: map[tier.LogID]*memLog{}, changed: make(chan struct{})}
}

// change lets f change a log, and wakes who waits for it.
func (m *memLogs) change(id tier.LogID, f func(l *memLog)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.logs[id]
	if l == nil {
		l = &memLog{}
		m.logs[id] = l
	}
	f(l)
	close(m.changed)
	m.changed = make(chan struct{})
}

// add appends batches as they lie in a log file, and lets readers have them.
func (l *memLog) add(t testing.TB, data []byte) {
	t.Helper()
	for pos := int64(0); pos < int64(len(data)); {
		b, err := kbatch.Parse(data[pos:], pos, int64(len(data))-pos)
		if err != nil {
			t.Fatal(err)
		}
		l.batches = append(l.batches, batch{b, data[pos : pos+b.Size]})
		pos += b.Size
		l.bounds.Next = b.Next()
	}
	l.stable = l.bounds.Next
}

// load reads a set of fixtures.
func load(t testing.TB, set string) (*memLogs, []kafkatest.Partition) {
	t.Helper()
	m, want := newMemLogs(), kafkatest.Expected(t, filepath.Join(fixtures, set))
	for _, p := range want {
		l := &memLog{topicID: p.TopicID}
		for _, e := range p.LeaderEpochs {
			l.epochs = append(l.epochs, tier.EpochStart{Epoch: e.Epoch, Start: e.Start})
		}
		dir := filepath.Join(fixtures, set, p.Dir)
		logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(logs)
		for _, name := range logs {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			l.add(t, data)
			// Where there are none, the file is not there.
			index, _ := os.ReadFile(strings.TrimSuffix(name, ".log") + ".txnindex")
			for ; len(index) >= 34; index = index[34:] {
				l.aborted = append(l.aborted, abortedRange{
					kafka.Aborted{ProducerID: int64(binary.BigEndian.Uint64(index[2:])),
						First: tier.Offset(binary.BigEndian.Uint64(index[10:]))},
					tier.Offset(binary.BigEndian.Uint64(index[18:]))})
			}
		}
		l.bounds = tier.Range{Base: p.LogStart, Next: p.HighWatermark}
		l.stable = p.LastStable
		m.logs[p.ID()] = l
	}
	return m, want
}

func (m *memLogs) List() (out []kafka.Log) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, l := range m.logs {
		out = append(out, kafka.Log{ID: id, TopicID: l.topicID})
	}
	return out
}

func (m *memLogs) Bounds(id tier.LogID) (tier.Range, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.logs[id]; l != nil {
		return l.bounds, true
	}
	return tier.Range{}, false
}

func (m *memLogs) log(id tier.LogID) (*memLog, error) {
	m.reads++
	l := m.logs[id]
	if l == nil {
		return nil, kafka.ErrUnknownLog
	}
	return l, l.err
}

func (m *memLogs) Stable(_ context.Context, id tier.LogID) (tier.Offset, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.log(id)
	if err != nil {
		return 0, err
	}
	return l.stable, nil
}

func (m *memLogs) Read(_ context.Context, id tier.LogID, from tier.Offset, bytesMax int) (
	kafka.Chunk, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.log(id)
	if err != nil {
		return kafka.Chunk{}, err
	}
	if from < l.bounds.Base || from > l.bounds.Next {
		return kafka.Chunk{}, &kafka.OutOfRange{Range: l.bounds}
	}
	for _, h := range l.holes {
		if h.Contains(from) {
			return kafka.Chunk{Next: h.Next}, nil
		}
	}
	c := kafka.Chunk{Next: l.bounds.Next}
	for _, b := range l.batches {
		if b.Last < from {
			continue
		}
		if b.Next() > l.bounds.Next || len(c.Batches) > 0 && len(c.Batches)+len(b.bytes) > bytesMax {
			break
		}
		c.Batches, c.Next = append(c.Batches, b.bytes...), b.Next()
	}
	return c, nil
}

func (m *memLogs) ForTime(_ context.Context, id tier.LogID, ms int64) (tier.Offset, int64, bool,
	error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.log(id)
	if err != nil {
		return 0, 0, false, err
	}
	for _, b := range l.batches {
		if b.MaxTimestamp < ms {
			continue
		}
		for _, r := range records(b.bytes) {
			if off := tier.Offset(r.Offset); kafkatest.Timestamp(r) >= ms && l.bounds.Contains(off) {
				return off, kafkatest.Timestamp(r), true, nil
			}
		}
	}
	return 0, 0, false, nil
}

func (m *memLogs) Epochs(id tier.LogID) ([]tier.EpochStart, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.log(id)
	if err != nil {
		return nil, err
	}
	return l.epochs, nil
}

func (m *memLogs) Aborted(_ context.Context, id tier.LogID, r tier.Range) ([]kafka.Aborted, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, err := m.log(id)
	if err == nil {
		err = l.abortedErr
	}
	if err != nil {
		return nil, err
	}
	var out []kafka.Aborted
	for _, a := range l.aborted {
		if a.First < r.Next && a.last >= r.Base {
			out = append(out, a.Aborted)
		}
	}
	return out, nil
}

func (m *memLogs) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// records decodes batches, control records too.
func records(batches []byte) []*kgo.Record {
	p := kmsg.NewFetchResponseTopicPartition()
	p.RecordBatches = batches
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true}, &p,
		kgo.DefaultDecompressor(), nil)
	return got.Records
}

// wait waits by the real clock.
func wait(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-changed:
	case <-timer.C:
	}
	return nil
}

// endpoint is a running server.
type endpoint struct {
	addr   string
	finish func() // ends every connection, and waits for it

	mu   sync.Mutex
	seen []kafka.Request
	errs []error
}

// config is the usual one.
func config(m *memLogs) kafka.Config {
	return kafka.Config{Logs: m, ClusterID: "cluster", Limits: kafka.DefaultLimits(),
		Now: time.Now, Wait: wait, Changed: m.Changed}
}

// start serves until the test ends, and until every connection has ended.
func start(t testing.TB, cfg kafka.Config, wrap ...func(net.Listener) net.Listener) *endpoint {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &endpoint{addr: l.Addr().String()}
	done := make(chan struct{})
	e.finish = sync.OnceFunc(func() {
		cancel()
		_ = l.Close()
		<-done
	})
	t.Cleanup(e.finish)
	for _, w := range wrap {
		l = w(l)
	}
	cfg.Observe = func(r kafka.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.seen = append(e.seen, r)
	}
	s := kafka.New(cfg)
	var conns sync.WaitGroup
	go func() {
		defer close(done)
		defer conns.Wait()
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				if err := s.ServeConn(ctx, nc); err != nil {
					e.mu.Lock()
					e.errs = append(e.errs, err)
					e.mu.Unlock()
				}
			})
		}
	}()
	return e
}

// requests are those seen so far.
func (e *endpoint) requests() []kafka.Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.seen)
}
