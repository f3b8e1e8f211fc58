package objstore

import (
	"fmt"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// BenchmarkPutFact publishes the fact of one more segment of a log that has many, and the
// checkpoints that become due by it: the cost is amortised over the whole block of level 2 that the
// segment lies in, and must not depend on how many segments there are.
func BenchmarkPutFact(b *testing.B) {
	const block = tier.Position(4096)
	for _, segments := range []tier.Position{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("segments=%d", segments), func(b *testing.B) {
			s := newBench(b)
			from := segments / block * block
			facts := make([]tier.Fact, block) // the last ones, as the ledger would give them
			put := func(pos tier.Position) {
				facts[pos%block] = add(pos)
				id := attempt(uint64(pos))
				if err := s.PutFact(b.Context(), orders, id, facts[pos%block]); err != nil {
					b.Fatal(err)
				}
				for level := uint8(1); level <= tier.CheckpointLevelMax; level++ {
					n := tier.Position(tier.CheckpointSpan(level))
					if (pos+1)%n != 0 {
						break
					}
					first := (pos + 1 - n) % block
					err := s.PutCheckpoint(b.Context(), orders, level, blockOf(level, pos),
						facts[first:first+n])
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			for pos := range from {
				// As many objects as there would be; their content makes no difference.
				s.mem.Put(entryKey(b, s.Store, pos), nil)
			}
			rounds := 0
			for b.Loop() {
				for pos := from; pos < from+block; pos++ {
					put(pos)
				}
				rounds++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rounds)/float64(block), "ns/segment")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkManifest reads the manifest of a log with all its checkpoints.
func BenchmarkManifest(b *testing.B) {
	for _, segments := range []tier.Position{63, 4095, 100_000} {
		b.Run(fmt.Sprintf("segments=%d", segments), func(b *testing.B) {
			s := newBench(b)
			facts := make([]tier.Fact, segments)
			for pos := range segments {
				facts[pos] = add(pos)
				s.mem.Put(entryKey(b, s.Store, pos), nil)
			}
			whole := [3]tier.Position{segments, segments / 64 * 64, segments / 4096 * 4096}
			for pos := whole[1]; pos < segments; pos++ {
				s.published(b, facts[pos])
			}
			for from := whole[2]; from < whole[1]; from += 64 {
				s.checkpointed(b, 1, blockOf(1, from), facts[from:from+64]...)
			}
			for from := tier.Position(0); from < whole[2]; from += 4096 {
				s.checkpointed(b, 2, blockOf(2, from), facts[from:from+4096]...)
			}
			calls := s.faults.Calls()
			rounds := 0
			for b.Loop() {
				got, problems, err := s.Manifest(b.Context(), orders)
				if err != nil || len(problems) > 0 || len(got) != int(segments) {
					b.Fatal(len(got), problems, err)
				}
				rounds++
			}
			b.ReportMetric(float64(s.faults.Calls()-calls)/float64(rounds), "requests/op")
		})
	}
}

// BenchmarkVerifyFull reads an object of 64 MiB back and checks both checksums.
func BenchmarkVerifyFull(b *testing.B) {
	content := noise(64 << 20)
	d := digest("f", content)
	s := newBench(b)
	if err := s.PutFile(b.Context(), file(0, "f"), at(content), d.Size); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(d.Size)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.VerifyFile(b.Context(), file(0, "f"), d, tier.VerifyFull, nil); err != nil {
			b.Fatal(err)
		}
	}
}
