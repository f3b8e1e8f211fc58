package read

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

// stableOffsets are the last stable offsets that the broker itself answered with.
func stableOffsets(t *testing.T, set string) map[tier.LogID]tier.Offset {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(fixtures, set, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Partitions []struct {
			Dir        string
			LastStable tier.Offset `json:"last_stable"`
		}
	}
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	out := map[tier.LogID]tier.Offset{}
	for _, p := range f.Partitions {
		out[(&partition{Dir: p.Dir}).id()] = p.LastStable
	}
	return out
}

// TestLastStableAsTheBroker compares the last stable offset with what the broker said, as the logs
// are, and with all closed segments in the store alone.
func TestLastStableAsTheBroker(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"v4", "v4-live", "magic0", "magic1"} {
		for _, remote := range []bool{false, true} {
			w := kafkaWorld(t, set)
			for id, want := range stableOffsets(t, set) {
				if remote {
					w.drop(id, len(w.archive(id)))
					w.scan()
				}
				for range 2 {
					if got, err := w.reader.LastStable(t.Context(), id); err != nil || got != want {
						t.Errorf("%s %v remote=%v: %d %v, want %d", set, id, remote, got, err, want)
					}
				}
			}
		}
	}
}

// marker is the end of a transaction.
func marker(base tier.Offset, producer int64) []byte {
	b := kbatchtest.V2(nil, kbatchtest.Spec{Base: base, Last: base, Transactional: true, Control: true,
		Body: 16})
	binary.BigEndian.PutUint64(b[43:], uint64(producer))
	kbatchtest.Seal(b)
	return b
}

// part is records of a transaction.
func part(base, last tier.Offset, producer int64) []byte {
	b := kbatchtest.V2(nil, kbatchtest.Spec{Base: base, Last: last, Transactional: true, Body: 16})
	binary.BigEndian.PutUint64(b[43:], uint64(producer))
	kbatchtest.Seal(b)
	return b
}

// grown is a log of one partition that a test writes itself.
type grown struct {
	*world
	id  tier.LogID
	dir string
}

func newGrown(t *testing.T) *grown {
	w := kafkaWorld(t, "v4")
	g := &grown{world: w, id: tier.LogID{Table: "grown", Name: "0"},
		dir: filepath.Join(w.dir, "grown-0")}
	w.must(os.Mkdir(g.dir, 0o700))
	w.must(os.WriteFile(filepath.Join(g.dir, "partition.metadata"),
		[]byte("version: 0\ntopic_id: TPLl2WaESZiUgUX4yppzog\n"), 0o600))
	return g
}

// write writes a file of the partition, and lets the source be looked at.
func (g *grown) write(name string, high string, batches ...[]byte) {
	g.t.Helper()
	var all []byte
	for _, b := range batches {
		all = append(all, b...)
	}
	g.must(os.WriteFile(filepath.Join(g.dir, name), all, 0o600))
	g.must(os.WriteFile(filepath.Join(g.world.dir, "replication-offset-checkpoint"),
		[]byte("0\n1\ngrown 0 "+high+"\n"), 0o600))
	g.scan()
}

func (g *grown) stable(want tier.Offset) {
	g.t.Helper()
	if got, err := g.reader.LastStable(g.t.Context(), g.id); err != nil || got != want {
		g.t.Errorf("%d %v, want %d", got, err, want)
	}
}

const (
	log0  = "00000000000000000000.log"
	log30 = "00000000000000000030.log"
)

// TestLastStableFollowsTheLog grows a log, and looks at each step.
func TestLastStableFollowsTheLog(t *testing.T) {
	t.Parallel()
	g := newGrown(t)
	plain := kbatchtest.V2(nil, kbatchtest.Spec{Base: 0, Last: 4})
	g.write(log0, "5", plain, make([]byte, 500)) // a file that is made large beforehand
	g.stable(5)
	g.write(log0, "10", plain, part(5, 9, 1))
	g.stable(5)
	g.write(log0, "20", plain, part(5, 9, 1), part(10, 19, 2))
	g.stable(5)
	g.write(log0, "20", plain, part(5, 9, 1), part(10, 19, 2), marker(20, 1))
	g.stable(5) // the marker is above the high watermark
	g.write(log0, "21", plain, part(5, 9, 1), part(10, 19, 2), marker(20, 1))
	g.stable(10)
	g.write(log0, "22", plain, part(5, 9, 1), part(10, 19, 2), marker(20, 1), marker(21, 2))
	g.stable(22)
	// Another leader never had the second transaction, and writes on from there.
	g.write(log0, "30", plain, part(5, 9, 1), marker(10, 1), part(11, 19, 3),
		kbatchtest.V2(nil, kbatchtest.Spec{Base: 20, Last: 29}))
	g.stable(11)
	g.write(log0, "10", plain, part(5, 9, 1))
	g.stable(5)
}

// snapshotOf is a snapshot of producers and where their transactions begin.
func snapshotOf(open map[uint64]uint64) []byte {
	out := []byte{0, 1, 0, 0, 0, 0, 0, 0, 0, byte(len(open))}
	for producer, first := range open {
		e := make([]byte, 46)
		binary.BigEndian.PutUint64(e, producer)
		binary.BigEndian.PutUint64(e[38:], first)
		out = append(out, e...)
	}
	binary.BigEndian.PutUint32(out[2:], crc32.Checksum(out[6:],
		crc32.MakeTable(crc32.Castagnoli)))
	return out
}

// TestLastStableBySnapshotAlone has only the snapshot to know of a transaction that began in a
// segment that is gone.
func TestLastStableBySnapshotAlone(t *testing.T) {
	t.Parallel()
	g := newGrown(t)
	g.write("00000000000000000030.snapshot", "40", snapshotOf(map[uint64]uint64{1: 0, 3: 21}))
	g.write(log30, "40", marker(30, 1), kbatchtest.V2(nil, kbatchtest.Spec{Base: 31, Last: 39}))
	g.stable(30)
}

// TestLastStableBySnapshot begins with what the snapshot of the last segment says, and looks
// through those before it where it says nothing.
func TestLastStableBySnapshot(t *testing.T) {
	t.Parallel()
	for _, damage := range []func(b []byte){nil, func(b []byte) { b[1] = 2 },
		func(b []byte) { b[20]++ }} {
		g := newGrown(t)
		g.write(log0, "30", part(0, 9, 1), part(10, 19, 2), marker(20, 2), part(21, 29, 3))
		snapshot := snapshotOf(map[uint64]uint64{1: 0, 3: 21})
		if damage != nil {
			damage(snapshot)
		}
		g.write("00000000000000000030.snapshot", "30", snapshot)
		g.write(log30, "31", marker(30, 1))
		g.stable(21)
	}
}

// TestLastStableInTheStore asks for what it needs, once.
func TestLastStableInTheStore(t *testing.T) {
	t.Parallel()
	id := tier.LogID{Table: "transactions", Name: "0"}
	w := remoteWorld(t, id)
	w.useCache(nil)
	asked := 0
	w.bucket.SetHook(func(fault.Op) fault.Effect { asked++; return fault.Effect{} })
	if _, err := w.reader.LastStable(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	before := asked
	if _, err := w.reader.LastStable(t.Context(), id); err != nil || asked != before {
		t.Errorf("%d requests, then %d: %v", before, asked-before, err)
	}
}

// TestLastStableIsNotGuessed: a snapshot that the store cannot give just now is one that there is.
// What is known without it is too little, and would be remembered.
func TestLastStableIsNotGuessed(t *testing.T) {
	t.Parallel()
	g := newGrown(t)
	g.must(os.WriteFile(filepath.Join(g.world.dir, "recovery-point-offset-checkpoint"),
		[]byte("0\n1\ngrown 0 80\n"), 0o600))
	g.write(log0, "80", part(0, 9, 1))
	for base := tier.Offset(10); base < 80; base += 10 {
		g.write(name(base, extSnapshot), "80", snapshotOf(map[uint64]uint64{1: 0}))
		g.write(name(base, extLog), "80", records(base, base+9))
	}
	if n := len(g.archive(g.id)); n != 7 {
		t.Fatalf("%d segments were copied", n)
	}
	g.must(os.RemoveAll(g.dir))
	g.scan()
	down := errors.New("the store is down")
	g.bucket.SetHook(func(op fault.Op) fault.Effect {
		if strings.HasSuffix(op.Key, extSnapshot) {
			return fault.Effect{Err: down}
		}
		return fault.Effect{}
	})
	if got, err := g.reader.LastStable(t.Context(), g.id); !errors.Is(err, down) {
		t.Errorf("%d %v, want what the store says", got, err)
	}
	g.bucket.SetHook(nil)
	g.stable(0)
}
