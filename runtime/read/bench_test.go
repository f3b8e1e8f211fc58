package read

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

// BenchmarkSequential reads a segment of 64 MiB in fetches of a megabyte: from the store alone,
// with nothing cached, with all of it cached in memory, and from local disk.
func BenchmarkSequential(b *testing.B) {
	dir := b.TempDir()
	id := tier.LogID{Table: "bench", Name: "0"}
	if err := os.Mkdir(filepath.Join(dir, "bench-0"), 0o700); err != nil {
		b.Fatal(err)
	}
	var data []byte
	next := tier.Offset(0)
	for ; len(data) < 64<<20; next += 16 {
		data = kbatchtest.V2(data, kbatchtest.Spec{Base: next, Last: next + 15, Body: 16 << 10})
	}
	end := "0\n1\nbench 0 " + strconv.FormatInt(int64(next), 10) + "\n"
	for name, text := range map[string]string{"bench-0/" + name(0, ".log"): string(data),
		"bench-0/" + name(next, ".log"): "", "replication-offset-checkpoint": end,
		"recovery-point-offset-checkpoint": end, "meta.properties": "version=0\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	w := newWorld(b, logdir.Config{Name: "broker", Layout: tier.LayoutKafka,
		LocalDelete: tier.LocalDeleteNever}, dir)
	read := func(b *testing.B, cold bool) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if cold {
				w.useCache(nil)
			}
			got := 0
			for o := tier.Offset(0); o < next; {
				c, err := w.reader.Read(b.Context(), id, o, 1<<20)
				if err != nil {
					b.Fatal(err)
				}
				got, o = got+len(c.Batches), c.Next
			}
			if got != len(data) {
				b.Fatalf("%d bytes, want %d", got, len(data))
			}
		}
	}
	b.Run("local", func(b *testing.B) { read(b, false) })
	w.archive(id)
	w.drop(id, 1)
	w.scan()
	b.Run("cold", func(b *testing.B) { read(b, true) })
	b.Run("warm", func(b *testing.B) { read(b, false) })
}
