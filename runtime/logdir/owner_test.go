package logdir_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
)

// fakeBroker is a cluster of one partition, whose log begins where it was told to.
type fakeBroker struct {
	owner tier.Owner
	err   error
	keeps bool // it gives nothing up, and says so
	asked []string
}

func (b *fakeBroker) Look(_ context.Context, id tier.LogID, epochs []tier.LeaderEpoch) (
	tier.Owner, error) {
	b.asked = append(b.asked, fmt.Sprintf("look %s %v", id, epochs))
	return b.owner, b.err
}

func (b *fakeBroker) DeleteBelow(_ context.Context, id tier.LogID, node int32, incarnation string,
	term tier.LeaderEpoch, offset tier.Offset) (tier.Offset, error) {
	b.asked = append(b.asked, fmt.Sprintf("delete %s below %d at %d of %s in %d", id, offset, node,
		incarnation, term))
	if b.err == nil && !b.keeps {
		b.owner.Start = max(b.owner.Start, offset)
	}
	return b.owner.Start, b.err
}

// owned is a partition with the segments [100, 200), [200, 250) and an active one, and its broker.
func owned(t *testing.T) (*world, *fakeBroker, *logdir.Source) {
	t.Helper()
	w := newMem(t)
	v := victims(t)[0]
	v.fill(w)
	b := newBroker(w)
	b.seg(v.dir, 250, 250)
	w.put("meta.properties", []byte("version=1\nnode.id=1\ncluster.id=C\n"))
	w.put(v.dir+"/partition.metadata", []byte("version: 0\ntopic_id: T\n"))
	w.put(v.dir+"/leader-epoch-checkpoint", []byte("0\n3\n3 100\n4 150\n7 250\n"))
	w.put("replication-offset-checkpoint", []byte("0\n1\norders 0 250\n"))
	w.put("recovery-point-offset-checkpoint", []byte("0\n1\norders 0 250\n"))
	f := &fakeBroker{owner: tier.Owner{Cluster: "C", Incarnation: "T", Node: 1, LeaderEpoch: 7,
		Start: 100, HighWatermark: 250, Ends: []tier.EpochEnd{{Asked: 3, Epoch: 3, End: 150},
			{Asked: 4, Epoch: 4, End: 250}}}}
	s, err := logdir.Open(logdir.Config{Name: "broker", Layout: tier.LayoutKafka, Root: w.root,
		LocalDelete: tier.LocalDeleteRecords, Broker: f})
	if err != nil {
		t.Fatal(err)
	}
	return w, f, s
}

// content is that of the copy of [100, 200): epochs 3 and 4.
var content = tier.Content{Range: tier.Range{Base: 100, Next: 200}, LastNext: 200,
	Lineage: []tier.EpochStart{{Epoch: 3, Start: 100}, {Epoch: 4, Start: 150}}}

func TestVet(t *testing.T) {
	t.Parallel()
	good := gate.OwnerFacts{Asked: tier.Yes, SameLog: tier.Yes, Leads: tier.Yes, Deletes: tier.Yes,
		Begins: tier.Yes, Lineage: tier.Yes, Term: 7, Start: 100, HighWatermark: 250}
	for name, c := range map[string]struct {
		change func(*world, *fakeBroker)
		want   func(*gate.OwnerFacts)
		says   string
	}{
		"all well": {func(*world, *fakeBroker) {}, func(*gate.OwnerFacts) {}, ""},
		"out of reach": {func(_ *world, b *fakeBroker) { b.err = errors.New("connection refused") },
			func(f *gate.OwnerFacts) { *f = gate.OwnerFacts{} }, "connection refused"},
		"another cluster": {func(_ *world, b *fakeBroker) { b.owner.Cluster = "D" },
			func(f *gate.OwnerFacts) { f.SameLog = tier.No }, "the broker's are D and T"},
		"recreated": {func(_ *world, b *fakeBroker) { b.owner.Incarnation = "U" },
			func(f *gate.OwnerFacts) { f.SameLog = tier.No }, "the broker's are C and U"},
		"recreated, and shorter": {func(_ *world, b *fakeBroker) {
			b.owner.Incarnation, b.owner.Start = "U", 900
		}, func(f *gate.OwnerFacts) { f.SameLog, f.Begins, f.Start = tier.No, tier.No, 900 }, "U"},
		"a follower's directory": {func(_ *world, b *fakeBroker) { b.owner.Node = 2 },
			func(f *gate.OwnerFacts) { f.Leads = tier.No }, "node 2 leads, and the directory is of node 1"},
		"another node's directory": {func(w *world, _ *fakeBroker) {
			w.put("meta.properties", []byte("version=1\nnode.id=7\ncluster.id=C\n"))
		}, func(f *gate.OwnerFacts) { f.Leads = tier.No }, "the directory is of node 7"},
		"compacted": {func(_ *world, b *fakeBroker) { b.owner.Refusal = "it compacts" },
			func(f *gate.OwnerFacts) { f.Deletes = tier.No }, "it compacts"},
		"something older is left": {func(_ *world, b *fakeBroker) { b.owner.Start = 99 },
			func(f *gate.OwnerFacts) { f.Begins, f.Start = tier.No, 99 }, "it begins at 99"},
		"begins within": {func(_ *world, b *fakeBroker) { b.owner.Start = 199 },
			func(f *gate.OwnerFacts) { f.Start = 199 }, ""},
		"given up": {func(_ *world, b *fakeBroker) { b.owner.Start = 200 },
			func(f *gate.OwnerFacts) {
				*f = gate.OwnerFacts{Asked: tier.Yes, SameLog: tier.Yes, Given: true, Term: 7, Start: 200,
					HighWatermark: 250}
			}, ""},
		"a rewritten tail": {func(_ *world, b *fakeBroker) { b.owner.Ends[0].End = 140 },
			func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "epoch 3 ends at 140"},
		"an epoch that goes on": {func(_ *world, b *fakeBroker) { b.owner.Ends[0].End = 160 },
			func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "epoch 3 ends at 160"},
		"an epoch it does not know": {func(_ *world, b *fakeBroker) {
			b.owner.Ends[1] = tier.EpochEnd{Asked: 4, Epoch: 3, End: 250}
		}, func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "for the leader epoch 3"},
		"an epoch it has forgotten": {func(_ *world, b *fakeBroker) {
			b.owner.Start, b.owner.Ends[0] = 150, tier.EpochEnd{Asked: 3, Epoch: 3, End: 0}
		}, func(f *gate.OwnerFacts) { f.Start = 150 }, ""},
		"it forgot where an epoch begins": {func(w *world, b *fakeBroker) {
			w.put("orders-0/leader-epoch-checkpoint", []byte("0\n3\n3 100\n4 160\n7 250\n"))
			b.owner.Ends[0].End = 160
		}, func(*gate.OwnerFacts) {}, ""},
		"it forgot an epoch": {func(w *world, b *fakeBroker) {
			w.put("orders-0/leader-epoch-checkpoint", []byte("0\n3\n3 100\n5 230\n7 250\n"))
			b.owner.Ends[0].End, b.owner.Ends[1] = 230, tier.EpochEnd{Asked: 4, Epoch: 3, End: 230}
		}, func(*gate.OwnerFacts) {}, ""},
		"it forgot all of them": {func(w *world, b *fakeBroker) {
			w.put("orders-0/leader-epoch-checkpoint", []byte("0\n2\n5 230\n7 250\n"))
			b.owner.Ends[0].End, b.owner.Ends[1].End = 230, 230
		}, func(*gate.OwnerFacts) {}, ""},
		"it forgot what its directory knows": {func(w *world, b *fakeBroker) {
			w.put("orders-0/leader-epoch-checkpoint", []byte("0\n3\n3 100\n4 150\n7 250\n"))
			b.owner.Ends[0].End = 160
		}, func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "epoch 3 ends at 160"},
		"it forgot, and has less": {func(w *world, b *fakeBroker) {
			w.put("orders-0/leader-epoch-checkpoint", []byte("0\n3\n3 100\n5 190\n7 250\n"))
			b.owner.Ends[0].End, b.owner.Ends[1] = 190, tier.EpochEnd{Asked: 4, Epoch: 3, End: 190}
		}, func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "ends at 190"},
		"it knows no epoch so late": {func(w *world, b *fakeBroker) {
			w.put("orders-0/leader-epoch-checkpoint", []byte("0\n2\n3 100\n7 250\n"))
			b.owner.Ends[1] = tier.EpochEnd{Asked: 4, Epoch: -1, End: -1}
			b.owner.Ends[0].End = 250
		}, func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "epoch"},
		"left behind, and both forgot alike": {func(w *world, b *fakeBroker) {
			w.put("orders-0/leader-epoch-checkpoint", []byte("0\n1\n5 230\n"))
			b.owner.Ends[0].End, b.owner.Ends[1].End = 230, 230
		}, func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "leads in the epoch 7, and the last one"},
		"left behind": {func(w *world, b *fakeBroker) {
			w.put("orders-0/leader-epoch-checkpoint", []byte("0\n2\n3 100\n4 150\n"))
		}, func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "the directory knows of is 4"},
		"without a record": {func(w *world, b *fakeBroker) {
			w.remove("orders-0/leader-epoch-checkpoint")
		}, func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "does not say in which epochs"},
		"a record that cannot be read": {func(w *world, b *fakeBroker) {
			w.put("orders-0/leader-epoch-checkpoint", []byte("0\nx\n"))
		}, func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "leader-epoch-checkpoint"},
		"it has less of the last epoch": {func(_ *world, b *fakeBroker) { b.owner.Ends[1].End = 190 },
			func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "epoch 4 ends at 190"},
		"fewer answers": {func(_ *world, b *fakeBroker) { b.owner.Ends = b.owner.Ends[:1] },
			func(f *gate.OwnerFacts) { f.Lineage = tier.No }, "1 epochs of 2"},
	} {
		w, b, s := owned(t)
		c.change(w, b)
		got := s.Vet(context.Background(), logID(t, "orders/0"), content)
		want := good
		c.want(&want)
		if !strings.Contains(got.Objection, c.says) || (c.says == "") != (got.Objection == "") {
			t.Errorf("%s: %q, want %q", name, got.Objection, c.says)
		}
		got.Objection = ""
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestVetWithoutEpochs: where neither batches nor directory have any there is nothing to compare. A
// directory that has them shows by its last one whether it is the leader's.
func TestVetWithoutEpochs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record string
		want   tier.Truth
	}{
		"none":                       {"", tier.Yes},
		"those of the leader":        {"0\n1\n7 250\n", tier.Yes},
		"those of one that was left": {"0\n1\n5 250\n", tier.No},
	} {
		w, b, s := owned(t)
		if w.remove("orders-0/leader-epoch-checkpoint"); c.record != "" {
			w.put("orders-0/leader-epoch-checkpoint", []byte(c.record))
		}
		b.owner.Ends = nil
		plain := content
		plain.Lineage = nil
		if f := s.Vet(context.Background(), logID(t, "orders/0"), plain); f.Lineage != c.want {
			t.Errorf("%s: %+v, want %s", name, f, c.want)
		}
	}
}

// TestVetReadsTheDirectory: what the directory does not say of itself is not known.
func TestVetReadsTheDirectory(t *testing.T) {
	t.Parallel()
	for text, name := range map[string]string{
		"version=1\ncluster.id=C\n": "meta.properties",
		"version=1\nnode.id=1\n":    "meta.properties",
		"version: 9\n":              "orders-0/partition.metadata",
	} {
		w, b, s := owned(t)
		w.put(name, []byte(text))
		got := s.Vet(context.Background(), logID(t, "orders/0"), content)
		if got.Asked == tier.Yes || !strings.Contains(got.Objection, name) || len(b.asked) > 0 {
			t.Errorf("%s: %+v, asked %v", name, got, b.asked)
		}
	}
	w := newMem(t)
	v := victims(t)[0]
	if got := v.fill(w).Vet(context.Background(), v.id, content); got != (gate.OwnerFacts{}) {
		t.Errorf("unlink: %+v", got)
	}
}

func drops(s tier.Scan) (dropping, left []tier.Offset) {
	for _, x := range s.Dropping {
		dropping = append(dropping, x.Base)
	}
	for _, x := range s.Segments {
		left = append(left, x.Base)
	}
	return dropping, left
}

// TestGive: a dropped segment is one that the broker gave up. Its files stay, and are no part of
// the log; where the broker forgets, after a crash, they are again.
func TestGive(t *testing.T) {
	t.Parallel()
	w, b, s := owned(t)
	v, at := victims(t)[0], now
	want := func(what string, dropping, left []tier.Offset) {
		t.Helper()
		at += hour // so that no listing is trusted any more
		res := scan(t, s, at)
		got, rest := drops(res.Scans[0])
		if !reflect.DeepEqual(got, dropping) || !reflect.DeepEqual(rest, left) {
			t.Errorf("%s: dropping %v, left %v", what, got, rest)
		}
	}
	want("before", nil, []tier.Offset{100, 200, 250})
	target := v.targetNow(w)
	target.Term = 7
	if err := v.drop(t, s, target); err != nil {
		t.Fatal(err)
	}
	if got := b.asked[len(b.asked)-1]; got != "delete orders/0 below 200 at 1 of T in 7" {
		t.Errorf("asked: %s", got)
	}
	if len(w.names(v.dir)) < 6 {
		t.Errorf("left are %v", w.names(v.dir))
	}
	want("given up", []tier.Offset{100}, []tier.Offset{200, 250})
	b.owner.Start = 120 // what the broker had written down before it crashed
	if got := s.Vet(context.Background(), v.id, content); got.Given || got.Begins != tier.Yes {
		t.Errorf("after the crash: %+v", got)
	}
	want("forgotten", nil, []tier.Offset{100, 200, 250})
	b.owner.Start = 200 // somebody else's request
	if got := s.Vet(context.Background(), v.id, content); !got.Given {
		t.Errorf("given up by another: %+v", got)
	}
	want("given up by another", []tier.Offset{100}, []tier.Offset{200, 250})
	w.put(v.dir+"/partition.metadata", []byte("version: 0\ntopic_id: U\n"))
	want("another topic", nil, []tier.Offset{100, 200, 250})
}

// TestWhatIsGoneIsNoLongerGiven: of a log whose directory is gone nothing is remembered, or a
// cluster whose topics come and go would fill the memory. One that comes back is asked about anew.
func TestWhatIsGoneIsNoLongerGiven(t *testing.T) {
	t.Parallel()
	w, b, s := owned(t)
	v := victims(t)[0]
	left := func(what string, at tier.Time, want ...tier.Offset) {
		t.Helper()
		scan(t, s, at)
		if _, got := drops(look(t, s, "orders/0")); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: left %v, want %v", what, got, want)
		}
	}
	scan(t, s, now)
	target := v.targetNow(w)
	target.Term = 7
	if err := v.drop(t, s, target); err != nil || b.owner.Start != 200 {
		t.Fatal(err)
	}
	left("given up", now+hour, 200, 250)
	if err := w.dir.Rename(v.dir, "away"); err != nil {
		t.Fatal(err)
	}
	if res, err := s.Scan(context.Background(), now+2*hour); err != nil || len(res.Logs) > 0 {
		t.Fatalf("%+v %v", res.Logs, err)
	}
	if err := w.dir.Rename("away", v.dir); err != nil {
		t.Fatal(err)
	}
	left("back again", now+3*hour, 100, 200, 250)
	if got := s.Vet(context.Background(), v.id, content); !got.Given {
		t.Errorf("asked anew: %+v", got)
	}
	left("asked anew", now+4*hour, 200, 250)
}

// TestGiveRefuses: nothing is asked for another file, and an error or a half-done deletion is none.
func TestGiveRefuses(t *testing.T) {
	t.Parallel()
	v := victims(t)[0]
	for name, change := range map[string]func(*world, *fakeBroker, *gate.Target){
		"another file": func(_ *world, _ *fakeBroker, x *gate.Target) { x.File.Inode++ },
		"other bytes":  func(_ *world, _ *fakeBroker, x *gate.Target) { x.Bytes++ },
		"refused":      func(_ *world, b *fakeBroker, _ *gate.Target) { b.err = errors.New("no") },
		"half-done":    func(_ *world, b *fakeBroker, _ *gate.Target) { b.keeps = true },
		"vanished": func(w *world, _ *fakeBroker, _ *gate.Target) {
			w.remove(v.dir + "/" + v.records)
		},
	} {
		w, b, s := owned(t)
		target := v.targetNow(w)
		change(w, b, &target)
		if err := v.drop(t, s, target); err == nil {
			t.Errorf("%s: dropped", name)
		}
		if b.owner.Start != 100 {
			t.Errorf("%s: the log begins at %d", name, b.owner.Start)
		}
	}
}
