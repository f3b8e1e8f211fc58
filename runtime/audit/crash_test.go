package audit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// promises is what a workload was told is durable.
type promises struct {
	intents  map[uint64]tier.Offset // base by number
	outcomes map[uint64]bool        // of the intent
}

// workload opens the log and works on it until something fails: intents and outcomes alone, three
// at a time, and over several files. It notes what it was promised.
func workload(dir vfs.Dir, p *promises) error {
	p.intents, p.outcomes = map[uint64]tier.Offset{}, map[uint64]bool{}
	l, err := Open(dir, Options{FileBytesMax: 1200})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	ctx := context.Background()
	for round := range tier.Offset(2) {
		alone, err := l.Intend(ctx, deletion(100*round))
		if err != nil {
			return err
		}
		p.intents[alone] = 100 * round
		var seqs [3]uint64
		var errs [3]error
		var calls []func()
		for i := range seqs {
			calls = append(calls, func() {
				seqs[i], errs[i] = l.Intend(ctx, deletion(100*round+tier.Offset(10*i)))
			})
		}
		together(l, calls...)
		if err := errors.Join(errs[:]...); err != nil {
			return err
		}
		for i, seq := range seqs {
			p.intents[seq] = 100*round + tier.Offset(10*i)
		}
		for _, seq := range []uint64{alone, seqs[1]} {
			if err := l.Conclude(ctx, seq, deleted()); err != nil {
				return err
			}
			p.outcomes[seq] = true
		}
	}
	return l.Close()
}

// holds checks that a log has everything that was promised, opens, and goes on.
func (p *promises) holds(dir vfs.Dir) error {
	l, err := Open(dir, Options{FileBytesMax: 1200})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	numbers, err := listFiles(dir)
	if err != nil {
		return err
	}
	intents, outcomes := map[uint64]tier.Offset{}, map[uint64]bool{}
	end, err := scan(dir, numbers, &chain{}, func(r record) {
		if r.Intent != nil {
			intents[r.Seq] = r.Intent.Range.Base
		} else {
			outcomes[r.Outcome.Of] = true
		}
	})
	if err != nil || end.bytes > 0 {
		return fmt.Errorf("after Open: %d torn bytes, %w", end.bytes, err)
	}
	for seq, base := range p.intents {
		if got, has := intents[seq]; !has || got != base {
			return fmt.Errorf("the promised intent %d of %d is gone: %d, %t", seq, base, got, has)
		}
	}
	for of := range p.outcomes {
		if !outcomes[of] {
			return fmt.Errorf("the promised outcome of %d is gone", of)
		}
	}
	open := l.OpenIntents()
	if len(open) != len(intents)-len(outcomes) {
		return fmt.Errorf("%d open of %d intents, %d outcomes", len(open), len(intents),
			len(outcomes))
	}
	for _, in := range open {
		if err := l.Conclude(context.Background(), in.Seq, deleted()); err != nil {
			return err
		}
	}
	if _, err := l.Intend(context.Background(), deletion(0)); err != nil {
		return err
	}
	r, err := Verify(dir)
	if err != nil || len(r.Open) != 1 {
		return fmt.Errorf("%+v, %w", r, err)
	}
	return nil
}

// at lets one operation have an effect.
func at(n int, effect vfs.Effect, fired *bool) vfs.Fault {
	calls := 0
	return func(vfs.Op) (vfs.Effect, error) {
		calls++
		if calls-1 == n {
			*fired = true
			return effect, nil
		}
		return vfs.Proceed, nil
	}
}

// leavings are ways in which a crash treats what was not synced: names lost or kept; bytes lost
// (0), kept (1), cut in half (2) or zeroed (3), as far as asked for.
func leavings(ofBytes ...int) map[string]func(string, int) int {
	out := map[string]func(string, int) int{}
	for names := range 2 {
		for _, bytes := range ofBytes {
			out[fmt.Sprintf("names %d, bytes %d", names, bytes)] = func(_ string, n int) int {
				if n == 2 {
					return names
				}
				return bytes
			}
		}
	}
	return out
}

// operationsMax bounds the sweeps: the workload has fewer.
const operationsMax = 500

// TestCrashAnywhere: the machine stops before or after each operation, and leaves of what was not
// synced whatever it likes. Every record whose call returned is there.
func TestCrashAnywhere(t *testing.T) {
	t.Parallel()
	crashes := 0
	for _, effect := range []vfs.Effect{vfs.CrashBefore, vfs.CrashAfter} {
		for n := range operationsMax {
			dir, fired := newMem(), false
			dir.SetFault(at(n, effect, &fired))
			var p promises
			err := workload(dir, &p)
			if !fired {
				if err != nil {
					t.Fatalf("without a crash: %v", err)
				}
				break
			}
			crashes++
			for name, leaves := range leavings(0, 1, 2, 3) {
				if err := p.holds(dir.Crash(leaves)); err != nil {
					t.Fatalf("operation %d, effect %d, %s: %v", n, effect, name, err)
				}
			}
		}
	}
	if crashes < 40 || crashes == 2*operationsMax {
		t.Errorf("%d crashes", crashes)
	}
}

// TestCrashInRecovery: the machine stops again while Open puts right what the first crash left.
// Nothing that was promised is lost, nor what was torn: it is in its place or kept aside.
func TestCrashInRecovery(t *testing.T) {
	t.Parallel()
	recoveries := 0
	for n := range operationsMax {
		dir, fired := newMem(), false
		dir.SetFault(at(n, vfs.CrashAfter, &fired))
		var p promises
		_ = workload(dir, &p)
		if !fired {
			break
		}
		for half := 2; half <= 3; half++ {
			left := dir.Crash(func(_ string, n int) int { return min(half, n-1) })
			torn := tornOf(t, left)
			if torn == "" {
				continue
			}
			for m := range operationsMax {
				again, fired := left.Clone(), false
				again.SetFault(at(m, vfs.CrashAfter, &fired))
				if l, err := Open(again, Options{}); err == nil {
					_ = l.Close()
				}
				recoveries++
				for name, leaves := range leavings(0, 1) {
					disk := again.Crash(leaves)
					if tornOf(t, disk) != torn && !keptAside(t, disk, torn) {
						t.Fatalf("operation %d, then %d of Open, %s: torn tail gone", n, m, name)
					}
					if err := p.holds(disk); err != nil {
						t.Fatalf("operation %d, then %d of Open, %s: %v", n, m, name, err)
					}
				}
				if !fired {
					break
				}
			}
		}
	}
	if recoveries < 40 {
		t.Errorf("%d recoveries", recoveries)
	}
}

// tornOf is the torn tail of a log; "" if it has none, or no file yet.
func tornOf(t *testing.T, dir vfs.Dir) string {
	t.Helper()
	r, err := Verify(dir)
	if errors.Is(err, tier.ErrVanished) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	last := content(t, dir, nameOf(r.Files))
	return last[len(last)-int(r.TornBytes):]
}

func keptAside(t *testing.T, dir vfs.Dir, torn string) bool {
	t.Helper()
	infos, err := dir.List(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if strings.HasPrefix(info.Name, "torn-") && content(t, dir, info.Name) == torn {
			return true
		}
	}
	return false
}

// TestKillAnywhere: the process ends before each operation, the machine goes on, and so does the
// next process; then the machine stops and loses everything that was not synced. What the second
// process read of the first was not durable until it made it so.
func TestKillAnywhere(t *testing.T) {
	t.Parallel()
	for n := range operationsMax {
		dir, calls := newMem(), 0
		dir.SetFault(func(vfs.Op) (vfs.Effect, error) {
			if calls++; calls > n {
				runtime.Goexit()
			}
			return vfs.Proceed, nil
		})
		var first, second promises
		finished := false
		var wg sync.WaitGroup
		wg.Go(func() {
			finished = workload(dir, &first) == nil
		})
		wg.Wait()
		dir.SetFault(nil)
		one := dir.Clone() // where the second process makes one record only
		seq := mustIntend(t, mustOpen(t, one, 0), 7)
		third := promises{intents: map[uint64]tier.Offset{seq: 7}}
		if err := workload(dir, &second); err != nil {
			t.Fatalf("killed before operation %d: %v", n, err)
		}
		disk, oneDisk := dir.Crash(nil), one.Crash(nil)
		for i, err := range []error{first.holds(disk.Clone()), second.holds(disk.Clone()),
			first.holds(oneDisk.Clone()), third.holds(oneDisk.Clone())} {
			if err != nil {
				t.Fatalf("killed before operation %d, check %d: %v", n, i, err)
			}
		}
		if finished {
			if n < 20 {
				t.Errorf("%d operations", n)
			}
			return
		}
	}
	t.Error("the workload does not end")
}

// TestFailAnywhere: each operation fails once, without and with effect. From then on the log takes
// nothing, and what it promised before is there after a crash.
func TestFailAnywhere(t *testing.T) {
	t.Parallel()
	failures := 0
	for _, effect := range []vfs.Effect{vfs.Fail, vfs.FailAfter} {
		for n := range operationsMax {
			dir, fired := newMem(), false
			dir.SetFault(at(n, effect, &fired))
			var p promises
			err := workload(dir, &p)
			if !fired {
				break
			}
			if err == nil {
				t.Fatalf("operation %d, effect %d: the failure was not noticed", n, effect)
			}
			failures++
			for name, leaves := range leavings(0, 1, 2, 3) {
				if err := p.holds(dir.Crash(leaves)); err != nil {
					t.Fatalf("operation %d, effect %d, %s: %v", n, effect, name, err)
				}
			}
		}
	}
	if failures < 40 || failures == 2*operationsMax {
		t.Errorf("%d failures", failures)
	}
}

// TestBrokenTakesNothing: after a failed write or fsync every call fails, also one that was queued
// with it, and the log says why.
func TestBrokenTakesNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []vfs.OpKind{vfs.OpWrite, vfs.OpSync} {
		dir := newMem()
		l := mustOpen(t, dir, 0)
		seq := mustIntend(t, l, 0)
		dir.SetFault(func(op vfs.Op) (vfs.Effect, error) {
			if op.Kind == kind {
				return vfs.FailAfter, nil
			}
			return vfs.Proceed, nil
		})
		var errs [3]error
		together(l,
			func() { _, errs[0] = l.Intend(context.Background(), deletion(10)) },
			func() { _, errs[1] = l.Intend(context.Background(), deletion(20)) },
			func() { errs[2] = l.Conclude(context.Background(), seq, deleted()) })
		dir.SetFault(nil)
		_, later := l.Intend(context.Background(), deletion(30))
		for i, err := range append(errs[:], later, l.Err()) {
			if err == nil || errors.Is(err, tier.ErrRefused) ||
				!strings.Contains(err.Error(), "until a restart") {
				t.Errorf("%s fails, call %d: %v", kind, i, err)
			}
		}
	}
}

// TestAFullDisk: the disk is full after some number of bytes, and still is at the next start. The
// errors name file and reason, no record that was promised is lost, nothing is promised that is not
// there, and with room again the log goes on.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	whole := newMem()
	if err := workload(whole, &promises{}); err != nil {
		t.Fatal(err)
	}
	full, names := 0, 0
	for capacity := int64(1); ; capacity += 37 {
		dir := newMem()
		dir.SetCapacity(capacity)
		var p promises
		err := workload(dir, &p)
		if err == nil {
			break
		}
		full++
		if !vfs.IsFull(err) {
			t.Fatalf("%d bytes: %v, want that the disk is full", capacity, err)
		}
		if strings.Contains(err.Error(), "audit-00000") {
			names++
		}
		if l, err := Open(dir, Options{}); err == nil {
			_ = l.Close()
		} else if !vfs.IsFull(err) || !strings.Contains(err.Error(), "audit-00000") {
			t.Fatalf("%d bytes, the next start: %v", capacity, err)
		}
		dir.SetCapacity(0)
		if err := p.holds(dir); err != nil {
			t.Fatalf("%d bytes: %v", capacity, err)
		}
	}
	if full < 40 || names < full {
		t.Errorf("%d full disks, of which %d errors name the file", full, names)
	}
}
