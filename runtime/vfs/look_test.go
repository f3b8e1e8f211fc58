package vfs_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/vfs"
)

// TestLook: after any operations Look gives what calls see, and LookSynced what they see after a
// crash that loses all it can; what was given does not change afterwards.
func TestLook(t *testing.T) {
	t.Parallel()
	apart := false
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newMem()
		kept, was := []byte(nil), ""
		changes, all := m.Changes(), ""
		below, inA := m.ChangesBelow("a"), ""
		for range 40 {
			change(r, m)
			look := text(m.Look)
			if now := look + text(m.LookSynced); now != all && m.Changes() == changes {
				t.Fatalf("seed %d: without a change\n%sbecame\n%s", seed, all, now)
			} else {
				all = now
			}
			now := lines(look+text(m.LookSynced), "a/")
			if now != inA && m.ChangesBelow("a") == below {
				t.Fatalf("seed %d: without a change below a\n%sbecame\n%s", seed, inA, now)
			}
			apart = apart || m.Changes() > changes && m.ChangesBelow("a") == below
			changes, below, inA = m.Changes(), m.ChangesBelow("a"), now
			if want := listed(t, m); look != want {
				t.Fatalf("seed %d: Look gives\n%sand there is\n%s", seed, look, want)
			}
			synced := text(m.LookSynced)
			if want := listed(t, m.Clone().Crash(nil)); synced != want {
				t.Fatalf("seed %d: LookSynced gives\n%sand a crash leaves\n%s", seed, synced, want)
			}
			if string(kept) != was {
				t.Fatalf("seed %d: the bytes %q became %q", seed, was, kept)
			}
			m.Look("a", func(_ vfs.Info, data []byte) { kept, was = data, string(data) })
		}
	}
	if !apart {
		t.Error("what changes elsewhere changes what is below a directory")
	}
	if newMem().Look("nowhere", func(vfs.Info, []byte) {}) {
		t.Error("a directory that is not there is one")
	}
}

// lines keeps those that begin so.
func lines(text, prefix string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// change does one thing at random in the directories a, a/b and c; it may fail.
func change(r *rand.Rand, m *vfs.Mem) {
	dirs := []string{"a", "a/b", "c"}
	name := func() string { return fmt.Sprintf("%s/%d", dirs[r.IntN(3)], r.IntN(3)) }
	switch r.IntN(10) {
	case 0:
		_ = m.Mkdir(dirs[r.IntN(3)])
	case 8:
		_ = m.Rot(name(), func(data []byte) []byte { return append(data, '!')[1:] })
	case 9:
		_ = m.Touch(name())
	case 1:
		_ = m.Rename(name(), name())
	case 2:
		_ = m.Remove(name())
	case 3:
		_ = m.Sync([]string{".", "a", "a/b", "c"}[r.IntN(4)])
	default:
		f, err := m.Append(name())
		if err != nil {
			return
		}
		defer func() { _ = f.Close() }()
		_, _ = fmt.Fprintf(f, "%d,", r.IntN(100))
		if r.IntN(4) == 0 {
			_ = f.Truncate(int64(r.IntN(4)))
		}
		if r.IntN(2) == 0 {
			_ = f.Sync()
		}
	}
}

func text(look func(string, func(vfs.Info, []byte)) bool) string {
	var b strings.Builder
	for _, dir := range []string{"a", "a/b", "c"} {
		look(dir, func(i vfs.Info, data []byte) {
			fmt.Fprintf(&b, "%s/%s %v %q\n", dir, i.Name, i.Stat, data)
		})
	}
	return b.String()
}

// listed is what calls see.
func listed(t *testing.T, m *vfs.Mem) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{"a", "a/b", "c"} {
		infos, err := m.List(dir)
		if err != nil {
			continue
		}
		for _, i := range infos {
			if i.Mode.IsRegular() {
				fmt.Fprintf(&b, "%s/%s %v %q\n", dir, i.Name, i.Stat,
					read(t, m, dir+"/"+i.Name))
			}
		}
	}
	return b.String()
}

// TestRot: other bytes, which survive a crash, in a file that looks as it did.
func TestRot(t *testing.T) {
	t.Parallel()
	m := newMem()
	f, err := m.Create("f")
	check(t, err)
	_, err = f.Write([]byte("abc"))
	check(t, err)
	check(t, f.Sync())
	check(t, f.Close())
	check(t, m.Sync("."))
	m.SetFault(func(vfs.Op) (vfs.Effect, error) { return vfs.Fail, nil })
	before := look(m)
	check(t, m.Rot("f", func(data []byte) []byte { data[1] ^= 1; return data }))
	m.SetFault(nil)
	after := m.Crash(nil)
	if got := look(after); got.Stat != before.Stat || read(t, after, "f") != "acc" {
		t.Errorf("%+v with %q, want %+v with acc", got.Stat, read(t, after, "f"), before.Stat)
	}
	check(t, after.Touch("f"))
	if got := look(after); got.Stat.ModTime <= before.Stat.ModTime {
		t.Errorf("%+v after a touch, %+v before", got.Stat, before.Stat)
	}
	if err := after.Rot("g", func(data []byte) []byte { return data }); err == nil {
		t.Error("a file that is not there rots")
	}
}

func look(m *vfs.Mem) (info vfs.Info) {
	m.Look(".", func(i vfs.Info, _ []byte) { info = i })
	return info
}
