package kafka

import (
	"context"
	"iter"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
)

// zstdVersion is the first version of Fetch whose clients know zstd (KIP-110).
const zstdVersion = 10

// fetch reads records for a client. It waits until there are enough of them, or for as long as the
// client wants.
func (c *conn) fetch(ctx context.Context, h header, req *kmsg.FetchRequest) (*answer, error) {
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	switch {
	case req.SessionID != 0 && req.SessionEpoch > 0:
		// No session was ever given out.
		resp.ErrorCode = kerr.FetchSessionIDNotFound.Code
		return c.encode(h, resp, resp.IsFlexible()), nil
	case req.ReplicaID >= 0 && h.version < 15, req.ReplicaState.ID >= 0:
		// A follower would go on to take part in the cluster.
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		return c.encode(h, resp, resp.IsFlexible()), nil
	}
	now := c.s.cfg.Now()
	wait := min(time.Duration(max(req.MaxWaitMillis, 0))*time.Millisecond, c.s.cfg.Limits.WaitMax)
	deadline := now.Add(wait)
	for {
		changed := c.s.cfg.Changed()
		g := c.gather(ctx, h, req, resp)
		left := deadline.Sub(c.s.cfg.Now())
		if g.urgent || g.bytes >= int64(req.MinBytes) || left <= 0 {
			a := &answer{release: g.release, seen: c.seen(h, g.code)}
			a.pieces = encodeFetch(responseHeader(nil, h, resp.IsFlexible()), resp, g.records)
			a.seen.Records, a.seen.Err = g.bytes, g.failed.err
			return a, nil
		}
		g.release()
		if err := c.s.cfg.Wait(ctx, left, changed); err != nil {
			return nil, errClientLeft
		}
	}
}

// gathered is what one pass over the partitions of a request found.
type gathered struct {
	c     *conn
	want  int64 // bytes that the answer may have
	holds int64 // bytes taken from the pool
	bytes int64 // of records
	// records are what is sent, in pieces: by topic and partition, as in the request.
	records [][][][]byte
	code    int16 // the first one that is not 0
	failed  first
	urgent  bool // there is something that the client should know at once
	version int16
	commit  bool // read committed
}

// release gives the memory back.
func (g *gathered) release() {
	g.c.s.fetches.give(g.holds)
	g.holds = 0
}

// gather reads what there is for each partition, in the order of the request, until the answer is
// full (KIP-74).
func (c *conn) gather(ctx context.Context, h header, req *kmsg.FetchRequest,
	resp *kmsg.FetchResponse) *gathered {
	limits := &c.s.cfg.Limits
	g := &gathered{c: c, version: h.version, commit: req.IsolationLevel == readCommitted}
	g.want, g.holds = c.s.fetches.take(min(int64(max(req.MaxBytes, 0)), int64(limits.FetchBytesMax)))
	resp.Topics = make([]kmsg.FetchResponseTopic, 0, len(req.Topics))
	g.records = make([][][][]byte, len(req.Topics))
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewFetchResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		name, code := t.Topic, int16(0)
		if h.version >= 13 {
			if known := c.s.topics.get().byID[t.TopicID]; known != nil {
				name = known.name
			} else {
				code = kerr.UnknownTopicID.Code
			}
		}
		out.Partitions = make([]kmsg.FetchResponseTopicPartition, 0, len(t.Partitions))
		g.records[i] = make([][][]byte, len(t.Partitions))
		for j := range t.Partitions {
			p := kmsg.NewFetchResponseTopicPartition()
			p.Partition, p.HighWatermark, p.ErrorCode = t.Partitions[j].Partition, -1, code
			if code == 0 {
				id := logID(name, p.Partition)
				pieces, err := g.partition(ctx, id, &t.Partitions[j], &p)
				if g.records[i][j] = pieces; err != nil {
					p = kmsg.NewFetchResponseTopicPartition()
					p.Partition, p.HighWatermark = t.Partitions[j].Partition, -1
					p.ErrorCode = g.failed.code(id, err)
				}
			}
			if p.ErrorCode != 0 {
				g.urgent = true
				if g.code == 0 {
					g.code = p.ErrorCode
				}
			}
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return g
}

// partition fills in one partition, and gives its records.
func (g *gathered) partition(ctx context.Context, id tier.LogID,
	req *kmsg.FetchRequestTopicPartition, out *kmsg.FetchResponseTopicPartition) ([][]byte, error) {
	r, ok := g.c.s.cfg.Logs.Bounds(id)
	if !ok {
		return nil, ErrUnknownLog
	}
	if req.LastFetchedEpoch >= 0 {
		epoch, end, err := g.c.s.epochEnd(id, tier.LeaderEpoch(req.LastFetchedEpoch))
		if err != nil {
			return nil, err
		}
		if end < tier.Offset(req.FetchOffset) || epoch != tier.LeaderEpoch(req.LastFetchedEpoch) {
			out.DivergingEpoch.Epoch, out.DivergingEpoch.EndOffset = int32(epoch), int64(end)
			out.HighWatermark, out.LogStartOffset = int64(r.Next), int64(r.Base)
			g.urgent = true
			return nil, nil
		}
	}
	from := tier.Offset(req.FetchOffset)
	if from < r.Base || from > r.Next {
		return nil, g.outside(ctx, id, from)
	}
	out.HighWatermark, out.LogStartOffset = int64(r.Next), int64(r.Base)
	limit := r.Next
	if g.commit {
		stable, err := g.stable(ctx, id, r)
		if err != nil {
			return nil, err
		}
		out.LastStableOffset, limit = int64(stable), stable
		out.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
	}
	room := min(g.want-g.bytes, int64(max(req.PartitionMaxBytes, 0)))
	if g.bytes > 0 && room <= 0 || from >= limit {
		return nil, nil
	}
	return g.fill(ctx, id, tier.Range{Base: from, Next: limit}, room, out)
}

// outside says why an offset cannot be read that was not within the bounds: the log may have it
// again once its source can be read. It is nil where the log has it by now: the client asks again.
func (g *gathered) outside(ctx context.Context, id tier.LogID, from tier.Offset) error {
	ctx, done, err := g.c.reading(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = g.c.s.cfg.Logs.Read(ctx, id, from, 1)
	return err
}

// moreBytes is how much room there must be left to read on after a first read.
const moreBytes = 256 << 10

// fill reads from the beginning of r until there is no more room, or no more to read.
func (g *gathered) fill(ctx context.Context, id tier.LogID, r tier.Range, room int64,
	out *kmsg.FetchResponseTopicPartition) (pieces [][]byte, err error) {
	next, sum := r.Base, int64(0)
	for next < r.Next && (len(pieces) == 0 || room-sum >= moreBytes) {
		chunk, err := g.read(ctx, id, next, r.Next, max(room-sum, 1))
		if err != nil && len(pieces) == 0 {
			return nil, err
		}
		n := int64(len(chunk.Batches))
		if err != nil || n == 0 || !g.count(n, room-sum) {
			break // what was wrong is told when its turn comes
		}
		if g.version < zstdVersion && hasZstd(chunk.Batches) {
			g.bytes -= n
			if len(pieces) == 0 {
				out.ErrorCode = kerr.UnsupportedCompressionType.Code
			}
			break
		}
		pieces, sum, next = append(pieces, chunk.Batches), sum+n, chunk.Next
	}
	if g.commit && len(pieces) > 0 {
		if err := g.aborted(ctx, id, tier.Range{Base: r.Base, Next: next}, out); err != nil {
			g.bytes -= sum
			return nil, err // without it the records of aborted transactions would pass for others
		}
	}
	return pieces, nil
}

// stable gives the last stable offset, within what can be read.
func (g *gathered) stable(ctx context.Context, id tier.LogID, r tier.Range) (tier.Offset, error) {
	ctx, done, err := g.c.reading(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	stable, err := g.c.s.cfg.Logs.Stable(ctx, id)
	return max(min(stable, r.Next), r.Base), err
}

// read gives what begins below limit. Where that is nothing but a hole, it gives an empty batch
// that takes the client over it.
func (g *gathered) read(ctx context.Context, id tier.LogID, from, limit tier.Offset, room int64) (
	Chunk, error) {
	ctx, done, err := g.c.reading(ctx)
	if err != nil {
		return Chunk{}, err
	}
	defer done()
	chunk := Chunk{Next: from}
	for len(chunk.Batches) == 0 && chunk.Next < limit {
		at := chunk.Next
		if chunk, err = g.c.s.cfg.Logs.Read(ctx, id, at, int(room)); err != nil {
			return Chunk{}, err
		}
		if chunk.Next <= at {
			break
		}
	}
	if len(chunk.Batches) == 0 && chunk.Next > from {
		chunk.Next = min(chunk.Next, limit, from+1<<30)
		chunk.Batches = emptyBatch(from, chunk.Next)
		return chunk, nil
	}
	if chunk.Next > limit {
		chunk = cut(chunk, limit)
	}
	return chunk, nil
}

// cut leaves out the batches that do not begin below limit.
func cut(chunk Chunk, limit tier.Offset) Chunk {
	end := int64(0)
	for b := range batches(chunk.Batches) {
		if b.Base >= limit {
			break
		}
		end = b.Position + b.Size
	}
	return Chunk{Batches: chunk.Batches[:end], Next: limit}
}

// batches goes through the headers of whole batches.
func batches(p []byte) iter.Seq[kbatch.Batch] {
	return func(yield func(kbatch.Batch) bool) {
		for pos, size := int64(0), int64(len(p)); pos < size; {
			b, err := kbatch.Parse(p[pos:], pos, size-pos)
			if err != nil || !yield(b) {
				return
			}
			pos += b.Size
		}
	}
}

// count counts n bytes of records, of which the answer had room for some. A single batch can be
// larger: the first one of an answer is sent all the same, if all answers together have room.
func (g *gathered) count(n, room int64) bool {
	if n > room {
		if g.bytes > 0 {
			return false
		}
		if extra := n - max(g.want, 0); extra > 0 && n > connBytes {
			taken, ok := g.c.s.fetches.more(extra, g.c.s.cfg.Limits.FetchesBytesMax)
			if !ok {
				return false
			}
			g.holds += taken
		}
	}
	g.bytes += n
	return true
}

// aborted lists the aborted transactions of what is sent.
func (g *gathered) aborted(ctx context.Context, id tier.LogID, r tier.Range,
	out *kmsg.FetchResponseTopicPartition) error {
	ctx, done, err := g.c.reading(ctx)
	if err != nil {
		return err
	}
	defer done()
	list, err := g.c.s.cfg.Logs.Aborted(ctx, id, r)
	for _, x := range list {
		a := kmsg.NewFetchResponseTopicPartitionAbortedTransaction()
		a.ProducerID, a.FirstOffset = x.ProducerID, int64(x.First)
		out.AbortedTransactions = append(out.AbortedTransactions, a)
	}
	return err
}

// hasZstd reports whether a batch is compressed by zstd.
func hasZstd(p []byte) bool {
	for b := range batches(p) {
		if b.Codec == kbatch.Zstd {
			return true
		}
	}
	return false
}
