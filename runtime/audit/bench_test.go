package audit

import (
	"testing"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

func osDir(b *testing.B) vfs.Dir {
	dir, err := vfs.OpenOS(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkIntend is one record, with its fsync, which is nearly all of it: so its input has only
// 25 bytes, where that of a policy has about a thousand.
func BenchmarkIntend(b *testing.B) {
	l := mustOpen(b, osDir(b), 0)
	defer func() { _ = l.Close() }()
	for b.Loop() {
		mustConclude(b, l, mustIntend(b, l, 0), deleted())
	}
}

// BenchmarkIntendTogether is the same by 16 at a time, who share fsyncs.
func BenchmarkIntendTogether(b *testing.B) {
	l := mustOpen(b, osDir(b), 0)
	defer func() { _ = l.Close() }()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			mustConclude(b, l, mustIntend(b, l, 0), deleted())
		}
	})
}

// BenchmarkVerify reads a log of 2,000 records.
func BenchmarkVerify(b *testing.B) {
	dir := newMem()
	l := mustOpen(b, dir, 0)
	for i := range tier.Offset(1000) {
		mustConclude(b, l, mustIntend(b, l, 10*i), deleted())
	}
	b.SetBytes(l.size)
	for b.Loop() {
		mustVerify(b, dir)
	}
}
