package logdir_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

const (
	fileHW    = "replication-offset-checkpoint"
	fileRP    = "recovery-point-offset-checkpoint"
	fileStart = "log-start-offset-checkpoint"
	fileClean = "cleaner-offset-checkpoint"
)

// TestKafkaClosed says when a segment counts as closed: [0,100) [100,200) [200, and so on.
func TestKafkaClosed(t *testing.T) {
	t.Parallel()
	type offsets struct{ hw, rp tier.Offset }
	for _, c := range []struct {
		name string
		at   offsets
		want string
	}{
		{"all reached", offsets{250, 250}, "0-100 100-200 200-250?roll"},
		{"just reached", offsets{200, 200}, "0-100 100-200 200-250?roll"},
		{"not on all replicas", offsets{199, 250}, "0-100 100-200?hw 200-250?roll"},
		{"not fsynced", offsets{250, 199}, "0-100 100-200?rp 200-250?roll"},
		{"neither", offsets{99, 99}, "0-100?hw 100-200?hw 200-250?roll"},
		{"nothing known", offsets{0, 0}, "0-100?hw 100-200?hw 200-250?roll"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(newMem(t))
			b.seg("orders-0", 0, 100)
			b.seg("orders-0", 100, 200)
			b.seg("orders-0", 200, 250)
			b.reached("orders 0", c.at.hw, c.at.rp)
			s := b.open(tier.LayoutKafka)
			got := scan(t, s, now).Scans[0]
			if shape(got) != c.want || got.HighWatermark != c.at.hw || !got.HasHighWatermark ||
				got.LocalEnd != 250 || !got.Whole {
				t.Errorf("%s in %+v, want %s", shape(got), got, c.want)
			}
			if again := look(t, s, "orders/0"); shape(again) != c.want {
				t.Errorf("a look says %s, want %s", shape(again), c.want)
			}
		})
	}
}

// TestKafkaClosedBeforeAnEmptyOne rolls a segment and writes nothing more.
func TestKafkaClosedBeforeAnEmptyOne(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	b.seg("orders-0", 0, 100)
	b.seg("orders-0", 100, 100)
	b.reached("orders 0", 100, 100)
	got := scan(t, b.open(tier.LayoutKafka), now).Scans[0]
	if shape(got) != "0-100 100-100?roll" || got.LocalEnd != 100 {
		t.Errorf("%s in %+v", shape(got), got)
	}
}

// TestConcurrentUse does everything at once, for the race detector and for deadlocks.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	for base := tier.Offset(0); base < 1000; base += 100 {
		b.seg("orders-0", base, base+100)
	}
	s := b.open(tier.LayoutKafka)
	scan(t, s, now)
	var group sync.WaitGroup
	for base := tier.Offset(0); base < 900; base += 100 {
		target := gate.Target{Action: tier.DeleteLocal, Log: logID(t, "orders/0"),
			Range: tier.Range{Base: base, Next: base + 100},
			File:  b.stat(file("orders-0", base, "log")), Bytes: b.bytes("orders-0", base),
			Rest: b.rest("orders-0", base)}
		p := permit(t, target)
		group.Go(func() {
			if _, err := read(s, base, base+100); err != nil {
				t.Error(err)
			}
			if err := s.Drop(context.Background(), p, target); err != nil {
				t.Error(err)
			}
		})
		group.Go(func() {
			res, err := s.Scan(context.Background(), now)
			if err != nil || len(res.Problems) > 0 {
				t.Error(err, res.Problems)
			}
			if got, whole, err := s.Look(context.Background(), target.Log); err != nil || !whole {
				t.Error(err, got)
			}
			if s.Owned() != tier.Yes {
				t.Error("not owned")
			}
		})
	}
	group.Wait()
	if got := shape(look(t, s, "orders/0")); got != "900-1000?roll" {
		t.Errorf("left: %s", got)
	}
}

// TestKafkaCheckpoints takes checkpoints away or breaks them: nothing is believed of what they do
// not say.
func TestKafkaCheckpoints(t *testing.T) {
	t.Parallel()
	const unclosed = "0-100?hw 100-150?roll"
	const closed = "0-100 100-150?roll"
	for _, c := range []struct {
		name    string
		change  func(b *broker)
		want    string
		whole   bool
		problem string // what the problem says; "" if there is none
	}{
		{"sound", func(*broker) {}, closed, true, ""},
		{"no high watermarks", func(b *broker) { b.remove(fileHW) }, unclosed, true,
			"replication-offset-checkpoint unreadable the broker has not written it"},
		{"no recovery points", func(b *broker) { b.remove(fileRP) }, "0-100?rp 100-150?roll", true,
			"recovery-point-offset-checkpoint unreadable the broker has not written it"},
		{"no log starts", func(b *broker) { b.remove(fileStart) }, closed, true, ""},
		{"no cleaner", func(b *broker) { b.remove(fileClean) }, closed, true, ""},
		{"empty", func(b *broker) { b.put(fileHW, nil) }, unclosed, true, ""},
		{"not a word of this log", func(b *broker) { b.put(fileHW, []byte("0\n1\nother 0 9\n")) },
			unclosed, true, ""},
		{"a negative offset is not known", func(b *broker) {
			b.put(fileHW, []byte("0\n1\norders 0 -1\n"))
		}, unclosed, true, ""},
		{"cut in an offset", func(b *broker) { b.put(fileHW, []byte("0\n1\norders 0 15")) },
			unclosed, false, "replication-offset-checkpoint:3: the line does not end"},
		{"cut between entries", func(b *broker) { b.put(fileRP, []byte("0\n2\norders 0 150\n")) },
			"0-100?rp 100-150?roll", false, "the file has 1 entries, and says that it has 2"},
		{"another version", func(b *broker) { b.put(fileHW, []byte("1\n0\n")) }, unclosed, false,
			`replication-offset-checkpoint:1: version "1"`},
		{"no count", func(b *broker) { b.put(fileHW, []byte("0\norders 0 150\n")) }, unclosed,
			false, "replication-offset-checkpoint:2: want the number of entries"},
		{"zeros", func(b *broker) { b.put(fileHW, make([]byte, 40)) }, unclosed, false,
			"replication-offset-checkpoint:1: version"},
		{"a word too few", func(b *broker) { b.put(fileHW, []byte("0\n1\norders 150\n")) },
			unclosed, false, "replication-offset-checkpoint:3: want 3 words"},
		{"twice", func(b *broker) { b.put(fileHW, []byte("0\n2\norders 0 1\norders 0 150\n")) },
			unclosed, false, "replication-offset-checkpoint:4: orders/0 stands there twice"},
		{"no number", func(b *broker) { b.put(fileStart, []byte("0\n1\norders 0 x\n")) }, closed,
			false, "log-start-offset-checkpoint:3: want topic, partition and offset"},
		{"a directory in its place", func(b *broker) {
			b.remove(fileHW)
			b.mkdirs(fileHW)
		}, unclosed, false, "not a regular file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(newMem(t))
			b.seg("orders-0", 0, 100)
			b.seg("orders-0", 100, 150)
			b.reached("orders 0", 150, 150)
			c.change(b)
			s := b.open(tier.LayoutKafka)
			res := scan(t, s, now)
			if got := res.Scans[0]; shape(got) != c.want || got.Whole != c.whole {
				t.Errorf("%s, whole %v; want %s, %v", shape(got), got.Whole, c.want, c.whole)
			}
			compareProblems(t, res.Problems, c.problem)
			if got := look(t, s, "orders/0"); shape(got) != c.want || got.Whole != c.whole {
				t.Errorf("a look says %s, whole %v; want %s, %v", shape(got), got.Whole, c.want,
					c.whole)
			} else {
				compareProblems(t, got.Problems, c.problem)
			}
		})
	}
}

// compareProblems wants exactly one problem that says the words of want; none if want is "".
func compareProblems(t *testing.T, problems []tier.Problem, want string) {
	t.Helper()
	var said []string
	for _, p := range problems {
		said = append(said, fmt.Sprintf("%s %s %s", p.Path, p.Code, p.Text))
	}
	if (want == "") != (len(said) == 0) || len(said) > 1 ||
		!strings.Contains(strings.Join(said, ""), want) {
		t.Errorf("problems %q, want %q", said, want)
	}
}

// TestKafkaNames says which directories of a broker are logs.
func TestKafkaNames(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		b := newBroker(w)
		for _, dir := range []string{"orders-0", "orders-10", "a.b_c-d-3", "-5-1",
			// These are none:
			"__consumer_offsets-0", "__own-1", "orders", "orders-", "-0", "orders-x", "orders-01",
			"orders-0.38bb2a4d22634cd7ba54b0bc1ee956ae-delete", "lost+found",
			"orders-1.38bb2a4d22634cd7ba54b0bc1ee956ae-future",
			"orders-2.38bb2a4d22634cd7ba54b0bc1ee956ae-stray", "orders-99999999999", "orders--"} {
			b.seg(dir, 0, 20)
		}
		b.put("orders-7", []byte("a file"))
		s := b.open(tier.LayoutKafka)
		const want = "-5/1 a.b_c-d/3 orders/0 orders/10"
		if got := ids(scan(t, s, now).Logs); got != want {
			t.Errorf("logs %q, want %q", got, want)
		}
		for _, id := range []string{"orders/7", "orders/1", "orders/x", "__own/1", "a/b/0",
			"orders/01"} {
			_, _, err := s.Look(context.Background(), logID(t, id))
			if !errors.Is(err, tier.ErrVanished) {
				t.Errorf("a look at %s says %v, want ErrVanished", id, err)
			}
		}
	})
}

// TestKafkaFiles says which files are of a segment, and what is in the way.
func TestKafkaFiles(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		b := newBroker(w)
		b.seg("orders-0", 0, 100)
		b.seg("orders-0", 100, 150)
		b.reached("orders 0", 150, 150)
		sizes := int64(0)
		for _, ext := range []string{"log", "index", "timeindex"} {
			sizes += b.stat(file("orders-0", 0, ext)).Size
		}
		b.put(file("orders-0", 0, "snapshot"), make([]byte, 11))
		b.put(file("orders-0", 0, "txnindex"), nil)
		for _, name := range []string{file("orders-0", 0, "log.deleted"), "orders-0/notes.txt",
			file("orders-0", 50, "log.cleaned"), file("orders-0", 50, "index"),
			file("orders-0", 150, "snapshot")} {
			b.put(name, []byte("something"))
		}
		s := b.open(tier.LayoutKafka)
		got := scan(t, s, now).Scans[0]
		if shape(got) != "0-100 100-150?roll" || got.Segments[0].Bytes != sizes+11 || !got.Whole ||
			got.Segments[0].Log != b.stat(file("orders-0", 0, "log")) || len(got.Problems) > 0 {
			t.Errorf("%s of %d bytes in %+v", shape(got), got.Segments[0].Bytes, got)
		}

		b.remove(file("orders-0", 100, "index"))
		got = look(t, s, "orders/0")
		size := b.stat(file("orders-0", 100, "log")).Size
		size += b.stat(file("orders-0", 100, "timeindex")).Size
		if bytes := got.Segments[1].Bytes; bytes != size {
			t.Errorf("%d bytes, want %d: an index without a log is nobody's", bytes, size)
		}

		b.put(file("orders-0", 50, "log.swap"), nil)
		if got := look(t, s, "orders/0"); got.Whole {
			t.Error("whole while the broker replaces segments")
		}
		b.put("orders-0/12.log", nil)
		b.put("orders-0/99999999999999999999.log", nil)
		if err := w.symlink("00000000000000000000.log", file("orders-0", 40, "log")); err != nil {
			t.Fatal(err)
		}
		got = look(t, s, "orders/0")
		const want = "orders-0/00000000000000000040.log:not-regular " +
			"orders-0/00000000000000000050.log.swap:retry orders-0/12.log:bad-name " +
			"orders-0/99999999999999999999.log:bad-name"
		if got.Whole || codes(got.Problems) != want {
			t.Errorf("whole %v, problems %s; want false, %s", got.Whole, codes(got.Problems), want)
		}
	})
}

func TestKafkaPartitionWithoutSegments(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	b.mkdirs("orders-0")
	got := scan(t, b.open(tier.LayoutKafka), now).Scans[0]
	if got.Whole || len(got.Segments) > 0 || codes(got.Problems) != "orders-0:source-vanished" {
		t.Errorf("%+v, want a problem and nothing decided", got)
	}
}

// TestKafkaIncarnation wants no segments where it is not known of which log they are.
func TestKafkaIncarnation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, properties, text, want string
		whole                        bool
	}{
		{"written", "version=1", "version: 0\ntopic_id: dcRgLM8ISTa06_at73zWcg",
			"dcRgLM8ISTa06_at73zWcg", true},
		{"an old broker writes none", "version=0", "", "", true},
		{"not written yet", "version=1", "", "", false},
		{"no id", "version=0", "version: 0\n", "", false},
		{"another version", "version=0", "version: 1\ntopic_id: a", "", false},
		{"zeros", "version=1", "\x00\x00\x00", "", false},
	} {
		b := newBroker(newMem(t))
		b.put("meta.properties", []byte("#\n"+c.properties+"\n"))
		b.seg("orders-0", 0, 100)
		if c.text != "" {
			b.put("orders-0/partition.metadata", []byte(c.text))
		}
		got := scan(t, b.open(tier.LayoutKafka), now).Scans[0]
		if got.Incarnation != c.want || got.Whole != c.whole ||
			got.Whole != (len(got.Problems) == 0) || got.Whole != (len(got.Segments) > 0) {
			t.Errorf("%s: %q in %+v; want %q, whole %v", c.name, got.Incarnation, got, c.want,
				c.whole)
		}
	}
}

func TestKafkaStartAndCompaction(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	for _, dir := range []string{"a-0", "b-0", "c-0", "d-0"} {
		b.seg(dir, 100, 200)
		b.seg(dir, 200, 250)
	}
	b.checkpoint(fileStart, "a 0", 150)
	b.checkpoint(fileStart, "b 0", 50)
	for _, p := range []string{"b 0", "c 0"} {
		b.checkpoint(fileClean, p, 100)
	}
	s := b.open(tier.LayoutKafka, func(c *logdir.Config) {
		c.Compacted = func(table string) tier.Truth {
			return map[string]tier.Truth{"c": tier.No, "d": tier.Yes}[table]
		}
	})
	type facts struct {
		start     tier.Offset
		compacted bool
	}
	want := []facts{{150, false}, {100, true}, {100, false}, {100, true}}
	for i, got := range scan(t, s, now).Scans {
		if (facts{got.SourceStart, got.Compacted}) != want[i] {
			t.Errorf("%s: start %d, compacted %v; want %+v", got.Log, got.SourceStart,
				got.Compacted, want[i])
		}
	}
}

// TestKafkaTail follows the end of an active segment through whatever a broker or a crash leaves.
func TestKafkaTail(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		b := newBroker(w)
		log, index, _ := segment(100, 400)
		name := file("orders-0", 100, "log")
		b.put(name, nil)
		s := b.open(tier.LayoutKafka)
		end := func(step string, want tier.Offset) {
			t.Helper()
			*w.clock += second
			w.age(name)
			for _, r := range scan(t, s, now).Scans {
				if r.LocalEnd != want || r.Segments[0].Next != want || !r.Whole {
					t.Errorf("%s: ends at %d in %+v, want %d", step, r.LocalEnd, r, want)
				}
			}
			if got := look(t, s, "orders/0"); got.LocalEnd != want {
				t.Errorf("%s: a look says %d, want %d", step, got.LocalEnd, want)
			}
		}
		batch := len(log) / 30
		end("empty", 100)
		b.add(name, log[:batch])
		end("one batch", 110)
		b.add(name, log[batch:batch+30])
		end("half a batch more", 110)
		b.add(name, log[batch+30:5*batch])
		end("and the other half", 150)
		b.put(name, log[:2*batch])
		end("truncated", 120)
		b.put(name, kbatchtest.V2(nil, kbatchtest.Spec{Base: 100, Last: 179, Body: 3 * batch}))
		end("written anew, with a longer batch where it ended", 180)
		b.put(name, append(log[:3*batch:3*batch], make([]byte, 500)...))
		end("preallocated zeros", 130)
		b.put(name, append(log[:3*batch:3*batch], log[:batch]...))
		end("offsets that do not ascend", 130)
		b.put(name, log)
		b.put(file("orders-0", 100, "index"), append(index, make([]byte, 8000)...))
		end("with an index", 400)
		b.remove(name)
		b.put(name, log[:3*batch])
		end("another file, and an index that points beyond it", 130)
		b.put(file("orders-0", 100, "index"), be32(be32(nil, 1), 77))
		b.put(name, log[:4*batch])
		end("an index that points between batches", 140)
	})
}

// TestKafkaTailJumps shows that the walk begins where the index says: what is before is not read.
func TestKafkaTailJumps(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	log, index, _ := segment(0, 1000)
	for i := range 300 {
		log[i] = 0xff // nobody could walk through this
	}
	b.put(file("orders-0", 0, "log"), log)
	b.put(file("orders-0", 0, "index"), append(index, make([]byte, 10<<10)...))
	if got := scan(t, b.open(tier.LayoutKafka), now).Scans[0]; got.LocalEnd != 1000 {
		t.Errorf("ends at %d, want 1000", got.LocalEnd)
	}
}

// TestKafkaTailDoubtsTheIndex has a record whose value is a batch of another log, and an index that
// points at it.
func TestKafkaTailDoubtsTheIndex(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	inner := kbatchtest.V2(nil, kbatchtest.Spec{Base: 5000, Last: 5000})
	log := kbatchtest.V2(nil, kbatchtest.Spec{Base: 100, Last: 109, Body: len(inner)})
	copy(log[len(log)-len(inner):], inner)
	b.put(file("orders-0", 100, "log"), log)
	b.put(file("orders-0", 100, "index"), be32(be32(nil, 5), int64(len(log)-len(inner))))
	if got := scan(t, b.open(tier.LayoutKafka), now).Scans[0]; got.LocalEnd != 110 {
		t.Errorf("ends at %d, want 110", got.LocalEnd)
	}
}

func TestKafkaOldMagicTail(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	log := kbatchtest.V01(nil, 1, kbatchtest.Spec{Last: 9, Codec: kbatch.Gzip, Body: 30})
	log = kbatchtest.V01(log, 1, kbatchtest.Spec{Last: 10})
	b.put(file("orders-0", 0, "log"), log)
	if got := scan(t, b.open(tier.LayoutKafka), now).Scans[0]; got.LocalEnd != 11 {
		t.Errorf("ends at %d, want 11", got.LocalEnd)
	}
}

// TestRescan says when a log counts as unchanged, and that no change stays unseen for long.
func TestRescan(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		b := newBroker(w)
		for _, dir := range []string{"busy-0", "idle-0"} {
			b.seg(dir, 0, 100)
			b.seg(dir, 100, 200)
			b.seg(dir, 200, 250)
		}
		b.reached("busy 0", 250, 250)
		b.reached("idle 0", 250, 250)
		s := b.open(tier.LayoutKafka)
		at := now
		rescan := func(step, want string) {
			t.Helper()
			at += minute
			res := scan(t, s, at)
			var changed []tier.LogID
			for _, r := range res.Scans {
				changed = append(changed, r.Log)
			}
			for _, r := range res.Scans {
				if got := look(t, s, r.Log.String()); !slices.Equal(got.Segments, r.Segments) {
					t.Errorf("%s: %+v, and a look says %+v", step, r.Segments, got.Segments)
				}
			}
			if got := ids(changed); got != want || ids(res.Logs) != "busy/0 idle/0" ||
				len(res.Scans)+len(res.Unchanged) != 2 {
				t.Errorf("%s: changed %q, want %q of %s", step, got, want, ids(res.Logs))
			}
		}
		rescan("first", "busy/0 idle/0")
		rescan("nothing", "")
		*w.clock += second
		log, _, _ := segment(250, 300)
		b.add(file("busy-0", 200, "log"), log)
		rescan("the active segment grew", "busy/0")
		rescan("nothing", "")
		*w.clock += second
		b.seg("busy-0", 300, 310)
		rescan("a segment was rolled", "busy/0")
		b.reached("busy 0", 310, 250)
		rescan("the high watermark moved", "busy/0")
		b.checkpoint(fileStart, "idle 0", 150)
		rescan("the source start moved", "idle/0")
		*w.clock += second
		b.put(file("busy-0", 200, "log"), log)
		rescan("the segment before the active one was written to", "busy/0")
		*w.clock += second
		b.remove(file("idle-0", 0, "log"))
		rescan("a segment went", "idle/0")
		*w.clock += second
		b.put(file("busy-0", 0, "log"), log)
		at += 10 * minute
		rescan("an old segment was rewritten in place", "busy/0")
		rescan("nothing", "")
	})
}

// TestRescanDistrustsYoungTimes changes a directory twice within the granularity of its mtime: the
// second change must not stay unseen.
func TestRescanDistrustsYoungTimes(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	b.seg("orders-0", 0, 100)
	*b.clock = now
	b.seg("orders-0", 100, 200)
	s := b.open(tier.LayoutKafka)
	scan(t, s, now+second)
	b.seg("orders-0", 200, 300) // the mtime stands still
	if got := scan(t, s, now+2*second); len(got.Scans) != 1 || len(got.Scans[0].Segments) != 3 {
		t.Errorf("a segment stays unseen: %+v", got.Scans)
	}
}

// TestRescanDistrustsYoungFiles does the same with a file that is no longer among the newest.
func TestRescanDistrustsYoungFiles(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	for base := tier.Offset(0); base < 400; base += 100 {
		b.seg("orders-0", base, base+100)
	}
	s := b.open(tier.LayoutKafka)
	log, _, _ := segment(0, 100)
	*b.clock = now
	b.put(file("orders-0", 0, "log"), log[:101])
	scan(t, s, now+second)
	b.put(file("orders-0", 0, "log"), log) // neither mtime moves
	if got := scan(t, s, now+2*second); len(got.Scans) != 1 {
		t.Errorf("a longer file stays unseen: %+v", got)
	}
}

// TestRescanWalksOn shows that what was walked through is not walked again when the directory is
// listed anew.
func TestRescanWalksOn(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	log, _, _ := segment(0, 100)
	name := file("orders-0", 0, "log")
	b.put(name, log[:303])
	s := b.open(tier.LayoutKafka)
	scan(t, s, now)
	*b.clock += second
	b.put(name, append(make([]byte, 202), log[202:]...)) // the last batch of then is still there
	b.put("orders-0/leader-epoch-checkpoint", []byte("0\n0\n"))
	if got := scan(t, s, now+minute).Scans[0]; got.LocalEnd != 100 {
		t.Errorf("ends at %d, want 100", got.LocalEnd)
	}
}

// TestRescanAfterChangesByTheReceiver shows that whoever gets a scan may do with it what it likes.
func TestRescanAfterChangesByTheReceiver(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	b.seg("orders-0", 0, 100)
	b.seg("orders-0", 100, 200)
	s := b.open(tier.LayoutKafka)
	clear(scan(t, s, now).Scans[0].Segments)
	if got := scan(t, s, now+minute); len(got.Scans) != 0 {
		t.Errorf("changed: %+v", got.Scans)
	}
}

// TestKafkaTrouble takes away what makes a broker's directory: nothing of it may be decided.
func TestKafkaTrouble(t *testing.T) {
	t.Parallel()
	trouble := func(w *world) *tier.Reason {
		t.Helper()
		s := w.open(tier.LayoutKafka)
		res, err := s.Scan(context.Background(), now)
		if err != nil {
			t.Fatal(err)
		}
		if res.Trouble != nil && len(res.Scans)+len(res.Logs)+len(res.Unchanged) > 0 {
			t.Errorf("trouble, and yet %+v", res)
		}
		_, whole, err := s.Look(context.Background(), logID(t, "orders/0"))
		if res.Trouble != nil && (err == nil || whole || errors.Is(err, tier.ErrVanished)) {
			t.Errorf("a look says %v, whole %v; in trouble, no log is gone", err, whole)
		}
		return res.Trouble
	}
	empty := newMem(t)
	if got := trouble(empty); got == nil || got.Code != tier.CodeSourceVanished {
		t.Errorf("empty: %+v", got)
	}
	other := newMem(t)
	other.put("photos/1.jpg", nil)
	if got := trouble(other); got == nil || got.Code != tier.CodeSourceVanished {
		t.Errorf("no broker's: %+v", got)
	}
	gone := newMem(t)
	gone.mkdirs("x")
	mem, err := gone.mem.Sub("x")
	if err != nil {
		t.Fatal(err)
	}
	gone.remove("x")
	gone.dir = mem
	gone.root = func() (vfs.Dir, error) { return gone.mem.Sub("x") }
	if got := trouble(gone); got == nil || got.Code != tier.CodeSourceVanished {
		t.Errorf("gone: %+v", got)
	}
	locked := newBroker(newMem(t))
	locked.seg("orders-0", 0, 100)
	if err := locked.chmod(".", 0); err != nil {
		t.Fatal(err)
	}
	if got := trouble(locked.world); got == nil || got.Code != tier.CodeSourceUnread {
		t.Errorf("no permission: %+v", got)
	}
	fresh := newBroker(newMem(t))
	if got := trouble(fresh.world); got != nil {
		t.Errorf("a broker without topics: %+v", got)
	}
}

// TestKafkaUnreadableLog shows that a log that cannot be read is not gone, and that others go on.
func TestKafkaUnreadableLog(t *testing.T) {
	t.Parallel()
	b := newBroker(newMem(t))
	for _, dir := range []string{"a-0", "b-0", "c-0"} {
		b.seg(dir, 0, 100)
		b.seg(dir, 100, 200)
	}
	if err := b.symlink("a-0", "d-0"); err != nil {
		t.Fatal(err)
	}
	s := b.open(tier.LayoutKafka)
	check := func(step string, broken ...string) {
		t.Helper()
		*b.clock += second
		res := scan(t, s, now)
		if ids(res.Logs) != "a/0 b/0 c/0 d/0" {
			t.Errorf("%s: logs %s", step, ids(res.Logs))
		}
		for _, id := range broken {
			scan, whole, err := s.Look(context.Background(), logID(t, id))
			if whole || scan.Whole {
				t.Errorf("%s: %s is whole: %+v, %v", step, id, scan, err)
			}
			if errors.Is(err, tier.ErrVanished) {
				t.Errorf("%s: %s is taken for gone: %v", step, id, err)
			}
		}
		for _, r := range res.Scans {
			if r.Whole == (r.Log.Table == "d" || r.Log.Table == "b" && len(broken) > 1) {
				t.Errorf("%s: %s whole is %v", step, r.Log, r.Whole)
			}
		}
		if len(res.Problems) != len(broken) {
			t.Errorf("%s: problems %s, want of %v", step, codes(res.Problems), broken)
		}
	}
	check("a link", "d/0")
	if err := b.chmod("b-0", 0); err != nil {
		t.Fatal(err)
	}
	check("no permission", "d/0", "b/0")
	if err := b.chmod("b-0", 0o755); err != nil {
		t.Fatal(err)
	}
	check("permission again", "d/0")
}
