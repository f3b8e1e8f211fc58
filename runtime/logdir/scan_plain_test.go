package logdir_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

func next(n logdir.Next) func(*logdir.Config) {
	return func(c *logdir.Config) { c.Next = n }
}

func closedAfter(d time.Duration) func(*logdir.Config) {
	return func(c *logdir.Config) { c.ClosedAfter = d }
}

func pattern(expr string) func(*logdir.Config) {
	return func(c *logdir.Config) { c.Pattern = regexp.MustCompile(expr) }
}

// plainFile is a file in the directory "a/b" with so many bytes.
type plainFile struct {
	name string
	size int
}

// TestPlainSegments says which segments a directory of files is, for each way to know their ends.
func TestPlainSegments(t *testing.T) {
	t.Parallel()
	const top = "9223372036854775807" // the greatest offset
	for _, c := range []struct {
		name    string
		next    logdir.Next
		age     time.Duration
		files   []plainFile
		want    string
		whole   bool
		problem string // codes of problems, in short
	}{
		{"following", logdir.NextFollowing, 0, []plainFile{{"0.log", 5}, {"100.log", 0},
			{"250.log", 9}}, "0-100 100-250 250-250?roll", true, ""},
		{"sorted by number", logdir.NextFollowing, 0, []plainFile{{"9.log", 1}, {"10.log", 1}},
			"9-10 10-10?roll", true, ""},
		{"one file", logdir.NextFollowing, 0, []plainFile{{"0007.log", 1}}, "7-7?roll", true, ""},
		{"greatest offset", logdir.NextFollowing, 0, []plainFile{{"1.log", 1}, {top + ".log", 1}},
			"1-" + top + " " + top + "-" + top + "?roll", true, ""},
		{"one offset a file", logdir.NextBasePlus1, 0, []plainFile{{"3.log", 7}, {"5.log", 0}},
			"3-4 5-6?roll", true, ""},
		{"one offset a file, aged", logdir.NextBasePlus1, time.Hour, []plainFile{{"3.log", 7},
			{"5.log", 0}}, "3-4 5-6", true, ""},
		{"too young", logdir.NextBasePlus1, time.Hour + 1, []plainFile{{"3.log", 7}}, "3-4?roll",
			true, ""},
		{"bytes", logdir.NextBaseSize, 0, []plainFile{{"0.log", 100}, {"100.log", 20}},
			"0-100 100-120?roll", true, ""},
		{"bytes, aged", logdir.NextBaseSize, time.Minute,
			[]plainFile{{"0.log", 100}, {"100.log", 20}}, "0-100 100-120", true, ""},
		{"bytes with a gap", logdir.NextBaseSize, 0, []plainFile{{"0.log", 100}, {"150.log", 20}},
			"0-100 150-170?roll", true, ""},
		{"bytes, the last one empty", logdir.NextBaseSize, time.Minute, []plainFile{{"0.log", 100},
			{"100.log", 0}}, "0-100 100-100?roll", true, ""},
		{"bytes, an empty one between", logdir.NextBaseSize, 0, []plainFile{{"0.log", 0},
			{"100.log", 1}}, "100-101?roll", true, "a/b/0.log:bad-name"},
		{"bytes that overlap", logdir.NextBaseSize, 0, []plainFile{{"0.log", 101}, {"100.log", 20},
			{"120.log", 5}}, "120-125?roll", false, "a/b/100.log:duplicate-base"},
		{"bytes beyond all offsets", logdir.NextBaseSize, 0,
			[]plainFile{{"9223372036854775800.log", 100}},
			"9223372036854775800-" + top + "?roll", true, ""},
		{"the same base twice", logdir.NextFollowing, 0, []plainFile{{"0.log", 1}, {"1.log", 1},
			{"01.log", 2}, {"2.log", 1}}, "0-1 2-2?roll", false, "a/b/1.log:duplicate-base"},
		{"the same base thrice", logdir.NextFollowing, 0, []plainFile{{"001.log", 1}, {"1.log", 1},
			{"01.log", 2}}, "", false, "a/b/01.log:duplicate-base a/b/1.log:duplicate-base"},
		{"beyond all offsets", logdir.NextFollowing, 0, []plainFile{{"9223372036854775808.log", 1},
			{"1.log", 1}}, "1-1?roll", false, "a/b/9223372036854775808.log:bad-name"},
		{"no offset after it", logdir.NextBasePlus1, 0, []plainFile{{top + ".log", 1},
			{"1.log", 1}}, "1-2?roll", false, "a/b/" + top + ".log:bad-name"},
		{"others", logdir.NextFollowing, 0, []plainFile{{"0.log", 1}, {"x.log", 1}, {"1.log.gz", 1},
			{"1log", 1}, {".2.log", 1}, {"a1.log", 1}}, "0-0?roll", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newMem(t)
			for _, f := range c.files {
				w.put("a/b/"+f.name, make([]byte, f.size))
			}
			s := w.open(tier.LayoutPlain, next(c.next), closedAfter(c.age))
			scan(t, s, now)
			got := look(t, s, "a/b")
			if shape(got) != c.want || got.Whole != c.whole || codes(got.Problems) != c.problem {
				t.Errorf("%s, whole %v, problems %q; want %s, %v, %q", shape(got), got.Whole,
					codes(got.Problems), c.want, c.whole, c.problem)
			}
			if got.HasHighWatermark || got.Incarnation != "" || got.Compacted {
				t.Errorf("%+v knows what no plain log has", got)
			}
		})
	}
}

// TestPlainClosesByAgeOnly shows that a look before the first scan, which has no time to judge by,
// closes nothing by its age, and that files from the future are not old.
func TestPlainClosesByAgeOnly(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	w.put("a/b/0.log", []byte("x"))
	s := w.open(tier.LayoutPlain, next(logdir.NextBaseSize), closedAfter(time.Minute))
	if got := shape(look(t, s, "a/b")); got != "0-1?roll" {
		t.Errorf("before a scan: %s", got)
	}
	if got := shape(scan(t, s, now-2*hour).Scans[0]); got != "0-1?roll" {
		t.Errorf("from the future: %s", got)
	}
	if got := shape(scan(t, s, now).Scans[0]); got != "0-1" {
		t.Errorf("an hour old: %s", got)
	}
}

// TestPlainSiblings says which files belong to a segment.
func TestPlainSiblings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, pattern string
		files         []plainFile
		want          []int64 // bytes of each segment
	}{
		{"by stem", logdir.DefaultPattern, []plainFile{{"1.log", 1}, {"1.index", 10},
			{"1.log.crc", 100}, {"01.index", 1000}, {"1", 1000}, {"10.log", 2}, {"10.a.b", 20},
			{"1x.index", 1000}}, []int64{111, 22}},
		{"no dot in the name", `wal-(?P<base>\d+)`, []plainFile{{"wal-1", 1}, {"wal-1.idx", 10},
			{"wal-12", 2}, {"wal-1-old", 1000}}, []int64{11, 2}},
		{"a dot before the base", `app\.(?P<base>\d+)\.wal`, []plainFile{{"app.1.wal", 1},
			{"app.1.sum", 10}, {"app.sum", 1000}, {"app.2.wal", 2}}, []int64{11, 2}},
		{"letters after the base", `(?P<base>\d+)-[a-f]+\.log`, []plainFile{{"1-a.log", 1},
			{"1-a.sum", 10}, {"1-b.sum", 1000}, {"2-b.log", 2}}, []int64{11, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newMem(t)
			for _, f := range c.files {
				w.put("a/b/"+f.name, make([]byte, f.size))
			}
			w.mkdirs("a/b/1.d")
			if err := w.symlink("1.log", "a/b/1.link"); err != nil {
				t.Fatal(err)
			}
			s := w.open(tier.LayoutPlain, pattern(c.pattern))
			got := look(t, s, "a/b")
			var sizes []int64
			for _, seg := range got.Segments {
				sizes = append(sizes, seg.Bytes)
			}
			if fmt.Sprint(sizes) != fmt.Sprint(c.want) || !got.Whole {
				t.Errorf("bytes %v in %+v, want %v", sizes, got, c.want)
			}
		})
	}
}

// TestPlainIDs says which directories are logs, and what they are called.
func TestPlainIDs(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		for _, dir := range []string{"x", "a/b/c", "a/b", "deep/1/2/3/4", "ä/ö"} {
			w.put(dir+"/1.log", []byte("1"))
			w.put(dir+"/2.log", []byte("2"))
		}
		for _, name := range []string{".git/1.log", "x/.hidden/1.log", "lost+found/1.log",
			"empty/none.txt", "1.txt"} {
			w.put(name, nil)
		}
		s := w.open(tier.LayoutPlain)
		res := scan(t, s, now)
		const want = "a/b a/b/c deep/1/2/3/4 wal/x ä/ö"
		if got := ids(res.Logs); got != want || len(res.Problems) > 0 {
			t.Errorf("logs %q, want %q; problems %v", got, want, res.Problems)
		}
		for _, id := range res.Logs {
			if got := look(t, s, id.String()); shape(got) != "1-2 2-2?roll" {
				t.Errorf("%s: %s", id, shape(got))
			}
		}
		for _, id := range []string{"a/x", "wal/0", "wal/a", "x/1.log", "x/1.log/y", ".git/x",
			"wal/.git"} {
			_, _, err := s.Look(context.Background(), logID(t, id))
			if !errors.Is(err, tier.ErrVanished) {
				t.Errorf("a look at %s says %v, want ErrVanished", id, err)
			}
		}
		w.put("5.log", []byte("5"))
		if got := look(t, s, "wal/0"); shape(got) != "5-5?roll" || got.Dir != "." {
			t.Errorf("at the top: %s in %q", shape(got), got.Dir)
		}
	})
}

// TestPlainDoubleLogs freezes an id that two directories have.
func TestPlainDoubleLogs(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	w.put("x/1.log", nil)
	w.put("wal/x/1.log", nil)
	w.put("0/1.log", nil)
	w.put("1.log", nil)
	w.put("good/1.log", nil)
	s := w.open(tier.LayoutPlain)
	res := scan(t, s, now)
	if ids(res.Logs) != "wal/0 wal/good wal/x" {
		t.Errorf("logs %s", ids(res.Logs))
	}
	want := map[string]string{"wal/0": ".:duplicate-log", "wal/good": "",
		"wal/x": "wal/x:duplicate-log"}
	for _, got := range res.Scans {
		if codes(got.Problems) != want[got.Log.String()] || got.Whole != (got.Log.Name == "good") ||
			!got.Whole && len(got.Segments) > 0 {
			t.Errorf("%+v", got)
		}
		if again := look(t, s, got.Log.String()); again.Whole != got.Whole {
			t.Errorf("a look at %s: whole %v", got.Log, again.Whole)
		}
	}
	for _, id := range []string{"wal/x", "wal/0"} {
		_, err := s.Read(context.Background(), logID(t, id), tier.Range{Base: 1, Next: 2})
		if err == nil || !strings.Contains(err.Error(), "rename one of them") {
			t.Errorf("reading %s says %v", id, err)
		}
	}
}

func TestPlainOddNames(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	w.put("good/1.log", nil)
	w.put("good/1.\x07", []byte("not of the segment"))
	w.put("tab\t/1.log", nil)
	w.mkdirs("good/2.log")
	if err := w.symlink("1.log", "good/3.log"); err != nil {
		t.Fatal(err)
	}
	w.mkdirs(".hidden")
	for name, target := range map[string]string{"link": ".hidden", ".link": ".hidden",
		"good/link": "../.hidden", "current": "good/1.log", "dangling": "absent"} {
		if err := w.symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	deep := strings.Repeat("d/", 33)
	w.put(deep+"1.log", nil)
	s := w.open(tier.LayoutPlain, pattern(`(?P<base>\d+)(\.log|\n)`))
	res := scan(t, s, now)
	wrong := " " + codes(res.Problems) + " "
	if ids(res.Logs) != "wal/good" || len(res.Problems) != 4 ||
		!strings.Contains(wrong, " link:not-regular ") ||
		!strings.Contains(wrong, " good/link:not-regular ") {
		t.Errorf("logs %s, problems %+v", ids(res.Logs), res.Problems)
	}
	const want = "good/2.log:not-regular good/3.log:not-regular"
	got := res.Scans[0]
	if got.Whole || codes(got.Problems) != want || got.Segments[0].Bytes != 0 {
		t.Errorf("whole %v, problems %s in %+v", got.Whole, codes(got.Problems), got)
	}
	w.put("good/4\n", nil)
	if got := codes(look(t, s, "wal/good").Problems); got != want+" good/4\n:bad-name" {
		t.Errorf("problems %s", got)
	}
}

// TestPlainLinksWithin: a link to a directory of the same source hides nothing, since that is read
// where it lies. It is told of as soon as it leads elsewhere, also where nothing else has changed.
func TestPlainLinksWithin(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w *world) {
		w.put("logs/2023/1.log", nil)
		w.put("logs/2024/1.log", nil)
		w.mkdirs(".hidden")
		w.mkdirs("empty")
		for link, target := range map[string]string{"current": "logs/2024", "logs/last": "2023",
			"logs/2024/up": "..", "logs/none": "../empty"} {
			if err := w.symlink(target, link); err != nil {
				t.Fatal(err)
			}
		}
		s := w.open(tier.LayoutPlain)
		problems := func(want string) {
			t.Helper()
			res := scan(t, s, now)
			if got := codes(res.Problems); got != want || ids(res.Logs) != "logs/2023 logs/2024" {
				t.Errorf("logs %s, problems %s, want %s", ids(res.Logs), got, want)
			}
		}
		problems("")
		problems("")
		err := errors.Join(w.dir.Remove("logs/none"), w.symlink("../.hidden", "logs/none"))
		if err != nil {
			t.Fatal(err)
		}
		problems("logs/none:not-regular")
		if err := w.dir.RemoveDir(".hidden"); err != nil {
			t.Fatal(err)
		}
		problems("")
	})
}

// TestPlainNamesThatAreNoText puts names into the real file system that are not UTF-8.
func TestPlainNamesThatAreNoText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"good/1.log", "good/1.\xff", "good/2.log", "bad\xff/1.log"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("1"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s, err := logdir.Open(logdir.Config{Name: "wal", Layout: tier.LayoutPlain, Root: osRoot(dir),
		LocalDelete: tier.LocalDeleteNever})
	if err != nil {
		t.Fatal(err)
	}
	res := scan(t, s, now)
	if ids(res.Logs) != "wal/good" || len(res.Problems) != 1 || !res.Scans[0].Whole {
		t.Errorf("%+v", res)
	}
	c, err := s.Read(context.Background(), logID(t, "wal/good"), tier.Range{Base: 1, Next: 2})
	if err != nil || len(c.Files) != 1 {
		t.Errorf("read %+v, %v", c, err)
	}
}

// TestPlainUnreadableDirectory shows that what cannot be read is not gone.
func TestPlainUnreadableDirectory(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	w.put("a/b/1.log", nil)
	w.put("a/c/1.log", nil)
	w.put("z/1.log", nil)
	s := w.open(tier.LayoutPlain)
	scan(t, s, now)
	if err := w.chmod("a", 0); err != nil {
		t.Fatal(err)
	}
	*w.clock += second
	for range 2 {
		res := scan(t, s, now)
		if ids(res.Logs) != "a/b a/c wal/z" || len(res.Problems) == 0 {
			t.Errorf("logs %s, problems %v", ids(res.Logs), res.Problems)
		}
		for _, got := range res.Scans {
			if got.Whole {
				t.Errorf("%s is whole", got.Log)
			}
		}
	}
	if _, whole, err := s.Look(context.Background(), logID(t, "a/b")); whole ||
		errors.Is(err, tier.ErrVanished) {
		t.Errorf("a look: whole %v, %v", whole, err)
	}
	if err := w.chmod("a", 0o755); err != nil {
		t.Fatal(err)
	}
	if res := scan(t, s, now); len(res.Problems) > 0 || len(res.Scans) != 2 || !res.Scans[0].Whole {
		t.Errorf("readable again: %+v", res)
	}
}

func TestPlainTrouble(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		fill func(w *world)
		want tier.Code
	}{
		{"empty", func(*world) {}, tier.CodeSourceVanished},
		{"dots only", func(w *world) { w.put(".keep", nil) }, tier.CodeSourceVanished},
		{"nothing matches", func(w *world) { w.put("a/readme.txt", nil) }, tier.CodeSourceVanished},
		{"no permission", func(w *world) {
			w.put("a/1.log", nil)
			if err := w.chmod(".", 0); err != nil {
				w.t.Fatal(err)
			}
		}, tier.CodeSourceUnread},
	} {
		w := newMem(t)
		c.fill(w)
		s := w.open(tier.LayoutPlain)
		res, err := s.Scan(context.Background(), now)
		if err != nil || res.Trouble == nil || res.Trouble.Code != c.want || len(res.Logs) > 0 {
			t.Errorf("%s: %v, %+v; want %s", c.name, err, res, c.want)
		}
		_, _, err = s.Look(context.Background(), logID(t, "wal/a"))
		if err == nil || errors.Is(err, tier.ErrVanished) != strings.HasPrefix(c.name, "nothing") {
			t.Errorf("%s: a look says %v", c.name, err)
		}
	}
}

// TestTroubleForgetsNothing empties a source that was read and gives it back.
func TestTroubleForgetsNothing(t *testing.T) {
	t.Parallel()
	w, empty := newMem(t), newMem(t)
	w.put("a/1.log", nil)
	mounted := w
	s := w.open(tier.LayoutPlain, func(c *logdir.Config) {
		c.Root = func() (vfs.Dir, error) { return mounted.root() }
	})
	scan(t, s, now)
	mounted = empty
	if res, err := s.Scan(context.Background(), now); err != nil || res.Trouble == nil {
		t.Errorf("unmounted: %v, %+v", err, res)
	}
	mounted = w
	if res := scan(t, s, now); ids(res.Unchanged) != "wal/a" {
		t.Errorf("mounted again: %+v", res)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	for name, change := range map[string]func(*logdir.Config){
		"name":           func(c *logdir.Config) { c.Name = "" },
		"root":           func(c *logdir.Config) { c.Root = nil },
		"layout":         func(c *logdir.Config) { c.Layout = "tape" },
		"local delete":   func(c *logdir.Config) { c.LocalDelete = "" },
		"delete-records": func(c *logdir.Config) { c.LocalDelete = tier.LocalDeleteRecords },
		"next":           func(c *logdir.Config) { c.Next = "never" },
		"closed after":   func(c *logdir.Config) { c.ClosedAfter = time.Minute },
		`group "base"`:   pattern(`\d+\.log`),
		"needs a lock": func(c *logdir.Config) {
			c.Layout, c.Lock = tier.LayoutKafka, nil
		},
	} {
		cfg := logdir.Config{Name: "wal", Layout: tier.LayoutPlain, Root: w.root,
			LocalDelete: tier.LocalDeleteUnlink}
		change(&cfg)
		if _, err := logdir.Open(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestScanHeedsTheContext(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	w.put("a/1.log", nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.open(tier.LayoutPlain).Scan(ctx, now); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
