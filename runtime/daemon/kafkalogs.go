package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tierd/tierd/runtime/kafka"
	"github.com/tierd/tierd/runtime/read"
	"github.com/tierd/tierd/runtime/tier"
)

// kafkaLogs are the daemon's logs as the Kafka endpoint reads them. Of other layouts it shows none.
type kafkaLogs struct{ r *read.Reader }

var _ kafka.Logs = kafkaLogs{}

// List implements kafka.Logs.
func (l kafkaLogs) List() []kafka.Log {
	var out []kafka.Log
	for _, id := range l.r.Logs() {
		if x, ok := l.r.Log(id); ok && x.Layout == tier.LayoutKafka {
			out = append(out, kafka.Log{ID: id, TopicID: x.Incarnation})
		}
	}
	return out
}

// Bounds implements kafka.Logs.
func (l kafkaLogs) Bounds(id tier.LogID) (tier.Range, bool) {
	x, ok := l.r.Log(id)
	return tier.Range{Base: x.Start, Next: x.End}, ok && x.Layout == tier.LayoutKafka
}

// Stable implements kafka.Logs.
func (l kafkaLogs) Stable(ctx context.Context, id tier.LogID) (tier.Offset, error) {
	o, err := l.r.LastStable(ctx, id)
	return o, inKafka(err)
}

// Read implements kafka.Logs.
func (l kafkaLogs) Read(ctx context.Context, id tier.LogID, from tier.Offset, bytesMax int) (
	kafka.Chunk, error) {
	c, err := l.r.Read(ctx, id, from, int64(bytesMax))
	return kafka.Chunk{Batches: c.Batches, Next: c.Next}, inKafka(err)
}

// ForTime implements kafka.Logs.
func (l kafkaLogs) ForTime(ctx context.Context, id tier.LogID, ms int64) (tier.Offset, int64, bool,
	error) {
	o, at, ok, err := l.r.ForTime(ctx, id, ms)
	return o, at, ok, inKafka(err)
}

// Epochs implements kafka.Logs.
func (l kafkaLogs) Epochs(id tier.LogID) ([]tier.EpochStart, error) {
	list, err := l.r.Epochs(id)
	return list, inKafka(err)
}

// Aborted implements kafka.Logs.
func (l kafkaLogs) Aborted(ctx context.Context, id tier.LogID, r tier.Range) ([]kafka.Aborted,
	error) {
	list, err := l.r.Aborted(ctx, id, r.Base, r.Next)
	out := make([]kafka.Aborted, len(list))
	for i, a := range list {
		out[i] = kafka.Aborted{ProducerID: a.ProducerID, First: a.First}
	}
	return out, inKafka(err)
}

// inKafka says in the endpoint's words what a reader says in its own.
func inKafka(err error) error {
	var out *read.OutOfRange
	switch {
	case errors.As(err, &out):
		return &kafka.OutOfRange{Range: tier.Range{Base: out.Start, Next: out.End}}
	case errors.Is(err, read.ErrGone):
		return fmt.Errorf("%w: %w", kafka.ErrGone, err)
	case errors.Is(err, read.ErrUnknownLog):
		return fmt.Errorf("%w: %w", kafka.ErrUnknownLog, err)
	}
	return err
}

// changes tells whoever waits that a log may have changed. The zero value is ready.
type changes struct {
	mu   sync.Mutex
	next chan struct{}
}

// channel is closed by the next change.
func (c *changes) channel() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}

// tell wakes everybody who waits.
func (c *changes) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}
