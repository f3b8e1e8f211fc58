package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 9, 2}, 3},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.values, got, c.want)
		}
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]figure{
		"12.3 s":                {Value: 12.34, Unit: seconds},
		"45.0 ms":               {Value: 0.045, Unit: seconds},
		"7.90 µs":               {Value: 7.9e-6, Unit: seconds},
		"0.40 ns":               {Value: 4e-10, Unit: seconds},
		"57193 /s":              {Value: 57193.4, Unit: perSecond},
		"812 MiB/s, 1.20 s CPU": {Value: 812.1, Unit: mibPerSec, CPU: 1.2},
	} {
		if got := f.String(); got != want {
			t.Errorf("%+v is written %q, want %q", f, got, want)
		}
	}
}

// A ratio is the median of the rounds' ratios, which one slow round does not move, and not the
// ratio of the medians.
func TestCompared(t *testing.T) {
	t.Parallel()
	all := func(values ...float64) (out []figure) {
		for _, v := range values {
			out = append(out, figure{Value: v, Unit: perSecond})
		}
		return out
	}
	r := compared("x", all(10, 30, 2), "y", all(10, 10, 1), atLeast(2))
	if r.Tierd.Value != 10 || r.Other.Value != 10 || r.Ratio != 2 || !*r.Met {
		t.Errorf("got %+v", r)
	}
	for _, c := range []struct {
		target *target
		met    bool
	}{
		{atLeast(1.9), true}, {atLeast(2.1), false}, {atMost(2.1), true}, {atMost(1.9), false},
		{figureUpTo(10), true}, {figureUpTo(9.9), false},
		{figureOf(10), true}, {figureOf(10.1), false},
	} {
		if r.Target = c.target; *r.judge().Met != c.met {
			t.Errorf("%+v of %+v: met is %v, want %v", c.target, r, !c.met, c.met)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	one, two := figure{Value: 1, Unit: seconds}, figure{Value: 2, Unit: seconds}
	var out bytes.Buffer
	err := printTable(&out, []row{
		compared("a", []figure{one}, "b", []figure{two}, atLeast(0.9)),
		compared("c", []figure{two}, "", nil, figureUpTo(3)),
		compared("d", []figure{two}, "", nil, nil),
		compared("e", []figure{{Value: 2, Unit: perSecond}}, "", nil, figureOf(3)),
	})
	want := `| what | tierd | against | ratio | target |
| --- | --- | --- | --- | --- |
| a | 1.00 s | b: 2.00 s | 0.50 | at least 0.90: **missed** |
| c | 2.00 s |  |  | at most 3.00 s: met |
| d | 2.00 s |  |  |  |
| e | 2.00 /s |  |  | at least 3.00 /s: **missed** |
`
	if diff := cmp.Diff(want, out.String()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	found := results{}
	for _, output := range []string{
		"goos: linux\nBenchmarkAppend/callers=10-2  \t  9752\t 1200 ns/op\t 500 records/s\nPASS\n",
		"BenchmarkAppend/callers=10 \t 1 \t 1300 ns/op\t 600 records/s\n--- BENCH: x\n    y: 7 files\n",
	} {
		if err := found.read(output); err != nil {
			t.Fatal(err)
		}
	}
	got, err := found.figures(metric{"Append/callers=10", "records/s"}, 2)
	want := []figure{{Value: 500, Unit: perSecond}, {Value: 600, Unit: perSecond}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, m := range []metric{{"Append/callers=11", "records/s"}, {"Append/callers=10", "B/op"}} {
		if got, err := found.figures(m, 2); err == nil {
			t.Errorf("%v: got %v, want an error", m, got)
		}
	}
	if err := found.read("BenchmarkX 1 two ns/op"); err == nil {
		t.Error("a number that is none was read")
	}
}

// Benchmarks stand beside the code that they measure, and are renamed with it.
func TestSubjectsAreThere(t *testing.T) {
	t.Parallel()
	for _, s := range subjects {
		files, err := filepath.Glob(filepath.Join("..", "..", s.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var source []byte
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			source = append(source, text...)
		}
		top, _, _ := strings.Cut(s.pattern, "/")
		for _, c := range s.comparisons {
			for _, m := range []metric{c.tierd, c.other} {
				if m == (metric{}) {
					continue
				}
				name, _, _ := strings.Cut(m.bench, "/")
				if !bytes.Contains(source, []byte("func Benchmark"+name+"(")) {
					t.Errorf("%s has no Benchmark%s", s.pkg, name)
				}
				if !regexp.MustCompile(top).MatchString("Benchmark" + name) {
					t.Errorf("%s: %s does not run Benchmark%s", s.name, s.pattern, name)
				}
				if _, ok := units[m.unit]; !ok {
					t.Errorf("%s: nobody knows the unit %s", s.name, m.unit)
				}
			}
		}
	}
}

// What is measured must be what tierd takes for whole: every closed segment is read with all
// checks, and none of its files is left out.
func TestSourcesAreSound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source   source
		segments int
	}{
		"plain":  {source{layout: "plain", fill: plainFiles(3, 10_000)}, 3},
		"sparse": {source{layout: "plain", fill: sparseFile(1 << 20)}, 1},
		"kafka":  {source{layout: "kafka", fill: kafkaSegments(2, 3, 100_000)}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := c.source.make(t.TempDir()); err != nil {
				t.Fatal(err)
			}
			segments, files, size := readAll(t, &c.source)
			if segments != c.segments || files != c.source.files || size != c.source.bytes {
				t.Errorf("%d closed segments of %d files with %d bytes, want %d of %d with %d", segments,
					files, size, c.segments, c.source.files, c.source.bytes)
			}
		})
	}
}

// readAll scans the source and reads its closed segments.
func readAll(t *testing.T, s *source) (segments, files int, size int64) {
	t.Helper()
	dir, err := logdir.Open(logdir.Config{Name: "bench", Layout: tier.Layout(s.layout),
		LocalDelete: tier.LocalDeleteNever,
		Root:        func() (vfs.Dir, error) { return vfs.OpenOS(s.dir) }})
	if err != nil {
		t.Fatal(err)
	}
	found, err := dir.Scan(context.Background(), 0)
	if err != nil || found.Trouble != nil || len(found.Problems) > 0 {
		t.Fatalf("scan: %+v, %v", found, err)
	}
	for _, scan := range found.Scans {
		for _, seg := range scan.Segments {
			if !seg.Closed() {
				continue
			}
			content, err := dir.Read(context.Background(), scan.Log, seg.Range)
			if err != nil || len(content.Problems) > 0 {
				t.Fatalf("%s %s: %v, %v", scan.Log, seg.Range, content.Problems, err)
			}
			segments++
			files += len(content.Files)
			size += content.Bytes()
		}
	}
	return segments, files, size
}

// The Go contender does all of the work that it is compared for.
func TestStepsCopyEverything(t *testing.T) {
	t.Parallel()
	s := source{layout: "kafka", fill: kafkaSegments(2, 2, 50_000)}
	dir := t.TempDir()
	b := &bench{ctx: context.Background(), dir: dir, progress: &bytes.Buffer{}}
	if err := s.make(filepath.Join(dir, "source")); err != nil {
		t.Fatal(err)
	}
	if err := b.settle(&s); err != nil {
		t.Fatal(err)
	}
	if _, err := b.steps(&s); err != nil {
		t.Fatal(err)
	}
	sums := map[[32]byte]int{}
	sum := func(by int) func(string, int64) error {
		return func(path string, _ int64) error {
			h, err := hashFile(path)
			sums[h] += by
			return err
		}
	}
	if err := walkFiles(s.logs, sum(1)); err != nil {
		t.Fatal(err)
	}
	if err := walkFiles([]string{b.copies()}, sum(-1)); err != nil {
		t.Fatal(err)
	}
	for h, n := range sums {
		if n != 0 {
			t.Errorf("%x: %d more in the source than in the copy", h, n)
		}
	}
}
