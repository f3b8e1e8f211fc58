package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"testing"

	"github.com/tierd/tierd/runtime/engine"
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
}

type brokerLog struct {
	id      tier.LogID
	batches []brokerBatch
	bases   []tier.Offset // of the segments, also of those that tierd deleted
	epoch   tier.LeaderEpoch
	topic   string
	written map[tier.Offset]int // batches that each segment's file has
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
	at := path.Join(sourceDir, name)
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
	must(b.w.Disk.Sync(sourceDir))
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
			l.epoch, b.w.Now, 0})
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
	if b.w.oracle != nil {
		b.w.oracle.leads(l.id, l.lineage(), l.end())
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
	for _, name := range []string{"replication-offset-checkpoint",
		"recovery-point-offset-checkpoint"} {
		text := fmt.Sprintf("0\n%d\n", len(b.logs))
		for _, l := range b.logs {
			text += fmt.Sprintf("%s %s %d\n", l.id.Table, l.id.Name, l.end())
		}
		b.put(name, text)
	}
}

// newBrokers is a world whose source is a broker's, with the log orders/0.
func newBrokers(t testing.TB, silent bool) (*World, *Oracle, *broker) {
	t.Helper()
	c := testConfig()
	c.Layout = tier.LayoutKafka
	w, err := NewWorld(c, scenarioStart)
	must(err)
	o := w.Observe()
	b := newBroker(w, silent, orders)
	must(w.Start())
	return w, o, b
}

func sound(t *testing.T, o *Oracle) {
	t.Helper()
	for _, v := range o.Violations() {
		t.Error(v)
	}
}

// TestALeaderChangeCutsOffWhatWasCopied: the new leader's log differs from offset 15 on, in the
// middle of a segment that was copied. What is left of the old lineage is never served again, the
// rest is copied anew, and what is cut off wholly goes after the grace.
func TestALeaderChangeCutsOffWhatWasCopied(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"with a record of epochs": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, o, b := newBrokers(t, silent)
			l := b.logs[0]
			for range 4 {
				b.append(l, 1)
				b.roll(l)
			}
			must(w.Run())
			if v, _ := w.Engine().Log(orders); v.Copied != l.active() {
				t.Fatalf("copied up to %d, want %d", v.Copied, l.active())
			}
			b.elect(l, 3, 1)
			w.Advance(1e9)
			must(w.Run())
			b.append(l, 4)
			b.roll(l)
			must(w.Run())
			for range settleRounds {
				must(w.Run())
				w.Advance(200e9)
			}
			v, _ := w.Engine().Log(orders)
			if v.Copied != l.active() || len(v.Alarms) > 0 {
				t.Errorf("copied up to %d, want %d; alarms %v", v.Copied, l.active(), v.Alarms)
			}
			ledger, _ := w.Ledger().Log(orders)
			if len(ledger.Clips) != 1 || ledger.Clips[0].Offset != 15 {
				t.Errorf("clips %v, want one at 15", ledger.Clips)
			}
			o.Quiet()
			sound(t, o)
		})
	}
}

// TestARecordThatDisagreesWithTheCopyKeepsTheSegment: the batches on disk are those that were
// copied, and the source's own record names another leader for them. Something is wrong with one of
// them, so the guard refuses the proof.
func TestARecordThatDisagreesWithTheCopyKeepsTheSegment(t *testing.T) {
	t.Parallel()
	w, o, b := newBrokers(t, false)
	b.roll(b.logs[0])
	b.roll(b.logs[0])
	must(w.Run())
	b.put("orders-0/leader-epoch-checkpoint", "0\n2\n0 0\n1 5\n")
	w.Advance(2 * 3600e9)
	must(w.Run())
	v, _ := w.Engine().Log(orders)
	if v.Local.Base != 0 || !hasCode(v.Alarms, tier.CodeLineage) {
		t.Errorf("local %v, alarms %v; want everything there, and an alarm", v.Local, v.Alarms)
	}
	b.put("orders-0/leader-epoch-checkpoint", "0\n1\n1 0\n")
	w.Advance(600e9)
	must(w.Run())
	if v, _ := w.Engine().Log(orders); v.Local.Base != b.logs[0].active() || len(v.Alarms) > 0 {
		t.Errorf("local %v, alarms %v; want all gone that was copied", v.Local, v.Alarms)
	}
	sound(t, o)
}

// TestABatchThatTheRecordContradictsDecidesNothing: the checksum of a batch does not cover its
// leader epoch, so one bit on disk could cut off an archive. Nothing is cut off while the source's
// own record speaks against it, and nothing else is done with the log.
func TestABatchThatTheRecordContradictsDecidesNothing(t *testing.T) {
	t.Parallel()
	w, o, b := newBrokers(t, false)
	l := b.logs[0]
	b.roll(l)
	b.roll(l)
	must(w.Run())
	l.batches[1].epoch = 3
	l.written[5] = -1
	w.Advance(1e9)
	o.cuts(orders, 5)
	b.flush(l)
	b.put("orders-0/leader-epoch-checkpoint", "0\n1\n1 0\n")
	w.Advance(2 * 3600e9)
	for range settleRounds {
		must(w.Run())
		w.Advance(60e9)
	}
	state, _ := w.Ledger().Log(orders)
	v, _ := w.Engine().Log(orders)
	if len(state.Clips) > 0 || state.Copied != 10 || v.Local.Base != 5 ||
		!hasCode(v.Alarms, tier.CodeLineage) {
		t.Errorf("local %v, clips %v, alarms %v; want it left alone from 5 on", v.Local, state.Clips,
			v.Alarms)
	}
	b.flush(l) // the record says so, too: another leader it was
	for range settleRounds {
		must(w.Run())
		w.Advance(60e9)
	}
	if state, _ = w.Ledger().Log(orders); len(state.Clips) != 1 || state.Clips[0].Offset != 5 {
		t.Errorf("clips %v, want one at 5", state.Clips)
	}
}

func hasCode(reasons []tier.Reason, c tier.Code) bool {
	return slices.ContainsFunc(reasons, func(r tier.Reason) bool { return r.Code == c })
}

// TestASecondCutBelowTheFirstIsSeen: a leader cut the log off at 15, and before the comparison that
// this raised has looked at anything another one cut it off at 0. What is left of the copies below
// 15 is of a lineage that the log has left, too: no reader may be given it.
func TestASecondCutBelowTheFirstIsSeen(t *testing.T) {
	t.Parallel()
	w, o, b := newBrokers(t, false)
	l := b.logs[0]
	for range 5 {
		b.roll(l)
	}
	must(w.Run())
	scan := func() {
		w.Advance(1e9)
		if _, err := w.Scan(); err != nil {
			t.Fatal(err)
		}
		w.step(engine.Tick{})
	}
	b.elect(l, 3, 0)
	b.append(l, 1)
	scan()
	if n := len(w.Queued()); n != 1 {
		t.Fatalf("%d effects are queued, want one comparison", n)
	}
	b.elect(l, 0, 0)
	b.append(l, 5)
	scan()
	for range settleRounds {
		must(w.Run())
		w.Advance(60e9)
	}
	state, _ := w.Ledger().Log(orders)
	if n := len(state.Clips); n != 1 || state.Clips[0].Offset != 0 {
		t.Errorf("clips %v, want one at 0", state.Clips)
	}
	o.Quiet()
	sound(t, o)
}
