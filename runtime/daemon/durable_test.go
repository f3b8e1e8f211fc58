package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
	"github.com/tierd/tierd/runtime/vfs/vfstest"
)

// durableWrite is a way in which the daemon changes a file of data_dir, beside what the ledger, the
// deletion log and the cache of readers do by themselves.
type durableWrite struct {
	name   string
	before map[string]string // what is durable before it, by name
	do     func(dir vfs.Dir) error
	// repeats is set where the same process tries again after an error.
	repeats bool
	// wrong says what must not be there after a crash; done is whether the call had returned, and not
	// with an error.
	wrong func(files map[string]string, done bool) string
}

const (
	oldState = `{"version":1,"bad":[]}`
	newState = `{"version":1,"bad":[{"log":"orders/0","position":7,"text":"another hash"}]}`
)

var (
	rebuiltAt  = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	keptLedger = ledgerFile + ".20261130T120000.000000000Z"
)

var durableWrites = []durableWrite{
	{
		name:    "the scrub file",
		before:  map[string]string{scrubFile: oldState},
		do:      func(dir vfs.Dir) error { return replaceFile(dir, scrubFile, []byte(newState)) },
		repeats: true,
		wrong: func(files map[string]string, done bool) string {
			if got := files[scrubFile]; got != newState && (done || got != oldState) {
				return fmt.Sprintf("%s holds %q", scrubFile, got)
			}
			return ""
		},
	},
	{
		name:    "the first scrub file, beside a half that was left",
		before:  map[string]string{scrubFile + ".half": "{"},
		do:      func(dir vfs.Dir) error { return replaceFile(dir, scrubFile, []byte(newState)) },
		repeats: true,
		wrong: func(files map[string]string, done bool) string {
			if got, has := files[scrubFile]; has && got != newState || done && !has {
				return fmt.Sprintf("%s holds %q", scrubFile, got)
			}
			return ""
		},
	},
	{
		name:   "a rebuilt ledger",
		before: map[string]string{ledgerFile: "old", rebuiltFile: "new"},
		do: func(dir vfs.Dir) error {
			aside, err := replaceLedger(dir, rebuiltAt)
			if err == nil && aside != keptLedger {
				err = fmt.Errorf("the old ledger is said to be %q", aside)
			}
			return err
		},
		wrong: func(files map[string]string, done bool) string {
			now, kept := files[ledgerFile], files[keptLedger]
			switch {
			case now != "old" && now != "new":
				return fmt.Sprintf("the ledger is %q", now)
			case now == "new" && kept != "old":
				return fmt.Sprintf("the old ledger is gone: %q is kept", kept)
			case done && now != "new":
				return "the new ledger is not in its place"
			}
			return ""
		},
	},
	{
		name:   "a rebuilt ledger where there was none",
		before: map[string]string{rebuiltFile: "new"},
		do: func(dir vfs.Dir) error {
			aside, err := replaceLedger(dir, rebuiltAt)
			if err == nil && aside != "" {
				err = fmt.Errorf("an old ledger is said to be %q", aside)
			}
			return err
		},
		wrong: func(files map[string]string, done bool) string {
			if now, has := files[ledgerFile]; has && now != "new" || done && !has {
				return fmt.Sprintf("the ledger is %q", now)
			}
			return ""
		},
	},
}

// disk makes a file system on which everything that is there before is durable.
func (w durableWrite) disk(t *testing.T) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem(func() tier.Time { return 0 })
	for name, data := range w.before {
		f, err := m.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, data); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Sync("."); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestDurableWrites: the machine stops before and after each operation, and leaves of what was not
// synced whatever it likes; or an operation fails, having done its work or not. What is there then
// is what was there before or all of what was to be, and never less; and the next try succeeds.
func TestDurableWrites(t *testing.T) {
	t.Parallel()
	for _, w := range durableWrites {
		for effect, name := range map[vfs.Effect]string{vfs.CrashBefore: "stop before",
			vfs.CrashAfter: "stop after", vfs.Fail: "fail", vfs.FailAfter: "fail after"} {
			t.Run(w.name+", "+name, func(t *testing.T) {
				t.Parallel()
				if n := w.sweep(t, effect); n < 3 {
					t.Errorf("it has %d operations: the test shows nothing", n)
				}
			})
		}
	}
}

// sweep lets each operation in turn have the effect, and returns how many there are.
func (w durableWrite) sweep(t *testing.T, effect vfs.Effect) int {
	for n := range 100 {
		m, fired := w.disk(t), false
		first := -1
		m.SetFault(func(op vfs.Op) (vfs.Effect, error) {
			if first < 0 {
				first = op.Count
			}
			if op.Count-first != n {
				return vfs.Proceed, nil
			}
			fired = true
			return effect, vfs.ErrFull
		})
		err := w.do(m)
		if !fired && err != nil {
			t.Fatalf("without a fault: %v", err)
		}
		if fired && err == nil && effect == vfs.Fail {
			t.Errorf("operation %d failed, and nobody was told", n)
		}
		w.judge(t, fmt.Sprintf("operation %d", n), m, err == nil)
		if !fired {
			return n
		}
		if m.SetFault(nil); w.repeats && (effect == vfs.Fail || effect == vfs.FailAfter) {
			if err := w.do(m); err != nil {
				t.Errorf("operation %d: the next try: %v", n, err)
			}
			w.judge(t, fmt.Sprintf("after operation %d", n), m, true)
		}
	}
	t.Fatal("it does not end")
	return 0
}

// judge looks at everything that a crash may leave, and tries the write once more on each.
func (w durableWrite) judge(t *testing.T, when string, m *vfs.Mem, done bool) {
	t.Helper()
	seen := 0
	vfstest.EachCrash(t, m, func(left *vfs.Mem) {
		seen++
		if why := w.wrong(filesOf(t, left), done); why != "" {
			t.Errorf("%s, crash %d: %s", when, seen, why)
		}
		files := filesOf(t, left)
		if _, has := files[rebuiltFile]; !has && strings.Contains(w.name, "ledger") {
			return // a rebuild begins with making it
		}
		if files[keptLedger] != "" {
			if err := left.Remove(keptLedger); err != nil { // the next one comes at another time
				t.Fatal(err)
			}
		}
		if err := w.do(left); err != nil {
			t.Errorf("%s, crash %d: the next try: %v", when, seen, err)
			return
		}
		if why := w.wrong(filesOf(t, left), true); why != "" {
			t.Errorf("%s, crash %d, after the next try: %s", when, seen, why)
		}
	})
}

// filesOf reads everything in a directory.
func filesOf(t *testing.T, dir vfs.Dir) map[string]string {
	t.Helper()
	names, err := dir.Names(".")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range names {
		f, err := dir.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		out[name] = string(data)
	}
	return out
}
