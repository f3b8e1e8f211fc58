package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

// broker plays the program that owns a directory of Kafka partitions, and the leaders that come and
// go: it appends batches, rolls segments where it likes, and when a new leader has another tail it
// cuts off its own and fetches that one.
type broker struct {
	w    *World
	logs []*brokerLog
	// silent is set for a broker that keeps no record of leader epochs.
	silent bool
	// ahead is how far the clock of those who produce is ahead.
	ahead time.Duration
}

type brokerLog struct {
	id      tier.LogID
	batches []brokerBatch
	bases   []tier.Offset // of the segments, also of those that tierd deleted
	epoch   tier.LeaderEpoch
	topic   string
	written map[tier.Offset]int // batches that each segment's file has
	// stalled is set while no replica follows: the high watermark hw stays where it is.
	stalled bool
	hw      tier.Offset
}

type brokerBatch struct {
	tier.Range
	epoch tier.LeaderEpoch
	at    tier.Time
	nonce int
}

// batchOffsets is how many offsets a batch has.
const batchOffsets = 5

func newBroker(w *World, silent bool, ids ...tier.LogID) *broker {
	b := &broker{w: w, silent: silent}
	for _, id := range ids {
		b.logs = append(b.logs, &brokerLog{id: id, bases: []tier.Offset{0}, epoch: 1,
			topic: "topic-" + id.Table, written: map[tier.Offset]int{}})
	}
	b.put("meta.properties", "#\nbroker.id=1\nversion=1\n")
	for _, l := range b.logs {
		b.append(l, 1)
	}
	return b
}

// put writes a file of the broker below the source's directory, over whatever has its name.
func (b *broker) put(name, text string) {
	at := path.Join(b.w.source(), name)
	if err := b.w.Disk.Mkdir(path.Dir(at)); err != nil && !errors.Is(err, fs.ErrExist) {
		panic(err)
	}
	if data, err := readFile(b.w.Disk, at); err == nil && string(data) == text {
		return
	}
	if err := b.w.Disk.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	must(b.w.append(at, []byte(text)))
	must(b.w.Disk.Sync(path.Dir(at)))
	must(b.w.Disk.Sync(b.w.source()))
}

func (l *brokerLog) end() tier.Offset {
	if n := len(l.batches); n > 0 {
		return l.batches[n-1].Next
	}
	return 0
}

func (l *brokerLog) active() tier.Offset { return l.bases[len(l.bases)-1] }

// append writes batches of the leader's epoch.
func (b *broker) append(l *brokerLog, batches int) {
	for range batches {
		end := l.end()
		l.batches = append(l.batches, brokerBatch{tier.Range{Base: end, Next: end + batchOffsets},
			l.epoch, b.w.Now.Add(b.ahead), 0})
		b.flush(l)
	}
}

// roll begins a new segment at the end of the log, with a batch in it.
func (b *broker) roll(l *brokerLog) {
	if l.active() < l.end() {
		l.bases = append(l.bases, l.end())
	}
	b.append(l, 1)
}

// lineage is what the batches' epochs come to.
func (l *brokerLog) lineage() (out []tier.EpochStart) {
	for _, x := range l.batches {
		if n := len(out); n == 0 || out[n-1].Epoch != x.epoch {
			out = append(out, tier.EpochStart{Epoch: x.epoch, Start: x.Base})
		}
	}
	return out
}

// elect makes another replica the leader, whose log is this one's up to batch i: from there on it
// has so many batches of the epoch before, where this broker had those of a later leader. Two logs
// never have different batches of one epoch at one offset.
func (b *broker) elect(l *brokerLog, i, foreign int) {
	cut := l.end()
	if i < len(l.batches) {
		cut = l.batches[i].Base
	}
	old := tier.LeaderEpoch(1)
	if i > 0 {
		old = l.batches[i-1].epoch
	}
	if i == 0 || i >= len(l.batches) || l.batches[i].epoch == old {
		foreign = 0
	}
	l.epoch++
	l.batches = slices.Clone(l.batches[:min(i, len(l.batches))])
	for len(l.bases) > 1 && l.active() >= max(cut, 1) {
		base := l.active()
		l.bases = l.bases[:len(l.bases)-1]
		delete(l.written, base)
		_ = b.w.Remove(l.id, base) // it may be gone already
	}
	if b.w.oracle != nil {
		b.w.oracle.cuts(l.id, cut)
	}
	l.written[l.active()] = -1
	b.flush(l)
	for range foreign {
		end := l.end()
		l.batches = append(l.batches, brokerBatch{tier.Range{Base: end, Next: end + batchOffsets}, old,
			b.w.Now, int(l.epoch)})
		b.flush(l)
	}
}

// flush writes the segments that are not on disk as they should be, and the broker's records.
func (b *broker) flush(l *brokerLog) {
	local, err := b.w.Bases(l.id)
	must(err)
	for i, base := range l.bases {
		next := l.end()
		if i+1 < len(l.bases) {
			next = l.bases[i+1]
		}
		var data []byte
		n := 0
		for _, x := range l.batches {
			if x.Base < base || x.Base >= next {
				continue
			}
			n++
			data = kbatchtest.V2(data, kbatchtest.Spec{Base: x.Base, Last: x.Next - 1, Epoch: x.epoch,
				MaxTimestamp: int64(x.at+999_999) / 1_000_000, Body: 10 + x.nonce})
		}
		gone := i+1 < len(l.bases) && !slices.Contains(local, base) && len(local) > 0 && base < local[0]
		if was, there := l.written[base]; there && was == n || gone {
			continue
		}
		l.written[base] = n
		must(b.w.Write(l.id, base, data))
	}
	b.replicate(l)
	if b.w.oracle != nil {
		b.w.oracle.leads(l.id, l.lineage(), l.end())
		b.w.oracle.replicated(l.id, l.hw)
	}
	dir := b.w.logDir(l.id)
	b.put(path.Join(dir, "partition.metadata"), "version: 0\ntopic_id: "+l.topic+"\n")
	if !b.silent {
		record := l.lineage()
		if tier.LastEpoch(record) != l.epoch {
			record = append(record, tier.EpochStart{Epoch: l.epoch, Start: l.end()})
		}
		text := fmt.Sprintf("0\n%d\n", len(record))
		for _, e := range record {
			text += fmt.Sprintf("%d %d\n", e.Epoch, e.Start)
		}
		b.put(path.Join(dir, "leader-epoch-checkpoint"), text)
	}
	b.checkpoint("replication-offset-checkpoint", func(l *brokerLog) tier.Offset { return l.hw })
	b.checkpoint("recovery-point-offset-checkpoint", (*brokerLog).end)
}

func (b *broker) checkpoint(name string, at func(*brokerLog) tier.Offset) {
	text := fmt.Sprintf("0\n%d\n", len(b.logs))
	for _, l := range b.logs {
		text += fmt.Sprintf("%s %s %d\n", l.id.Table, l.id.Name, at(l))
	}
	b.put(name, text)
}

// replicate moves the high watermark to the end of the log, unless no replica follows. A log that
// was cut off below it has a lower one.
func (b *broker) replicate(l *brokerLog) {
	l.hw = min(l.hw, l.end())
	if !l.stalled {
		l.hw = l.end()
	}
}
