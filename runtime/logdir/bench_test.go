package logdir_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Sizes of the tree that scans are measured on.
const (
	benchLogs     = 1000
	benchSegments = 100_000
)

// benchTree makes a tree of empty segments: of a broker, or plain.
func benchTree(b *testing.B, layout tier.Layout) string {
	b.Helper()
	dir := b.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	var lines strings.Builder
	for l := range benchLogs {
		log := fmt.Sprintf("orders-%d", l)
		mkdirBench(b, filepath.Join(dir, log))
		for s := range benchSegments / benchLogs {
			stem := filepath.Join(log, fmt.Sprintf("%020d", s*1000))
			write(stem+".log", "")
			if layout == tier.LayoutKafka {
				write(stem+".index", "")
				write(stem+".timeindex", "")
			}
		}
		fmt.Fprintf(&lines, "orders %d %d\n", l, benchSegments)
	}
	if layout == tier.LayoutKafka {
		text := fmt.Sprintf("0\n%d\n%s", benchLogs, lines.String())
		for _, name := range []string{fileHW, fileRP, fileStart} {
			write(name, text)
		}
		write(fileClean, "")
		write("meta.properties", "version=0\n")
	}
	return dir
}

func mkdirBench(b *testing.B, dir string) {
	b.Helper()
	if err := os.Mkdir(dir, 0o777); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkScan measures the first scan of 100,000 segments in 1,000 logs and one that finds them
// unchanged, beside listing every directory and looking at every file once; a Kafka segment is
// three files.
func BenchmarkScan(b *testing.B) {
	for _, layout := range []tier.Layout{tier.LayoutPlain, tier.LayoutKafka} {
		dir := benchTree(b, layout)
		open := func() *logdir.Source {
			s, err := logdir.Open(logdir.Config{Name: "bench", Layout: layout, Root: osRoot(dir),
				LocalDelete: tier.LocalDeleteNever})
			if err != nil {
				b.Fatal(err)
			}
			return s
		}
		at := tier.TimeOf(time.Now()) + hour
		b.Run(string(layout)+"/stat", func(b *testing.B) {
			for b.Loop() {
				walkAlone(b, dir)
			}
		})
		b.Run(string(layout)+"/first", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				res, err := open().Scan(context.Background(), at)
				if err != nil || len(res.Scans) != benchLogs {
					b.Fatal(len(res.Scans), err)
				}
			}
		})
		b.Run(string(layout)+"/unchanged", func(b *testing.B) {
			s := open()
			if _, err := s.Scan(context.Background(), at); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				res, err := s.Scan(context.Background(), at)
				if err != nil || len(res.Unchanged) != benchLogs {
					b.Fatal(len(res.Unchanged), err)
				}
			}
		})
	}
}

// cachedDir keeps what was read in the page cache, so that not the disk is measured.
type cachedDir struct{ vfs.Dir }

func (d cachedDir) Open(name string) (vfs.File, error) {
	f, err := d.Dir.Open(name)
	return cachedFile{f}, err
}

type cachedFile struct{ vfs.File }

func (cachedFile) DropCache(int64, int64) {}

// walkAlone lists every directory below dir and looks at every file.
func walkAlone(b *testing.B, dir string) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		_, err = e.Info()
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRead measures reading a segment of 128 MiB out of the page cache with every check,
// beside the SHA-256 of the same bytes alone, for batches of 1 KiB and of 16 KiB.
func BenchmarkRead(b *testing.B) {
	for _, body := range []int{1 << 10, 16 << 10} {
		dir := b.TempDir()
		mkdirBench(b, filepath.Join(dir, "orders-0"))
		var log []byte
		var next tier.Offset
		for len(log) < 128<<20 {
			log = kbatchtest.V2(log, kbatchtest.Spec{Base: next, Last: next + 9, Body: body})
			next += 10
		}
		name := filepath.Join(dir, file("orders-0", 0, "log"))
		for name, data := range map[string][]byte{name: log,
			filepath.Join(dir, file("orders-0", next, "log")): nil} {
			if err := os.WriteFile(name, data, 0o666); err != nil {
				b.Fatal(err)
			}
		}
		s, err := logdir.Open(logdir.Config{Name: "bench", Layout: tier.LayoutKafka,
			LocalDelete: tier.LocalDeleteNever, Root: func() (vfs.Dir, error) {
				root, err := vfs.OpenOS(dir)
				return cachedDir{root}, err
			}})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("checked/batch=%dKiB", body>>10), func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(s, 0, next); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("sha256/batch=%dKiB", body>>10), func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			for b.Loop() {
				hashAlone(b, name)
			}
		})
	}
}

func hashAlone(b *testing.B, name string) {
	b.Helper()
	f, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	h := sha256.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, make([]byte, 1<<20))
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}
