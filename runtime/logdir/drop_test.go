package logdir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// victim is a log with two segments, of which tests drop the first: of a Kafka partition, of a
// Fluss bucket, or of a plain directory.
type victim struct {
	layout  tier.Layout
	id      tier.LogID
	dir     string
	target  tier.Range
	records string // base name of the file with the records
	all     []string
	content map[string][]byte // by name, of everything in dir
	meant   tier.Stat         // of the file that the permit is for
}

func victims(t *testing.T) []victim {
	stem := strings.TrimSuffix(file("", 100, ""), ".")
	return []victim{
		{layout: tier.LayoutKafka, id: logID(t, "orders/0"), dir: "orders-0",
			target: tier.Range{Base: 100, Next: 200}, records: stem + ".log",
			all: []string{stem + ".index", stem + ".log", stem + ".timeindex"}},
		{layout: tier.LayoutPlain, id: logID(t, "a/b"), dir: "a/b",
			target: tier.Range{Base: 1, Next: 5}, records: "1.log",
			all: []string{"1.crc", "1.log", "1.log.sum"}},
		{layout: tier.LayoutFluss, id: logID(t, "shop.visits/2024-01-0"),
			dir: "shop/visits-7/2024-01-p3/log-0", target: tier.Range{Base: 100, Next: 200},
			records: stem + ".log", all: []string{stem + ".index", stem + ".log",
				stem + ".timeindex", stem + ".writer_snapshot"}},
	}
}

// fill writes the log, makes it durable and returns its source.
func (v *victim) fill(w *world) *logdir.Source {
	switch v.layout {
	case tier.LayoutKafka:
		b := newBroker(w)
		b.seg(v.dir, 100, 200)
		b.seg(v.dir, 200, 250)
	case tier.LayoutFluss:
		b := newTablet(w)
		b.seg(v.dir, 100, 200)
		b.seg(v.dir, 200, 250)
	default:
		for _, name := range append(slices.Clone(v.all), "5.log", "5.crc") {
			w.put(v.dir+"/"+name, []byte("content of "+name))
		}
	}
	v.content = map[string][]byte{}
	for _, name := range w.names(v.dir) {
		v.content[name] = w.read(v.dir + "/" + name)
	}
	return v.source(w)
}

// source opens the source and scans it once, so that it owns its lock.
func (v *victim) source(w *world) *logdir.Source {
	s := w.open(v.layout)
	scan(w.t, s, now)
	return s
}

// read returns the bytes of a file.
func (w *world) read(name string) []byte {
	w.t.Helper()
	f, err := w.dir.Open(name)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		w.t.Fatal(err)
	}
	return data
}

// targetNow is the first segment as it is now.
func (v *victim) targetNow(w *world) gate.Target {
	t := gate.Target{Action: tier.DeleteLocal, Log: v.id, Range: v.target,
		File: w.stat(v.dir + "/" + v.records)}
	for _, name := range v.all {
		t.Bytes += w.stat(v.dir + "/" + name).Size
		if name != v.records {
			t.Rest ^= tier.MarkOf(name, w.stat(v.dir+"/"+name))
		}
	}
	return t
}

// drop drops the target with a permit for it.
func (v *victim) drop(t *testing.T, s *logdir.Source, target gate.Target) error {
	t.Helper()
	return s.Drop(context.Background(), permit(t, target), target)
}

// state says what is left of the first segment: "whole", "gone", or what is wrong. Whatever else
// is in the directory must be as it was.
func (v *victim) state(w *world) string {
	names := w.names(v.dir)
	left := 0
	for name, want := range v.content {
		there := slices.Contains(names, name)
		switch {
		case slices.Contains(v.all, name) && there:
			left++
			fallthrough
		case !slices.Contains(v.all, name):
			if !there || !bytes.Equal(w.read(v.dir+"/"+name), want) {
				return name + " is lost or changed"
			}
		}
	}
	for _, name := range names {
		if v.content[name] == nil {
			return "left over: " + name + " " + fmt.Sprint(w.names(v.dir+"/"+name))
		}
	}
	switch left {
	case 0:
		return "gone"
	case len(v.all):
		return "whole"
	default:
		return fmt.Sprintf("in part: %v", names)
	}
}

// emptyTrash is the state of a log whose segment is gone, before the next scan.
const emptyTrash = "left over: .tierd-trash []"

func TestDrop(t *testing.T) {
	t.Parallel()
	for _, v := range victims(t) {
		t.Run(string(v.layout), func(t *testing.T) {
			t.Parallel()
			everywhere(t, func(t *testing.T, w *world) {
				v := v
				s := v.fill(w)
				if got := v.state(w); got != "whole" {
					t.Fatal(got)
				}
				if err := v.drop(t, s, v.targetNow(w)); err != nil {
					t.Fatal(err)
				}
				if got := v.state(w); got != "gone" {
					t.Error(got)
				}
				if res := scan(t, s, now); len(res.Scans[0].Segments) != 1 || !res.Scans[0].Whole {
					t.Errorf("a scan after it says %+v", res.Scans[0])
				}
			})
		})
	}
}

// TestDropRefuses wants the segment whole wherever a drop is not exactly what was permitted.
func TestDropRefuses(t *testing.T) {
	t.Parallel()
	never := func(c *logdir.Config) { c.LocalDelete = tier.LocalDeleteNever }
	busy := func(c *logdir.Config) { c.Lock = &fakeLock{} }
	broken := func(c *logdir.Config) { c.Lock = &fakeLock{err: errors.New("no file")} }
	for _, c := range []struct {
		name   string
		config func(*logdir.Config)
		change func(w *world, v *victim, target *gate.Target)
		want   error
		text   string
	}{
		{"never", never, nil, nil, "local_delete"},
		{"only looked at", func(c *logdir.Config) { c.ReadOnly = true }, nil, nil, "only looked at"},
		{"a broker runs", busy, nil, nil, "does not hold the lock"},
		{"nobody knows whether a broker runs", broken, nil, nil, "does not hold the lock"},
		{"another size", nil, func(_ *world, _ *victim, g *gate.Target) { g.File.Size++ },
			tier.ErrChanged, ""},
		{"another time", nil, func(_ *world, _ *victim, g *gate.Target) { g.File.ModTime++ },
			tier.ErrChanged, ""},
		{"another file", nil, func(_ *world, _ *victim, g *gate.Target) { g.File.Inode += 1000 },
			tier.ErrChanged, ""},
		{"a file beside it was written anew, of the same size", nil,
			func(w *world, v *victim, _ *gate.Target) {
				for _, name := range v.all {
					if name == v.records {
						continue
					}
					v.content[name] = bytes.Repeat([]byte{7}, len(v.content[name]))
					w.put(v.dir+"/new", v.content[name]) // of another inode, whatever the clock says
					w.remove(v.dir + "/" + name)
					w.put(v.dir+"/"+name, v.content[name])
					w.remove(v.dir + "/new")
				}
			}, tier.ErrChanged, "a file beside it"},
		{"it ends sooner", nil, func(_ *world, _ *victim, g *gate.Target) { g.Range.Next += 1000 },
			tier.ErrChanged, "it ends at"},
		{"nothing follows it", nil, func(w *world, v *victim, _ *gate.Target) {
			for name := range v.content {
				if !slices.Contains(v.all, name) {
					w.remove(v.dir + "/" + name)
					delete(v.content, name)
				}
			}
		}, tier.ErrChanged, "it may grow"},
		{"no such segment", nil, func(_ *world, _ *victim, g *gate.Target) { g.Range.Base++ },
			tier.ErrVanished, ""},
		{"no such log", nil, func(_ *world, _ *victim, g *gate.Target) { g.Log.Name = "77" },
			tier.ErrVanished, ""},
	} {
		for _, v := range victims(t) {
			if strings.Contains(c.name, "broker") && v.layout != tier.LayoutKafka {
				continue
			}
			w := newMem(t)
			s := v.fill(w)
			if c.config != nil {
				s = w.open(v.layout, c.config)
				scan(t, s, now)
			}
			target := v.targetNow(w)
			if c.change != nil {
				c.change(w, &v, &target)
			}
			moved := false
			w.mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
				moved = moved || op.Kind == vfs.OpRename || op.Kind == vfs.OpMkdir
				return vfs.Proceed, nil
			})
			err := v.drop(t, s, target)
			w.mem.SetFault(nil)
			if moved {
				t.Errorf("%s, %s: something was moved", v.layout, c.name)
			}
			if err == nil || c.want != nil && !errors.Is(err, c.want) ||
				!strings.Contains(err.Error(), c.text) {
				t.Errorf("%s, %s: %v, want %v %s", v.layout, c.name, err, c.want, c.text)
			}
			if got := v.state(w); got != "whole" {
				t.Errorf("%s, %s: %s", v.layout, c.name, got)
			}
		}
	}
}

// TestDropNeedsAPermit wants none but the very permit, once.
func TestDropNeedsAPermit(t *testing.T) {
	t.Parallel()
	v := victims(t)[1]
	w := newMem(t)
	s := v.fill(w)
	target := v.targetNow(w)
	other := target
	other.File.Inode++
	spent := permit(t, target)
	if err := spent.Spend(target); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]gate.Permit{
		"none": {}, "another target's": permit(t, other), "a spent one": spent,
	} {
		if err := s.Drop(context.Background(), p, target); err == nil || v.state(w) != "whole" {
			t.Errorf("%s: %v, %s", name, err, v.state(w))
		}
	}
	p := permit(t, target)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Drop(ctx, p, target); !errors.Is(err, context.Canceled) || v.state(w) != "whole" {
		t.Errorf("canceled: %v, %s", err, v.state(w))
	}
	if err := p.Spend(target); err == nil {
		t.Error("a permit is not spent by a drop that was given up")
	}
}

// impostor is what somebody puts in the place of the file with the records.
var impostor = []byte("another file")

// replaceAtRename puts another file in the place of the records just before they are moved away.
func (v *victim) replaceAtRename(w *world) {
	w.mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		if op.Kind == vfs.OpRename && op.Path == v.dir+"/"+v.records {
			w.mem.SetFault(nil)
			w.put("new", impostor)
			if err := w.dir.Replace("new", v.dir+"/"+v.records); err != nil {
				w.t.Fatal(err)
			}
			if err := errors.Join(w.dir.Sync("."), w.dir.Sync(v.dir)); err != nil {
				w.t.Fatal(err)
			}
			v.content[v.records] = impostor
		}
		return vfs.Proceed, nil
	})
}

// TestDropPutsAnotherFileBack replaces the records between the look at them and the rename.
func TestDropPutsAnotherFileBack(t *testing.T) {
	t.Parallel()
	for _, v := range victims(t) {
		w := newMem(t)
		s := v.fill(w)
		target := v.targetNow(w)
		v.replaceAtRename(w)
		if err := v.drop(t, s, target); !errors.Is(err, tier.ErrChanged) {
			t.Errorf("%s: %v, want ErrChanged", v.layout, err)
		}
		if got := v.state(w); got != "whole" {
			t.Errorf("%s: %s", v.layout, got)
		}
		// And it is durably back, but for the empty trash.
		if got := v.state(w.reboot(nil)); got != "whole" && got != emptyTrash {
			t.Errorf("%s: after a crash: %s", v.layout, got)
		}
	}
}

// TestDropNeverReplaces takes the name while the wrong file is away, before or after it is seen to
// be free: both files must stay, and nothing of the log may be decided until somebody has put it
// right.
func TestDropNeverReplaces(t *testing.T) {
	t.Parallel()
	stats := func(op vfs.Op) bool {
		return op.Kind == vfs.OpStat && strings.HasSuffix(op.Path, ".pending")
	}
	movesBack := func(op vfs.Op) bool {
		return (op.Kind == vfs.OpRename || op.Kind == vfs.OpReplace) &&
			strings.HasSuffix(op.Path, ".pending")
	}
	for _, v := range victims(t) {
		neverReplaces(t, v, stats)
		neverReplaces(t, v, movesBack)
	}
}

// neverReplaces takes the name at the first operation that when is true of.
func neverReplaces(t *testing.T, v victim, when func(vfs.Op) bool) {
	t.Helper()
	w := newMem(t)
	s := v.fill(w)
	target := v.targetNow(w)
	at := v.dir + "/" + v.records
	taken := false
	w.mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		if op.Kind == vfs.OpRename && op.Path == at {
			w.mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
				if when(op) {
					w.mem.SetFault(nil)
					taken = true
					w.put(at, impostor)
				}
				return vfs.Proceed, nil
			})
			w.add(at, []byte("more"))
		}
		return vfs.Proceed, nil
	})
	more := append(slices.Clone(v.content[v.records]), "more"...)
	err := v.drop(t, s, target)
	if !errors.Is(err, tier.ErrChanged) || !strings.Contains(err.Error(), "stays in") {
		t.Errorf("%s: %v, want ErrChanged", v.layout, err)
	}
	pending := v.dir + "/.tierd-trash/" + v.records + ".pending"
	if !taken || !bytes.Equal(w.read(at), impostor) || !bytes.Equal(w.read(pending), more) {
		t.Fatalf("%s: one of the files is lost: %v", v.layout, w.names(v.dir))
	}
	*w.clock += second
	for range 2 {
		for _, got := range scan(t, s, now).Scans {
			if got.Whole || !strings.Contains(codes(got.Problems), ".pending:retry") {
				t.Errorf("%s: whole %v, %s", v.layout, got.Whole, codes(got.Problems))
			}
		}
		if look(t, s, v.id.String()).Whole {
			t.Errorf("%s: a look is whole", v.layout)
		}
	}
	w.remove(at)
	scan(t, s, now)
	if !bytes.Equal(w.read(at), more) || slices.Contains(w.names(v.dir), ".tierd-trash") {
		t.Errorf("%s: not put back: %v", v.layout, w.names(v.dir))
	}
	if got := look(t, s, v.id.String()); !got.Whole || len(got.Segments) != 2 {
		t.Errorf("%s: %+v", v.layout, got)
	}
}

// TestDropLeavesANewFilesSiblings gives the name to a new file after the old one was condemned:
// what lies beside it may be the new one's.
func TestDropLeavesANewFilesSiblings(t *testing.T) {
	t.Parallel()
	v := victims(t)[1]
	w := newMem(t)
	s := v.fill(w)
	at := v.dir + "/" + v.records
	w.mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		if op.Kind == vfs.OpRename && strings.HasSuffix(op.To, ".dead") {
			w.mem.SetFault(nil)
			w.put(at, impostor)
		}
		return vfs.Proceed, nil
	})
	if err := v.drop(t, s, v.targetNow(w)); err != nil {
		t.Error(err)
	}
	v.content[v.records] = impostor
	if got := v.state(w); got != "whole" {
		t.Error(got)
	}
}

// TestTrashIsLeftAloneWithoutLeave shows a log with a trash to sources that may not delete, or are
// only looked at: nothing is touched, and the log is not whole while a file of it is missing.
func TestTrashIsLeftAloneWithoutLeave(t *testing.T) {
	t.Parallel()
	for _, without := range []func(*logdir.Config){
		func(c *logdir.Config) { c.LocalDelete = tier.LocalDeleteNever },
		func(c *logdir.Config) { c.ReadOnly = true },
	} {
		for _, v := range victims(t) {
			v.leaveTrashAlone(t, without)
		}
	}
}

func (v *victim) leaveTrashAlone(t *testing.T, without func(*logdir.Config)) {
	t.Helper()
	w := newMem(t)
	v.fill(w)
	w.put(v.dir+"/.tierd-trash/"+v.records+".dead", nil)
	w.put(v.dir+"/.tierd-trash/notes", nil)
	s := w.open(v.layout, without)
	want := v.dir + "/.tierd-trash/" + v.records + ".dead:retry " + v.dir +
		"/.tierd-trash/notes:bad-name"
	if got := scan(t, s, now).Scans[0]; !got.Whole || codes(got.Problems) != want {
		t.Errorf("%s: whole %v, %s", v.layout, got.Whole, codes(got.Problems))
	}
	w.put(v.dir+"/.tierd-trash/"+v.records+".pending", nil)
	if got := look(t, s, v.id.String()); got.Whole {
		t.Errorf("%s: whole, with a pending file", v.layout)
	}
	if err := s.Settle(context.Background(), v.id); err == nil {
		t.Errorf("%s: settled without leave", v.layout)
	}
	if err := v.drop(t, s, v.targetNow(w)); err == nil {
		t.Errorf("%s: dropped without leave", v.layout)
	}
	if got := len(w.names(v.dir + "/.tierd-trash")); got != 3 {
		t.Errorf("%s: %d files in the trash", v.layout, got)
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	for _, v := range victims(t) {
		w := newMem(t)
		s := v.fill(w)
		if err := s.Settle(context.Background(), v.id); err != nil || v.state(w) != "whole" {
			t.Errorf("%s: nothing to settle: %v, %s", v.layout, err, v.state(w))
		}
		if err := w.dir.Mkdir(v.dir + "/.tierd-trash"); err != nil {
			t.Fatal(err)
		}
		trash := v.dir + "/.tierd-trash/" + v.records
		if err := w.dir.Rename(v.dir+"/"+v.records, trash+".pending"); err != nil {
			t.Fatal(err)
		}
		// At the start nothing was scanned, so the lock is not held yet.
		s = w.open(v.layout)
		if err := s.Settle(context.Background(), v.id); err != nil || v.state(w) != "whole" {
			t.Errorf("%s: pending: %v, %s", v.layout, err, v.state(w))
		}
		if err := w.dir.Mkdir(v.dir + "/.tierd-trash"); err != nil {
			t.Fatal(err)
		}
		if err := w.dir.Rename(v.dir+"/"+v.records, trash+".dead"); err != nil {
			t.Fatal(err)
		}
		if err := s.Settle(context.Background(), v.id); err != nil || v.state(w) != "gone" {
			t.Errorf("%s: dead: %v, %s", v.layout, err, v.state(w))
		}
		none := tier.LogID{Table: "none", Name: "0"}
		if err := s.Settle(context.Background(), none); !errors.Is(err, tier.ErrVanished) {
			t.Errorf("%s: no such log: %v", v.layout, err)
		}
	}
}

// TestDropPutsRightFirst drops where an earlier drop was interrupted.
func TestDropPutsRightFirst(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	v := victims(t)[1]
	s := v.fill(w)
	w.put("a/b/.tierd-trash/0.log.dead", nil)
	w.put("a/b/.tierd-trash/1.log.pending", []byte("not put back: the name is taken"))
	if err := v.drop(t, s, v.targetNow(w)); err == nil || v.state(w) == "gone" {
		t.Errorf("dropped beside a file that is to go back: %v", err)
	}
	if got := w.names("a/b/.tierd-trash"); len(got) != 1 || got[0] != "1.log.pending" {
		t.Errorf("the trash has %v", got)
	}
	w.remove("a/b/.tierd-trash/1.log.pending")
	w.put("a/b/.tierd-trash/0.log.dead", nil)
	if err := v.drop(t, s, v.targetNow(w)); err != nil || v.state(w) != "gone" {
		t.Errorf("%v, %s", err, v.state(w))
	}
}

// TestAFileThatCameLaterIsNotDropped: between the question and the drop another file of the segment
// appears. It was never copied, so nothing goes.
func TestAFileThatCameLaterIsNotDropped(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	v := victims(t)[1]
	s := v.fill(w)
	target := v.targetNow(w)
	w.put("a/b/1.late", []byte("never copied"))
	before := w.names("a/b")
	if err := v.drop(t, s, target); !errors.Is(err, tier.ErrChanged) {
		t.Fatalf("got %v, want %v", err, tier.ErrChanged)
	}
	if got := w.names("a/b"); !slices.Equal(got, before) {
		t.Errorf("left are %v, want %v", got, before)
	}
}

// TestAFileThatComesWhileItIsDroppedStays: the records are condemned already, and what came beside
// them since the look was copied by nobody.
func TestAFileThatComesWhileItIsDroppedStays(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	v := victims(t)[1]
	s := v.fill(w)
	w.mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		if op.Kind == vfs.OpRename && strings.HasSuffix(op.To, ".dead") {
			w.mem.SetFault(nil)
			w.put("a/b/1.late", []byte("never copied"))
		}
		return vfs.Proceed, nil
	})
	if err := v.drop(t, s, v.targetNow(w)); err != nil {
		t.Error(err)
	}
	if got, want := w.names("a/b"), []string{"1.late", "5.crc", "5.log"}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
}

// TestBrokenSegmentsAreNobodys reads and drops a base that two files have.
func TestBrokenSegmentsAreNobodys(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	for _, name := range []string{"1.log", "01.log", "5.log"} {
		w.put("a/b/"+name, []byte(name))
	}
	s := w.open(tier.LayoutPlain)
	ctx, id, r := context.Background(), logID(t, "a/b"), tier.Range{Base: 1, Next: 5}
	_, errRead := s.Read(ctx, id, r)
	_, errFile := s.LogFile(ctx, id, 1)
	target := gate.Target{Action: tier.DeleteLocal, Log: id, Range: r, File: w.stat("a/b/1.log")}
	for _, err := range []error{errRead, errFile, s.Drop(ctx, permit(t, target), target)} {
		if err == nil || !strings.Contains(err.Error(), "several files claim its base") {
			t.Errorf("got %v", err)
		}
	}
	if got := len(w.names("a/b")); got != 3 {
		t.Errorf("%d files are left", got)
	}
}

// TestSettleTheLastSegment finishes a drop of the only file in its directory.
func TestSettleTheLastSegment(t *testing.T) {
	t.Parallel()
	w := newMem(t)
	w.put("a/b/.tierd-trash/1.log.dead", nil)
	w.put("a/b/1.crc", nil)
	s := w.open(tier.LayoutPlain)
	if err := s.Settle(context.Background(), logID(t, "a/b")); err != nil {
		t.Error(err)
	}
	if got := w.names("a/b"); len(got) > 0 {
		t.Errorf("left over: %v", got)
	}
}

func TestLogFile(t *testing.T) {
	t.Parallel()
	for _, v := range victims(t) {
		w := newMem(t)
		s := v.fill(w)
		ctx := context.Background()
		if got, err := s.LogFile(ctx, v.id, v.target.Base); got != v.records || err != nil {
			t.Errorf("%s: %q, %v", v.layout, got, err)
		}
		if _, err := s.LogFile(ctx, v.id, 3); !errors.Is(err, tier.ErrVanished) {
			t.Errorf("%s: no such segment: %v", v.layout, err)
		}
	}
}
