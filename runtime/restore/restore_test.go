package restore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"testing"

	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verify"
	"github.com/tierd/tierd/runtime/vfs"
)

const t0 = tier.Time(1_800_000_000_000_000_000)

var orders = tier.LogID{Table: "orders", Name: "0"}

// shelf is a store of objects in memory.
type shelf map[tier.ObjectKey][]byte

func (s shelf) ReadFile(_ context.Context, k tier.ObjectKey, off int64, bufs ...[]byte) error {
	data, ok := s[k]
	if !ok {
		return fmt.Errorf("%s: %w", k.Name, tier.ErrVanished)
	}
	for _, b := range bufs {
		if n := copy(b, data[off:]); n < len(b) {
			return fmt.Errorf("%s: %w", k.Name, tier.ErrDamaged)
		}
		off += int64(len(b))
	}
	return nil
}

// batches makes the bytes of batches of five offsets each.
func batches(r tier.Range, epoch tier.LeaderEpoch) (out []byte) {
	for o := r.Base; o < r.Next; o += 5 {
		out = kbatchtest.V2(out, kbatchtest.Spec{Base: o, Last: o + 4, Epoch: epoch, Body: 40})
	}
	return out
}

// flussBatches makes the same of Fluss.
func flussBatches(r tier.Range, epoch tier.LeaderEpoch) (out []byte) {
	for o := r.Base; o < r.Next; o += 5 {
		out = kbatchtest.Fluss(out, 2, kbatchtest.Spec{Base: o, Last: o + 4, Epoch: epoch, Body: 40})
	}
	return out
}

// add puts a copy on the shelf and into the log.
func (s shelf) add(l *verify.Log, r tier.Range, epoch tier.LeaderEpoch) tier.Position {
	pos := tier.Position(len(l.Facts))
	c := tier.Copy{Attempt: tier.AttemptID{byte(pos + 1)}, Position: pos, Epoch: 1, ModTime: t0,
		Content: tier.Content{Range: r, LastNext: r.Next,
			Lineage: []tier.EpochStart{{Epoch: epoch, Start: r.Base}}}}
	records := batches(r, epoch)
	if l.Layout == tier.LayoutFluss {
		records = flussBatches(r, epoch)
	}
	for ext, data := range map[string][]byte{".log": records, ".index": []byte("index")} {
		name := fmt.Sprintf("%020d%s", r.Base, ext)
		s[tier.ObjectKey{Log: l.ID, Epoch: 1, Base: r.Base, Attempt: c.Attempt, Name: name}] = data
		file := tier.SourceFile{FileDigest: tier.FileDigest{Name: name, Size: int64(len(data)),
			SHA256: sha256.Sum256(data)}, Stat: tier.Stat{Size: int64(len(data)), ModTime: t0}}
		c.Content.Files = append(c.Content.Files, file)
	}
	slices.SortFunc(c.Content.Files, func(a, b tier.SourceFile) int { return int(b.Size - a.Size) })
	l.Facts = append(l.Facts, tier.Fact{Position: pos, Epoch: 1, Add: &c})
	l.Copied = max(l.Copied, r.Next)
	return pos
}

// diverged is a log of which a second leader wrote [20, 40) anew, and a third began at 50 what the
// second's copy goes on with.
func diverged(s shelf) Source {
	return divergedOf(s, Source{Log: &verify.Log{ID: orders, Layout: tier.LayoutKafka},
		Incarnation: "t0pic"})
}

func divergedOf(s shelf, l Source) Source {
	first := s.add(l.Log, tier.Range{Base: 0, Next: 40}, 1)
	second := s.add(l.Log, tier.Range{Base: 20, Next: 60}, 2)
	third := s.add(l.Log, tier.Range{Base: 50, Next: 80}, 2)
	l.Counted = []tier.Counted{{Range: tier.Range{Base: 0, Next: 20}, Position: first},
		{Range: tier.Range{Base: 20, Next: 50}, Position: second},
		{Range: tier.Range{Base: 50, Next: 80}, Position: third}}
	return l
}

// run restores into the directory as the command does.
func run(dir vfs.Dir, s shelf, p *Plan) error {
	times := map[string]tier.Time{}
	t := &Target{Dir: dir, Store: s, SetTime: func(name string, at tier.Time) error {
		times[name] = at
		return nil
	}}
	if _, err := t.Begin(Marker{LedgerID: "l", Subject: "orders"}, p); err != nil {
		return err
	}
	for i := range p.Files {
		if _, err := t.File(context.Background(), &p.Files[i]); err != nil {
			return err
		}
		if times[p.Files[i].Path] != t0 {
			return fmt.Errorf("%s: its time is not set", p.Files[i].Path)
		}
	}
	for _, x := range p.Texts {
		if err := t.Text(x); err != nil {
			return err
		}
	}
	return t.End(p)
}

// content reads all files of a directory tree.
func content(t *testing.T, dir vfs.Dir, at string) map[string]string {
	t.Helper()
	out := map[string]string{}
	infos, err := dir.List(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		name := at + "/" + i.Name
		if at == "." {
			name = i.Name
		}
		if i.Mode.IsDir() {
			for k, v := range content(t, dir, name) {
				out[k] = v
			}
			continue
		}
		f, err := dir.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(data)
	}
	return out
}

// want is what a restore of diverged leaves.
func want() map[string]string {
	cut := func(from, to tier.Offset, epoch tier.LeaderEpoch) string {
		return string(batches(tier.Range{Base: from, Next: to}, epoch))
	}
	return map[string]string{
		"orders-0/00000000000000000000.log":   cut(0, 20, 1),
		"orders-0/00000000000000000020.log":   cut(20, 50, 2),
		"orders-0/00000000000000000050.log":   cut(50, 80, 2),
		"orders-0/00000000000000000050.index": "index",
		"orders-0/leader-epoch-checkpoint":    "0\n2\n1 0\n2 20\n",
		"orders-0/partition.metadata":         "version: 0\ntopic_id: t0pic",
		"log-start-offset-checkpoint":         "0\n0\n",
		"recovery-point-offset-checkpoint":    "0\n1\norders 0 80\n",
		"replication-offset-checkpoint":       "0\n1\norders 0 80\n",
	}
}

func compare(t *testing.T, what string, got map[string]string) {
	t.Helper()
	compareWith(t, what, got, want())
}

func compareWith(t *testing.T, what string, got, expected map[string]string) {
	t.Helper()
	for name, text := range expected {
		if got[name] != text {
			t.Errorf("%s: %s has %d bytes, want %d: %.60q", what, name, len(got[name]), len(text),
				got[name])
		}
	}
	if len(got) != len(expected) {
		t.Errorf("%s: %d files, want %d", what, len(got), len(expected))
	}
}

func plan(t *testing.T, s shelf) *Plan {
	t.Helper()
	p, err := Make([]Source{diverged(s)}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOnlyWhatCountsIsRestored: copies that a divergence cut are cut at batches, and come without
// their indexes.
func TestOnlyWhatCountsIsRestored(t *testing.T) {
	t.Parallel()
	s := shelf{}
	dir := vfs.NewMem(func() tier.Time { return t0 })
	if err := run(dir, s, plan(t, s)); err != nil {
		t.Fatal(err)
	}
	compare(t, "at once", content(t, dir, "."))
}

// TestABucketIsRestored where its tablet server looks for it, with checkpoints by ids.
func TestABucketIsRestored(t *testing.T) {
	t.Parallel()
	cut := func(from, to tier.Offset, epoch tier.LeaderEpoch) string {
		return string(flussBatches(tier.Range{Base: from, Next: to}, epoch))
	}
	for _, c := range []struct{ id, incarnation, dir, line string }{
		{"shop.orders/3", "7", "shop/orders-7/log-3/", "7 3 80\n"},
		{"shop.visits/2024-01-0", "7/12", "shop/visits-7/2024-01-p12/log-0/", "7 12 0 80\n"},
	} {
		id, err := tier.ParseLogID(c.id)
		if err != nil {
			t.Fatal(err)
		}
		s := shelf{}
		p, err := Make([]Source{divergedOf(s, Source{Incarnation: c.incarnation,
			Log: &verify.Log{ID: id, Layout: tier.LayoutFluss}})}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		dir := vfs.NewMem(func() tier.Time { return t0 })
		if err := run(dir, s, p); err != nil {
			t.Fatal(err)
		}
		compareWith(t, c.id, content(t, dir, "."), map[string]string{
			c.dir + "00000000000000000000.log":   cut(0, 20, 1),
			c.dir + "00000000000000000020.log":   cut(20, 50, 2),
			c.dir + "00000000000000000050.log":   cut(50, 80, 2),
			c.dir + "00000000000000000050.index": "index",
			"recovery-point-offset-checkpoint":   "0\n1\n" + c.line,
			"high-watermark-checkpoint":          "0\n1\n" + c.line,
		})
	}
}

// leavings are what a crash makes of names (lost, kept) and bytes (lost, half, zeros) that were not
// synced.
var leavings = [][2]int{{0, 0}, {0, 2}, {1, 0}, {1, 2}, {1, 3}}

// TestARestoreSurvivesEachFault stops a restore at each operation of the file system, by an error
// or a crash before or after it, and lets it go on. Whatever has its name is right, and what was
// told to be complete is there after a crash.
func TestARestoreSurvivesEachFault(t *testing.T) {
	t.Parallel()
	for _, effect := range []vfs.Effect{vfs.Fail, vfs.FailAfter, vfs.CrashBefore, vfs.CrashAfter} {
		for n := 0; ; n++ {
			s := shelf{}
			p := plan(t, s)
			dir := vfs.NewMem(func() tier.Time { return t0 })
			fired := false
			dir.SetFault(func(op vfs.Op) (vfs.Effect, error) {
				if op.Count == n && !fired {
					fired = true
					return effect, nil
				}
				return vfs.Proceed, nil
			})
			err := run(dir, s, p)
			when := fmt.Sprintf("effect %d at %d", effect, n)
			if err == nil {
				compare(t, when+", complete", content(t, dir.Clone().Crash(nil), "."))
			}
			if !fired {
				break
			}
			dir.SetFault(nil)
			if effect == vfs.Fail || effect == vfs.FailAfter {
				goOn(t, when, dir, s, p)
				continue
			}
			for _, l := range leavings {
				left := dir.Clone().Crash(func(_ string, n int) int { return l[(n-2)/2] })
				goOn(t, fmt.Sprintf("%s, names and bytes %v, (%v)", when, l, err), left, s, p)
			}
		}
	}
}

// goOn restores once more what a restore left that was stopped.
func goOn(t *testing.T, when string, dir *vfs.Mem, s shelf, p *Plan) {
	t.Helper()
	for name, text := range content(t, dir, ".") {
		if right, ok := want()[name]; ok && text != right {
			t.Fatalf("%s: %s is wrong: %.40q", when, name, text)
		}
	}
	if err := run(dir, s, p); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	compare(t, when, content(t, dir, "."))
}

// TestWhatIsCompleteIsNotForeign: a kill can come between the last step and its report.
func TestWhatIsCompleteIsNotForeign(t *testing.T) {
	t.Parallel()
	s := shelf{}
	p := plan(t, s)
	dir := vfs.NewMem(func() tier.Time { return t0 })
	for range 2 {
		if err := run(dir, s, p); err != nil {
			t.Fatal(err)
		}
		compare(t, "again", content(t, dir, "."))
	}
	const index = "orders-0/00000000000000000050.index"
	replace := func(name, text string) {
		t.Helper()
		if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if text == "" {
			return
		}
		f, err := dir.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for what, change := range map[string][2]string{
		"one more":         {"orders-0/mine", "x"},
		"one less":         {index, ""},
		"of the same size": {index, "xndei"},
		"another text":     {"replication-offset-checkpoint", "0\n0\n"},
	} {
		replace(change[0], change[1])
		if err := run(dir, s, p); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v, want %v", what, err, ErrForeign)
		}
		if _, err := dir.Stat(markerName); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the directory is marked: %v", what, err)
		}
		replace(change[0], want()[change[0]])
	}
}

func TestBadObjectsAreNotRestored(t *testing.T) {
	t.Parallel()
	for what, damage := range map[string]func([]byte) []byte{
		"cut":     func(p []byte) []byte { return p[:len(p)-1] },
		"altered": func(p []byte) []byte { p[len(p)/2] ^= 1; return p },
	} {
		s := shelf{}
		p := plan(t, s)
		for k, data := range s {
			s[k] = damage(slices.Clone(data))
		}
		dir := vfs.NewMem(func() tier.Time { return t0 })
		if err := run(dir, s, p); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		if got := content(t, dir, "."); len(got) != 1 {
			t.Errorf("%s: %d files are there beside the marker", what, len(got)-1)
		}
	}
}

func TestWhatCannotBeRestored(t *testing.T) {
	t.Parallel()
	l := diverged(shelf{})
	l.Layout = tier.LayoutPlain
	if _, err := Make([]Source{l}, Options{}); err == nil {
		t.Error("a plain segment was cut")
	}
	for id, incarnation := range map[string]string{"shop.orders/0": "", "shop.orders/1": "7/3",
		"shop.visits/a-0": "7", "orders/0": "7", "shop.visits/b-0": "t50CW9GGSAO8FjqW_zdKWA"} {
		at, err := tier.ParseLogID(id)
		if err != nil {
			t.Fatal(err)
		}
		l := divergedOf(shelf{}, Source{Incarnation: incarnation,
			Log: &verify.Log{ID: at, Layout: tier.LayoutFluss}})
		if _, err := Make([]Source{l}, Options{}); err == nil {
			t.Errorf("%s of the incarnation %q was restored somewhere", id, incarnation)
		}
	}
	l = diverged(shelf{})
	l.Facts[0].Add.Content.Files[1].Name = "../x"
	l.Counted[0].Range = l.Facts[0].Add.Content.Range
	if _, err := Make([]Source{l}, Options{}); err == nil {
		t.Error("a name that leads elsewhere was taken")
	}
}

// TestWithoutWhatIsMissing: a log that lacks a file does not get what it is opened with, and what
// is of all logs is not written.
func TestWithoutWhatIsMissing(t *testing.T) {
	t.Parallel()
	p := &Plan{Texts: []Text{{"a/epochs", ""}, {"b/epochs", ""}, {"marks", ""}}}
	if got := p.Without(nil); len(got) != 3 {
		t.Errorf("nothing is missing: %v", got)
	}
	if got := p.Without([]*File{{Path: "a/0.log"}}); len(got) != 1 || got[0].Path != "b/epochs" {
		t.Errorf("%v", got)
	}
	for err, want := range map[error]string{tier.ErrVanished: "lost", tier.ErrDamaged: "damaged",
		tier.ErrUnread: "unread", ErrForeign: "", errors.New("disk full"): ""} {
		if kind, is := Missing(fmt.Errorf("a/0.log: %w", err)); kind != want || is != (want != "") {
			t.Errorf("%v: %q %v", err, kind, is)
		}
	}
}
