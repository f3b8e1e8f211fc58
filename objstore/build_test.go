package objstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

const ledger = "0123456789abcdef"

var orders = tier.LogID{Table: "orders", Name: "0"}

// tb is what testing.TB and rapid.T have in common here.
type tb interface {
	Helper()
	Fatal(args ...any)
	Context() context.Context
}

// bench is a store over a bucket in memory with faults before it.
type bench struct {
	mem    *fault.Mem
	faults *fault.Bucket
	*Store
}

func newBench(t tb) *bench {
	t.Helper()
	mem := fault.NewMem(func() time.Time { return time.Unix(1700000000, 0) })
	faults := fault.Wrap(mem, nil)
	s, err := New(faults, ledger)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{mem, faults, s}
}

func overThanos(t tb) *Store {
	t.Helper()
	s, err := New(thanos.NewInMemBucket(), ledger)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func attempt(n uint64) (id tier.AttemptID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

// file is the key of a file of the segment that begins at base.
func file(base tier.Offset, name string) tier.ObjectKey {
	return tier.ObjectKey{Log: orders, Epoch: 1, Base: base, Attempt: attempt(uint64(base)),
		Name: name}
}

func digest(name string, content []byte) tier.FileDigest {
	return tier.FileDigest{Name: name, Size: int64(len(content)), SHA256: sha256.Sum256(content),
		CRC32C: crc32.Checksum(content, castagnoli)}
}

// noise is n bytes of which no two stretches are alike.
func noise(n int) []byte {
	out := make([]byte, 0, n+sha256.Size)
	sum := sha256.Sum256([]byte("noise"))
	for len(out) < n {
		out = append(out, sum[:]...)
		sum = sha256.Sum256(sum[:])
	}
	return out[:n]
}

// add is the fact of a copy of 100 offsets with the three files of a Kafka segment. Its attempt is
// attempt(pos).
func add(pos tier.Position) tier.Fact {
	base := tier.Offset(pos) * 100
	c := tier.Copy{
		Attempt:  attempt(uint64(pos)),
		Position: pos,
		Epoch:    1,
		Content: tier.Content{
			Range:    tier.Range{Base: base, Next: base + 100},
			Lineage:  []tier.EpochStart{{Epoch: 7, Start: base}},
			MaxTime:  1700000000123000000,
			Batches:  4,
			LastNext: base + 100,
		},
		ModTime:    1700000001000000000,
		Verified:   tier.VerifySample,
		FinishedAt: 1700000060000000000,
	}
	for i, ext := range []string{"log", "index", "timeindex"} {
		name := fmt.Sprintf("%020d.%s", base, ext)
		d := digest(name, fmt.Appendf(nil, "%d %s", pos, ext))
		c.Content.Files = append(c.Content.Files, tier.SourceFile{FileDigest: d,
			Stat: tier.Stat{Inode: uint64(100 + i), Size: d.Size, ModTime: 1700000001000000000}})
	}
	return tier.Fact{Position: pos, Epoch: 1, At: 1700000060000000000, Copied: base + 100, Add: &c}
}

func hole(pos tier.Position, base, next tier.Offset) tier.Fact {
	return tier.Fact{Position: pos, Epoch: 1, At: 1700000070000000000, Copied: next, Hole: &tier.Hole{
		Range: tier.Range{Base: base, Next: next}, Cause: tier.HoleSourceGone,
		At: 1700000065000000000}}
}

func start(pos tier.Position, at tier.Offset) tier.Fact {
	return tier.Fact{Position: pos, Epoch: 2, At: 1700000080000000000, Copied: at, Start: &at}
}

func clip(pos tier.Position, at tier.Offset) tier.Fact {
	return tier.Fact{Position: pos, Epoch: 2, At: 1700000090000000000, Clip: &at}
}

// published puts the entries of the facts, each under attempt(position).
func (b *bench) published(t tb, facts ...tier.Fact) {
	t.Helper()
	for _, f := range facts {
		if err := b.PutFact(t.Context(), orders, attempt(uint64(f.Position)), f); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) checkpointed(t tb, level uint8, block uint64, facts ...tier.Fact) {
	t.Helper()
	if err := b.PutCheckpoint(t.Context(), orders, level, block, facts); err != nil {
		t.Fatal(err)
	}
}

func entryKey(t tb, s *Store, pos tier.Position) string {
	t.Helper()
	key, err := s.keys.Entry(orders, pos, attempt(uint64(pos)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func fileKey(t tb, s *Store, k tier.ObjectKey) string {
	t.Helper()
	key, err := s.keys.File(k)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// readerAt hides everything of a bytes.Reader but ReadAt.
type readerAt struct{ r *bytes.Reader }

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r.r.ReadAt(p, off) }

func at(content []byte) readerAt { return readerAt{bytes.NewReader(content)} }

func opened(pos tier.Position, at tier.Offset) tier.Fact {
	return tier.Fact{Position: pos, Epoch: 3, At: 1700000095000000000, Copied: at, Open: &at}
}
