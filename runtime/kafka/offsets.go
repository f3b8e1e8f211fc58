package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tierd/tierd/runtime/tier"
)

// The timestamps that are none (source: KIP-79, KIP-734, KIP-405, KIP-1005).
const (
	atLatest        = -1
	atEarliest      = -2
	atMaxTimestamp  = -3
	atEarliestLocal = -4
	atLatestTiered  = -5
)

// readCommitted is the isolation level at which what aborted transactions wrote is left out.
const readCommitted = 1

// codeOf is the code of an error of Logs, and the error itself where this side is at fault.
func codeOf(id tier.LogID, err error) (int16, error) {
	var out *OutOfRange
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &out), errors.Is(err, ErrGone):
		return kerr.OffsetOutOfRange.Code, nil
	case errors.Is(err, errVersion):
		return kerr.UnsupportedVersion.Code, nil
	case errors.Is(err, ErrUnknownLog):
		return kerr.UnknownTopicOrPartition.Code, nil
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return kerr.RequestTimedOut.Code, fmt.Errorf("%v: %w", id, err)
	case errors.Is(err, tier.ErrDamaged):
		return kerr.CorruptMessage.Code, fmt.Errorf("%v: %w", id, err)
	default:
		return kerr.KafkaStorageError.Code, fmt.Errorf("%v: %w", id, err)
	}
}

// first keeps the first error that is none of the client's.
type first struct{ err error }

func (f *first) code(id tier.LogID, err error) int16 {
	code, mine := codeOf(id, err)
	if f.err == nil {
		f.err = mine
	}
	return code
}

// reading gives a context for one read of the store, once there is room for it.
func (c *conn) reading(ctx context.Context) (context.Context, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, c.s.cfg.Limits.Read)
	if err := c.s.reads.Acquire(ctx, 1); err != nil {
		cancel()
		return nil, nil, err
	}
	return ctx, func() {
		c.s.reads.Release(1)
		cancel()
	}, nil
}

func (c *conn) listOffsets(ctx context.Context, h header, req *kmsg.ListOffsetsRequest) (*answer,
	error) {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	var failed first
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		for j := range t.Partitions {
			p := kmsg.NewListOffsetsResponseTopicPartition()
			p.Partition = t.Partitions[j].Partition
			p.Timestamp, p.Offset, p.LeaderEpoch = -1, -1, -1
			id := logID(t.Topic, p.Partition)
			at, ms, err := c.lookUp(ctx, id, h.version, t.Partitions[j].Timestamp,
				req.IsolationLevel == readCommitted)
			if p.ErrorCode = failed.code(id, err); p.ErrorCode == 0 {
				p.Offset, p.Timestamp = int64(at), ms
			}
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	a := c.encode(h, resp, resp.IsFlexible())
	a.seen.Err = failed.err
	return a, nil
}

// errVersion: the timestamp means something in later versions only, or nothing at all.
var errVersion = errors.New("no such timestamp in this version")

// lookUp finds the offset for a timestamp. Where there is none, both are -1.
func (c *conn) lookUp(ctx context.Context, id tier.LogID, version int16, ms int64, committed bool) (
	tier.Offset, int64, error) {
	r, ok := c.s.cfg.Logs.Bounds(id)
	if !ok {
		return 0, 0, ErrUnknownLog
	}
	ctx, done, err := c.reading(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer done()
	end := r.Next
	if committed {
		if end, err = c.s.cfg.Logs.Stable(ctx, id); err != nil {
			return 0, 0, err
		}
		end = max(min(end, r.Next), r.Base)
	}
	switch {
	case ms == atEarliest, ms == atEarliestLocal && version >= 8:
		// What is local and what is remote is no concern of a reader here: all of it can be read.
		return r.Base, -1, nil
	case ms == atLatest:
		return end, -1, nil
	case ms == atMaxTimestamp && version >= 7:
		return c.newest(ctx, id, end)
	case ms == atLatestTiered && version >= 9:
		return -1, -1, nil
	case ms < 0:
		return 0, 0, errVersion
	}
	at, atMS, ok, err := c.s.cfg.Logs.ForTime(ctx, id, ms)
	if err != nil || !ok || at >= end {
		return -1, -1, err
	}
	return at, atMS, nil
}

// newest finds the first record with the largest timestamp, by halving: ForTime answers whether
// there is one at least as large, and gives its own.
func (c *conn) newest(ctx context.Context, id tier.LogID, end tier.Offset) (at tier.Offset,
	ms int64, err error) {
	at, ms = -1, -1
	low, high := int64(0), int64(1)<<62 // the largest is in [low, high), if there is any
	for low < high {
		probe := low + (high-low)/2
		if at < 0 {
			probe = low
		}
		foundAt, foundMS, ok, err := c.s.cfg.Logs.ForTime(ctx, id, probe)
		switch {
		case err != nil:
			return -1, -1, err
		case ok && foundAt < end && foundMS >= probe:
			at, ms = foundAt, foundMS
			low = foundMS + 1
		case at < 0:
			return -1, -1, nil
		default:
			high = probe
		}
	}
	if at < 0 {
		return at, ms, nil
	}
	// What halving met last is a record with that timestamp; ForTime gives the first one of them.
	firstAt, firstMS, ok, err := c.s.cfg.Logs.ForTime(ctx, id, ms)
	if err != nil || !ok || firstMS != ms {
		return at, ms, err
	}
	return firstAt, firstMS, nil
}

// leaderEpochs says where epochs end, so that clients find out whether what they have read is
// still part of the log (KIP-320).
func (c *conn) leaderEpochs(_ context.Context, h header, req *kmsg.OffsetForLeaderEpochRequest) (
	*answer, error) {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	var failed first
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = t.Topic
		for j := range t.Partitions {
			p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			p.Partition = t.Partitions[j].Partition
			p.LeaderEpoch, p.EndOffset = -1, -1
			id := logID(t.Topic, p.Partition)
			epoch, end, err := c.s.epochEnd(id, tier.LeaderEpoch(t.Partitions[j].LeaderEpoch))
			if p.ErrorCode = failed.code(id, err); p.ErrorCode == 0 {
				p.LeaderEpoch, p.EndOffset = int32(epoch), int64(end)
			}
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	a := c.encode(h, resp, resp.IsFlexible())
	a.seen.Err = failed.err
	return a, nil
}

// epochEnd gives the last epoch up to the one that is asked for, and where it ends, as brokers do
// (source: LeaderEpochFileCache.endOffsetFor): -1 and -1 where that is not known.
func (s *Server) epochEnd(id tier.LogID, asked tier.LeaderEpoch) (tier.LeaderEpoch, tier.Offset,
	error) {
	r, ok := s.cfg.Logs.Bounds(id)
	if !ok {
		return 0, 0, ErrUnknownLog
	}
	epochs, err := s.cfg.Logs.Epochs(id)
	switch {
	case err != nil:
		return 0, 0, err
	case len(epochs) == 0, asked < 0, asked > epochs[len(epochs)-1].Epoch:
		return -1, -1, nil
	case asked < epochs[0].Epoch:
		return asked, epochs[0].Start, nil
	}
	epoch, end := epochs[0].Epoch, r.Next
	for _, e := range epochs {
		if e.Epoch > asked {
			end = e.Start
			break
		}
		epoch = e.Epoch
	}
	return epoch, end, nil
}
