package logdir_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/logdir"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// lone is a victim whose segment is one file.
func lone(t *testing.T) victim {
	v := victims(t)[1]
	v.all = []string{v.records}
	return v
}

// TestALoneFileIsSyncedTwice: as the trash is made, and as the file is moved there. Only where
// others went from beside it has the directory to be synced once more.
func TestALoneFileIsSyncedTwice(t *testing.T) {
	t.Parallel()
	for want, v := range map[int]victim{2: lone(t), 3: victims(t)[1]} {
		w := newMem(t)
		s := v.fill(w)
		synced := 0
		w.mem.SetFault(func(op vfs.Op) (vfs.Effect, error) {
			if op.Kind == vfs.OpSyncDir && op.Path == v.dir {
				synced++
			}
			return vfs.Proceed, nil
		})
		err := v.drop(t, s, v.targetNow(w))
		if w.mem.SetFault(nil); err != nil || synced != want || v.state(w) != "gone" {
			t.Errorf("%v: synced %d times, want %d; %v, %s", v.all, synced, want, err, v.state(w))
		}
	}
}

// crashes are ways to lose what was not synced.
func crashes() map[string]func(string, int) int {
	ways := map[string]func(string, int) int{
		"all is lost": func(string, int) int { return 0 },
		"all is kept": func(_ string, n int) int { return min(1, n-1) },
		"only removals are kept": func(label string, _ int) int {
			if strings.HasPrefix(label, "remove") {
				return 1
			}
			return 0
		},
	}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 4711))
		ways[fmt.Sprintf("seed %d", seed)] = func(_ string, n int) int { return r.IntN(n) }
	}
	return ways
}

// crashAt makes the machine stop at the n-th operation from now on, before or after it.
func crashAt(w *world, n int, effect vfs.Effect) (happened func() bool) {
	count, fired := 0, false
	w.mem.SetFault(func(vfs.Op) (vfs.Effect, error) {
		count++
		if count == n+1 {
			fired = true
			return effect, nil
		}
		return vfs.Proceed, nil
	})
	return func() bool {
		w.mem.SetFault(nil)
		return fired
	}
}

// reboot is the world after the crash.
func (w *world) reboot(choose func(string, int) int) *world {
	r := *w
	r.mem = w.mem.Crash(choose)
	r.dir, r.symlink, r.chmod = r.mem, r.mem.Symlink, r.mem.Chmod
	r.root = func() (vfs.Dir, error) { return r.mem.Sub(".") }
	return &r
}

// TestDropCrashes stops the machine before and after every operation of a drop, loses what was not
// synced in several ways, stops it again at every operation of the repair, and wants the segment
// whole or wholly gone in the end, and everything else as it was. Where another file was put in the
// place of the one that was meant, that file must never go.
func TestDropCrashes(t *testing.T) {
	t.Parallel()
	for _, v := range append(victims(t), lone(t)) {
		for _, replaced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %d replaced=%v", v.layout, len(v.all), replaced), func(t *testing.T) {
				t.Parallel()
				ends, seen := map[string]int{}, map[string]bool{}
				for n := range 1000 {
					if !crashDrop(t, v, n, replaced, ends, seen) {
						break
					}
				}
				if ends["whole"] == 0 || (ends["gone"] == 0) != replaced {
					t.Errorf("ends %v", ends)
				}
			})
		}
	}
}

// crashDrop crashes a drop at its n-th operation in every way. It reports false if there is none.
// What was seen on disk before is not repaired again.
func crashDrop(t *testing.T, v victim, n int, replaced bool, ends map[string]int,
	seen map[string]bool) bool {
	t.Helper()
	for _, effect := range []vfs.Effect{vfs.CrashBefore, vfs.CrashAfter} {
		for way, choose := range crashes() {
			w := newMem(t)
			s := v.fill(w)
			target := v.targetNow(w)
			p := permit(t, target)
			if replaced {
				s = v.openReplacing(w)
			}
			happened := crashAt(w, n, effect)
			err := s.Drop(context.Background(), p, target)
			if !happened() {
				return false
			}
			w = w.reboot(choose)
			name := fmt.Sprintf("operation %d, effect %d, %s", n, effect, way)
			if got := v.state(w); err == nil && got != "gone" && got != emptyTrash {
				t.Fatalf("%s: said to be durably gone, and is: %s", name, got)
			}
			if disk := w.disk(v.dir); !seen[disk] {
				seen[disk] = true
				repair(t, &v, w, name, ends)
			}
		}
	}
	return true
}

// disk is everything in a directory and its trash.
func (w *world) disk(dir string) string {
	var out strings.Builder
	for _, dir := range []string{dir, dir + "/.tierd-trash"} {
		for _, name := range w.names(dir) {
			fmt.Fprintln(&out, dir, name, w.stat(dir+"/"+name).Inode)
		}
	}
	return out.String()
}

// openReplacing is a source that sees another file in the place of the records from the first look
// at them on: the drop moves away what it was not meant to.
func (v *victim) openReplacing(w *world) *logdir.Source {
	v.meant = w.stat(v.dir + "/" + v.records)
	w.put("new", impostor)
	if err := w.dir.Replace("new", v.dir+"/"+v.records); err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(w.dir.Sync("."), w.dir.Sync(v.dir)); err != nil {
		w.t.Fatal(err)
	}
	v.content[v.records] = impostor
	s := w.open(v.layout, func(c *logdir.Config) {
		root := c.Root
		c.Root = func() (vfs.Dir, error) {
			dir, err := root()
			return blindDir{dir, v}, err
		}
	})
	scan(w.t, s, now)
	return s
}

// blindDir says of the records in their place that they are still the ones that were meant.
type blindDir struct {
	vfs.Dir
	v *victim
}

func (d blindDir) Stat(name string) (vfs.Info, error) {
	info, err := d.Dir.Stat(name)
	if name == d.v.dir+"/"+d.v.records && err == nil {
		info.Stat = d.v.meant
	}
	return info, err
}

// repair scans a rebooted world, crashing at every operation in turn, and wants it right after one
// scan that goes through.
func repair(t *testing.T, v *victim, w *world, name string, ends map[string]int) {
	t.Helper()
	before := w.mem.Clone()
	for n := range 1000 {
		for _, effect := range []vfs.Effect{vfs.CrashBefore, vfs.CrashAfter} {
			again := *w
			again.mem = before.Clone()
			again.root = func() (vfs.Dir, error) { return again.mem.Sub(".") }
			happened := crashAt(&again, n, effect)
			s := again.open(v.layout)
			_, err := s.Scan(context.Background(), now)
			if err != nil {
				t.Fatal(err)
			}
			if !happened() {
				return
			}
			after := again.reboot(nil)
			res := scan(t, after.open(v.layout), now)
			state := v.state(after)
			if state != "whole" && state != "gone" || !res.Scans[len(res.Scans)-1].Whole {
				t.Fatalf("%s, operation %d of the repair, effect %d: %s, %+v", name, n, effect,
					state, res)
			}
			ends[state]++
		}
	}
}

// faults are ways in which operations of a drop fail.
type faults struct {
	effect   vfs.Effect
	lasting  bool // all that follow fail as well
	replaced bool // and the file is not the one that was meant
}

// TestDropFaults fails each operation of a drop in turn, before and after its effect, once and for
// good. What the drop says must be so, a later scan must put everything right, and durably.
func TestDropFaults(t *testing.T) {
	t.Parallel()
	for _, v := range append(victims(t), lone(t)) {
		for i := range 8 {
			f := faults{vfs.Fail, i&1 > 0, i&2 > 0}
			if i&4 > 0 {
				f.effect = vfs.FailAfter
			}
			t.Run(fmt.Sprintf("%s %d %+v", v.layout, len(v.all), f), func(t *testing.T) {
				t.Parallel()
				ends := map[string]int{}
				for n := range 1000 {
					end := faultDrop(t, v, n, f)
					if end == "" {
						break
					}
					ends[end]++
				}
				if ends["whole"] == 0 || (ends["gone"] == 0) != f.replaced {
					t.Errorf("ends %v", ends)
				}
			})
		}
	}
}

// faultDrop fails the n-th operation of a drop and returns how it ended; "" if there is none.
func faultDrop(t *testing.T, v victim, n int, f faults) string {
	t.Helper()
	w := newMem(t)
	s := v.fill(w)
	target := v.targetNow(w)
	p := permit(t, target)
	if f.replaced {
		s = v.openReplacing(w)
	}
	count := 0
	w.mem.SetFault(func(vfs.Op) (vfs.Effect, error) {
		count++
		if count == n+1 || f.lasting && count > n {
			return f.effect, nil
		}
		return vfs.Proceed, nil
	})
	err := s.Drop(context.Background(), p, target)
	w.mem.SetFault(nil)
	if count <= n {
		return ""
	}
	if errors.Is(err, tier.ErrVanished) || errors.Is(err, tier.ErrChanged) && !f.replaced {
		t.Errorf("operation %d: a fault is taken for a change: %v", n, err)
	}
	gone := v.state(w)
	if err == nil && gone != "gone" && gone != emptyTrash {
		t.Errorf("operation %d: said to be gone, and is: %s", n, gone)
	}
	*w.clock += second
	if res := scan(t, s, now); !look(t, s, v.id.String()).Whole || len(res.Problems) > 0 {
		t.Errorf("operation %d: after a scan: %+v", n, res)
	}
	state := v.state(w)
	if state != "whole" && state != "gone" {
		t.Errorf("operation %d: %v, then %s", n, err, state)
	}
	// What the scan put right is durable: no crash changes it.
	for way, choose := range crashes() {
		crashed := *w
		crashed.mem = w.mem.Clone()
		after := crashed.reboot(choose)
		if _, err := after.open(v.layout).Scan(context.Background(), now); err != nil {
			t.Fatal(err)
		}
		if got := v.state(after); got != state {
			t.Errorf("operation %d, then a crash, %s: %s and then %s", n, way, state, got)
		}
	}
	return state
}
