package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// source is a directory of logs to copy. Behind its closed segments each log has an active one,
// which nobody copies.
type source struct {
	name   string // for -only
	what   string
	layout string
	fill   func(*source) error

	dir   string   // of the source
	logs  []string // the directories of its logs
	files int      // of closed segments
	bytes int64    // in these
}

// copySources are what copying is measured on. Their bytes are random: nothing on the way can make
// them fewer.
var copySources = []*source{
	{name: "large", what: "16 files of 64 MiB", layout: "plain", fill: plainFiles(16, 64<<20)},
	{name: "small", what: "200 files of 1 MiB", layout: "plain", fill: plainFiles(200, 1<<20)},
	{name: "kafka", what: "8 Kafka segments of 64 MiB", layout: "kafka",
		fill: kafkaSegments(2, 4, 64<<20)},
}

// memorySources are the two sizes of a segment whose peaks of memory are compared.
var memorySources = []*source{
	{what: "a sparse segment of 64 MiB", layout: "plain", fill: sparseFile(64 << 20)},
	{what: "a sparse segment of 4 GiB", layout: "plain", fill: sparseFile(4 << 30)},
}

// make writes the source to the directory.
func (s *source) make(dir string) error {
	s.dir, s.logs, s.files, s.bytes = dir, nil, 0, 0
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return s.fill(s)
}

// each calls do with the path of each file of a closed segment.
func (s *source) each(do func(path string) error) error {
	return walkFiles(s.logs, func(path string, _ int64) error { return do(path) })
}

// log makes a log's directory. Its active segment comes last, once the closed ones were counted.
func (s *source) log(name string) (string, error) {
	dir := filepath.Join(s.dir, name)
	s.logs = append(s.logs, dir)
	return dir, os.MkdirAll(dir, 0o777)
}

// count notes what is to be copied.
func (s *source) count() error {
	return walkFiles(s.logs, func(_ string, size int64) error {
		s.files++
		s.bytes += size
		return nil
	})
}

// segment is the name of a segment's file.
func segment(base int64, ext string) string { return fmt.Sprintf("%020d%s", base, ext) }

// plainFiles fills a source with one log of n closed segments of random bytes.
func plainFiles(n int, size int64) func(*source) error {
	return func(s *source) error {
		dir, err := s.log("orders/0")
		if err != nil {
			return err
		}
		noise := rand.NewChaCha8([32]byte{})
		for i := range n {
			if err := writeFile(filepath.Join(dir, segment(int64(i), ".log")), func(w io.Writer) error {
				return transfer(w, io.LimitReader(noise, size))
			}); err != nil {
				return err
			}
		}
		if err := s.count(); err != nil {
			return err
		}
		return s.active(dir, int64(n))
	}
}

// sparseFile fills a source with one log of one closed segment without a single block on disk.
func sparseFile(size int64) func(*source) error {
	return func(s *source) error {
		dir, err := s.log("orders/0")
		if err != nil {
			return err
		}
		path := filepath.Join(dir, segment(0, ".log"))
		if err := writeFile(path, func(io.Writer) error { return nil }); err != nil {
			return err
		}
		if err := os.Truncate(path, size); err != nil {
			return err
		}
		if err := s.count(); err != nil {
			return err
		}
		return s.active(dir, 1)
	}
}

// active puts the segment that still grows into a log, empty.
func (s *source) active(dir string, base int64) error {
	return os.WriteFile(filepath.Join(dir, segment(base, ".log")), nil, 0o666)
}

// writeFile makes a file of what fill writes.
func writeFile(path string, fill func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = fill(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// checkpoint writes a broker's checkpoint file with the offset for each partition.
func checkpoint(dir, name, topic string, partitions int, offset int64) error {
	var s strings.Builder
	fmt.Fprintf(&s, "0\n%d\n", partitions)
	for p := range partitions {
		fmt.Fprintf(&s, "%s %d %d\n", topic, p, offset)
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(s.String()), 0o666)
}
