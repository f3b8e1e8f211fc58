package offsets

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

type reflectType = reflect.Type

// benchID is like the ids that the daemon makes: ordered by time, and else random; here the same in
// each run.
func benchID(n int) (id tier.AttemptID) {
	binary.BigEndian.PutUint64(id[:], uint64(1_700_000_000_000+n/50)<<16)
	binary.BigEndian.PutUint64(id[6:], scramble(uint32(n)))
	binary.BigEndian.PutUint16(id[14:], uint16(n))
	return id
}

// benchNames are the names of a segment's files.
func benchNames(base tier.Offset) []string {
	var names []string
	for _, suffix := range []string{"log", "index", "timeindex"} {
		names = append(names, fmt.Sprintf("%020d.%s", base, suffix))
	}
	return names
}

// benchAttempt is an attempt to copy a Kafka segment.
func benchAttempt(n int, r tier.Range) tier.Attempt { return attemptOf(n, r, benchNames(r.Base)) }

func attemptOf(n int, r tier.Range, names []string) tier.Attempt {
	return tier.Attempt{ID: benchID(n), Epoch: 1, Range: r, StartedAt: 1_700_000_000_000_000_000,
		Names: names}
}

// benchCopy is the finished copy of a Kafka segment.
func benchCopy(n int, r tier.Range) tier.Copy { return copyOf(n, benchAttempt(n, r)) }

func copyOf(n int, a tier.Attempt) tier.Copy {
	c := tier.Copy{Attempt: a.ID, Epoch: 1, ModTime: a.StartedAt, Verified: tier.VerifySample,
		FinishedAt: a.StartedAt + 1e9, Content: tier.Content{Range: a.Range, MaxTime: a.StartedAt,
			Batches: 5000, LastNext: a.Range.Next,
			Files:   make([]tier.SourceFile, 0, len(a.Names)),
			Lineage: []tier.EpochStart{{Epoch: 12, Start: a.Range.Base}}}}
	for i, name := range a.Names {
		size := int64(1<<30) >> (10 * i)
		f := tier.SourceFile{FileDigest: tier.FileDigest{Name: name, Size: size, CRC32C: uint32(n)},
			Stat: tier.Stat{Inode: 1<<24 + uint64(n), Size: size, ModTime: a.StartedAt}}
		binary.BigEndian.PutUint64(f.SHA256[i:], uint64(n))
		c.Content.Files = append(c.Content.Files, f)
	}
	return c
}

func benchLog(n int) tier.LogID {
	return tier.LogID{Table: fmt.Sprintf("orders-of-region-%d", n/100), Name: fmt.Sprint(n % 100)}
}

// BenchmarkAppend copies segments of many logs in turn, two records each. With one caller each
// record has its own commit; with many, one commit serves a group. The logs are as many whoever
// calls, for pages to be scattered alike, but that each caller has one of its own at least.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 10, 100, 1000, 5000} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l, m := openAt(b, filepath.Join(b.TempDir(), "ledger.db"))
			count := &commits{Medium: m}
			l.medium = count
			logs := make([]tier.LogID, max(callers, 1000))
			opened := make([]tier.Record, len(logs))
			for i := range logs {
				logs[i] = benchLog(i)
				opened[i] = tier.LogOpened{Log: logs[i], Epoch: 1}
			}
			commitTogether(b, l, opened)
			names := make([][]string, 1+b.N/len(logs))
			for base := range names {
				names[base] = benchNames(tier.Offset(base))
			}
			before := count.n.Load()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() { copySegments(b, l, logs, names, i, callers) })
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(b.N)/float64(count.n.Load()-before), "records/commit")
		})
	}
}

// copySegments is one of several callers that append b.N records together. It copies its share of
// the logs from their beginning, a segment of each in turn: every second record advances the copied
// offset of one. The names of the segments at each base are made before: that would cost as much as
// all else that a caller does.
func copySegments(b *testing.B, l *Ledger, logs []tier.LogID, names [][]string,
	caller, callers int) {
	for n := caller; 2*n < b.N; n += callers {
		base := tier.Offset(n / len(logs))
		id, r := logs[n%len(logs)], span(base, base+1)
		a := attemptOf(n, r, names[base])
		c := copyOf(n, a)
		var err error
		c.Position, err = l.Append(context.Background(), tier.CopyStarted{Log: id, Attempt: a})
		if err != nil {
			b.Error(err)
			return
		}
		_, err = l.Append(context.Background(), tier.CopyFinished{Log: id, Copy: c})
		if err != nil {
			b.Error(err)
			return
		}
	}
}

// BenchmarkLongLog copies more segments of logs that have many copies, as many at a time as there
// are copying workers by default, each time in two commits. The ledgers take turns: disks are fast
// and slow by moods.
func BenchmarkLongLog(b *testing.B) {
	const together = 4
	sizes := []int{1000, 10_000, 100_000}
	logs := make([]longLog, len(sizes))
	for i, size := range sizes {
		logs[i].ledger, _ = openAt(b, filepath.Join(b.TempDir(), "ledger.db"))
		commitTogether(b, logs[i].ledger, []tier.Record{tier.LogOpened{Log: benchLog(0), Epoch: 1}})
		for logs[i].copies < size {
			logs[i].grow(b, 50)
		}
	}
	took := make([]time.Duration, len(sizes))
	for b.Loop() {
		for i := range logs {
			began := time.Now()
			logs[i].grow(b, together)
			took[i] += time.Since(began)
		}
	}
	for i, size := range sizes {
		each := float64(took[i].Nanoseconds()) / float64(b.N*together)
		b.ReportMetric(each, fmt.Sprintf("ns/segment-of-%d", size))
	}
	b.ReportMetric(0, "ns/op")
}

// longLog is a ledger with one log.
type longLog struct {
	ledger *Ledger
	copies int
}

// grow copies n more segments.
func (l *longLog) grow(b *testing.B, n int) {
	b.Helper()
	var started, finished []tier.Record
	for range n {
		r := span(tier.Offset(l.copies), tier.Offset(l.copies+1))
		c := benchCopy(l.copies, r)
		c.Position = tier.Position(l.copies)
		started = append(started, tier.CopyStarted{Log: benchLog(0), Attempt: benchAttempt(l.copies, r)})
		finished = append(finished, tier.CopyFinished{Log: benchLog(0), Copy: c})
		l.copies++
	}
	commitTogether(b, l.ledger, started)
	commitTogether(b, l.ledger, finished)
}

// commits counts commits.
type commits struct {
	Medium
	n atomic.Int64
}

func (c *commits) Update(fn func(Tx) error) error {
	c.n.Add(1)
	return c.Medium.Update(fn)
}

// BenchmarkRestore starts with a million copies in ten thousand logs: Open checks all entries,
// Restore hands them to the engine.
func BenchmarkRestore(b *testing.B) {
	const logs, each = 10_000, 100
	path := filepath.Join(b.TempDir(), "ledger.db")
	l, _ := openAt(b, path)
	began := time.Now()
	fill(b, l, logs, each)
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d bytes, filled in %s", info.Size(), time.Since(began))
	var opening, restoring time.Duration
	var headers uint64
	rounds := 0
	for b.Loop() {
		rounds++
		before := heap()
		began := time.Now()
		l, _ := openAt(b, path)
		opening += time.Since(began)
		headers = heap() - before
		began = time.Now()
		copies := 0
		err := l.Restore(func(_ tier.LogState, rs []tier.Remote, _ []tier.Attempt) error {
			copies += len(rs)
			return nil
		})
		if err != nil || copies != logs*each {
			b.Fatalf("restored %d copies, error %v", copies, err)
		}
		restoring += time.Since(began)
		l.Close()
	}
	b.ReportMetric(opening.Seconds()/float64(rounds), "open-s")
	b.ReportMetric(restoring.Seconds()/float64(rounds), "restore-s")
	b.ReportMetric((opening+restoring).Seconds()/float64(rounds), "start-s")
	b.ReportMetric(float64(headers)/logs, "heap-B/log")
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// commitTogether makes the records durable in one commit.
func commitTogether(b *testing.B, l *Ledger, records []tier.Record) {
	b.Helper()
	group := &batch{done: make(chan struct{})}
	for _, r := range records {
		group.records = append(group.records, &pending{record: r})
	}
	l.commitBatch(group)
	for _, p := range group.records {
		if p.err != nil {
			b.Fatal(p.err)
		}
	}
}

// fill copies each segments of each log, in large groups.
func fill(b *testing.B, l *Ledger, logs, each int) {
	var opened []tier.Record
	for i := range logs {
		opened = append(opened, tier.LogOpened{Log: benchLog(i), Source: "broker-1",
			Layout: tier.LayoutKafka, Incarnation: fmt.Sprintf("topic-%d", i/100), Epoch: 1})
	}
	commitTogether(b, l, opened)
	// Logs grow in turns, ten segments at a time, so that their pages lie scattered over the file.
	const turn, together = 10, 500
	for first := 0; first < each; first += turn {
		for low := 0; low < logs; low += together {
			var started, finished []tier.Record
			for n := range turn * together {
				id, s := benchLog(low+n/turn), first+n%turn
				n := s*logs + low + n/turn
				r := span(tier.Offset(s*1_000_000), tier.Offset((s+1)*1_000_000))
				started = append(started, tier.CopyStarted{Log: id, Attempt: benchAttempt(n, r)})
				c := benchCopy(n, r)
				c.Position = tier.Position(s)
				finished = append(finished, tier.CopyFinished{Log: id, Copy: c})
			}
			commitTogether(b, l, started)
			commitTogether(b, l, finished)
		}
	}
}
