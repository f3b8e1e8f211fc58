package audit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// written gives a directory with a log of ten records over several files, the last batch of which
// has two, and the lines by file.
func written(t *testing.T) (*vfs.Mem, map[string][]string) {
	t.Helper()
	dir := newMem()
	l := mustOpen(t, dir, 1200)
	for i := range tier.Offset(4) {
		mustConclude(t, l, mustIntend(t, l, 10*i), deleted())
	}
	together(l, func() { mustIntend(t, l, 100) }, func() { mustIntend(t, l, 110) })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines := map[string][]string{}
	for n := range mustVerify(t, dir).Files {
		name := nameOf(n + 1)
		lines[name] = strings.SplitAfter(strings.TrimSuffix(content(t, dir, name), "\n"), "\n")
		lines[name][len(lines[name])-1] += "\n"
	}
	if len(lines) < 3 {
		t.Fatalf("%d files", len(lines))
	}
	return dir, lines
}

func lastOf(lines map[string][]string) string { return nameOf(len(lines)) }

// TestChangedByteShows flips a bit of every byte of every line up to the last batch: Verify names
// the file, by the line itself or the one after. In the last batch it may show as torn.
func TestChangedByteShows(t *testing.T) {
	t.Parallel()
	_, lines := written(t)
	for file := range lines {
		for i, line := range lines[file] {
			lastBatch := file == lastOf(lines) && i >= len(lines[file])-2
			if file == lastOf(lines) && i == len(lines[file])-1 {
				continue
			}
			for at := range len(line) {
				changed := []byte(line)
				changed[at] ^= 1 << (at % 8)
				tampered := replaced(lines, file, i, string(changed))
				r, err := Verify(tampered.on(t))
				if lastBatch && r.TornBytes > 0 {
					continue
				}
				if !errors.Is(err, tier.ErrDamaged) && !errors.Is(err, tier.ErrNewer) {
					t.Fatalf("%s, line %d, byte %d: %v", file, i+1, at, err)
				}
				if !strings.Contains(err.Error(), "audit-0000") {
					t.Fatalf("%v names no file", err)
				}
			}
		}
	}
}

// files are lines by file.
type files map[string][]string

func (f files) on(t *testing.T) *vfs.Mem {
	t.Helper()
	dir := newMem()
	for name, lines := range f {
		rewriteFile(t, dir, name, strings.Join(lines, ""))
	}
	return dir
}

func replaced(lines files, file string, i int, with ...string) files {
	out := files{}
	for name, ls := range lines {
		out[name] = append([]string{}, ls...)
	}
	rest := append([]string{}, out[file][i+1:]...)
	out[file] = append(append(out[file][:i], with...), rest...)
	return out
}

// TestTampered: records and files that were removed, added, moved or made up.
func TestTampered(t *testing.T) {
	t.Parallel()
	_, lines := written(t)
	one, two, last := nameOf(1), nameOf(2), lastOf(lines)
	first := lines[one][0]
	renumbered := files{}
	for name, ls := range lines {
		renumbered[strings.Replace(name, "audit-00000", "audit-00001", 1)] = ls
	}
	cases := map[string]files{
		"removed":          replaced(lines, one, 1),
		"doubled":          replaced(lines, one, 0, first, first),
		"swapped":          replaced(replaced(lines, one, 1, first), one, 0, lines[one][1]),
		"removed at start": replaced(lines, one, 0),
		"emptied":          replaced(lines, two, 0, ""),
		"blank line":       replaced(lines, two, 0, "\n", lines[two][0]),
		"renumbered":       renumbered,
	}
	twice := replaced(lines, one, 0, first)
	twice[nameOf(len(lines)+1)] = lines[last]
	cases["file twice"] = twice
	gone := replaced(lines, one, 0, first)
	delete(gone, two)
	cases["file gone"] = gone
	begun := replaced(lines, one, 0, first)
	delete(begun, one)
	begun[one] = lines[two]
	cases["first file replaced"] = begun
	for i := range lines[two] {
		short := replaced(lines, two, i, strings.TrimSuffix(lines[two][i], "\n"))
		cases[fmt.Sprintf("newline %d", i)] = short
	}
	for name, f := range cases {
		dir := f.on(t)
		if r, err := Verify(dir); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestContradictions: whole lines, rightly chained, that say what cannot be.
func TestContradictions(t *testing.T) {
	t.Parallel()
	intent, err := bodyOfIntent(deletion(0))
	if err != nil {
		t.Fatal(err)
	}
	outcome := func(of uint64) []byte {
		body, err := bodyOfOutcome(of, deleted())
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	both := append(append([]byte{}, intent...), append([]byte(","), outcome(1)...)...)
	for name, entries := range map[string][]entry{
		"concluded twice":   {{1, 1, intent}, {2, 3, outcome(1)}, {3, 4, outcome(1)}},
		"not yet intended":  {{1, 1, intent}, {2, 1, outcome(3)}},
		"outcome concluded": {{1, 1, intent}, {2, 3, outcome(1)}, {3, 4, outcome(2)}},
		"open_from too far": {{1, 2, intent}},
		"open_from zero":    {{1, 0, intent}},
		"open_from behind":  {{1, 1, intent}, {2, 1, outcome(1)}},
		"both":              {{1, 1, both}},
		"neither":           {{1, 1, []byte(`"intent":null`)}},
		"bad log":           {{1, 1, bytes.Replace(intent, []byte("orders/0"), []byte("o"), 1)}},
	} {
		var data []byte
		c := &chain{}
		for _, e := range entries {
			line := appendLine(nil, e, c.head, e.seq)
			data = append(append(data, line...), '\n')
			if _, err := c.step(line); err != nil {
				break
			}
		}
		dir := newMem()
		rewriteFile(t, dir, nameOf(1), string(data))
		if _, err := Verify(dir); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%s: Verify: %v", name, err)
		}
		if _, err := Open(dir, Options{}); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%s: Open: %v", name, err)
		}
	}
}

// TestTornOrDamaged cuts or garbles each line of the last file. Whether a record was durable there
// is told by the batch numbers of those after it, and what no crash leaves is damage in any case.
func TestTornOrDamaged(t *testing.T) {
	t.Parallel()
	_, lines := written(t)
	last := lastOf(lines)
	n := len(lines[last])
	for i, line := range lines[last] {
		for name, with := range map[string]string{
			"zeros":   strings.Repeat("\x00", len(line)),
			"half":    line[:len(line)/2] + "\n",
			"garbage": "no record\n",
		} {
			dir := replaced(lines, last, i, with).on(t)
			r, err := Verify(dir)
			l, openErr := Open(dir, Options{})
			if i < n-2 || name != "zeros" { // before the last batch, or no crash's work
				if !errors.Is(err, tier.ErrDamaged) || !errors.Is(openErr, tier.ErrDamaged) {
					t.Errorf("%s in line %d of %d: %v, %v", name, i+1, n, err, openErr)
				}
				want := fmt.Sprintf("%s:%d:", last, i+1)
				if name != "zeros" && !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s in line %d: %v does not begin with %s", name, i+1, err, want)
				}
				continue
			}
			if err != nil || openErr != nil {
				t.Fatalf("%s in line %d of %d: %v, %v", name, i+1, n, err, openErr)
			}
			cut := with + strings.Join(lines[last][i+1:], "")
			if r.TornBytes != int64(len(cut)) {
				t.Errorf("%s in line %d: %d torn bytes, want %d", name, i+1, r.TornBytes, len(cut))
			}
			offset := len(strings.Join(lines[last][:i], ""))
			aside := fmt.Sprintf("torn-%06d-%d.bin", len(lines), offset)
			if got := content(t, dir, aside); got != cut {
				t.Errorf("%s holds %q, want %q", aside, got, cut)
			}
			mustIntend(t, l, 500)
			if r := mustVerify(t, dir); r.TornBytes != 0 {
				t.Errorf("%+v", r)
			}
		}
	}
}

// TestUnfinished: what is left of the last record where its end is missing is no damage, wherever
// it ends; anything else is.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	_, lines := written(t)
	last := lastOf(lines)
	n := len(lines[last])
	line := lines[last][n-1]
	for end := 1; end < len(line); end++ {
		dir := replaced(lines, last, n-1, line[:end]).on(t)
		if r, err := Verify(dir); err != nil || r.TornBytes != int64(end) {
			t.Fatalf("%q: %+v, %v", line[:end], r, err)
		}
	}
	for _, with := range []string{"x", "{}", "{\n", line[1:], line[:len(line)-1] + "}",
		strings.Replace(line, `"seq"`, `"se"`, 1), strings.Replace(line, `"`, "", 1),
		strings.Replace(line[:20], `"`, "", 1)} {
		dir := replaced(lines, last, n-1, with).on(t)
		for _, err := range []error{second(Verify(dir)), second(Open(dir, Options{}))} {
			want := fmt.Sprintf("%s:%d: ", last, n)
			if !errors.Is(err, tier.ErrDamaged) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q: %v", with, err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestTornTwiceAtOnePlace: what is kept aside is never written over.
func TestTornTwiceAtOnePlace(t *testing.T) {
	t.Parallel()
	dir := newMem()
	for _, torn := range []string{`{"v":1`, `{"v":2`, `{"v":3`} {
		rewriteFile(t, dir, nameOf(1), torn)
		if err := mustOpen(t, dir.Clone(), 0).Close(); err != nil {
			t.Fatal(err)
		}
		if err := mustOpen(t, dir, 0).Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"torn-000001-0.bin": `{"v":1`,
		"torn-000001-0-1.bin": `{"v":2`, "torn-000001-0-2.bin": `{"v":3`} {
		if got := content(t, dir, name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}

// TestMovedAway: old files may go, oldest first, as long as no open intent and not the end of the
// chain goes with them.
func TestMovedAway(t *testing.T) {
	t.Parallel()
	dir, _ := written(t)
	whole := mustVerify(t, dir)
	if err := dir.Remove(nameOf(1)); err != nil {
		t.Fatal(err)
	}
	r := mustVerify(t, dir)
	if r.First == 1 || r.FirstPrev == (tier.SHA256{}) || r.Head != whole.Head || len(r.Open) != 2 {
		t.Errorf("%+v", r)
	}
	l := mustOpen(t, dir, 0)
	for _, in := range l.OpenIntents() {
		mustConclude(t, l, in.Seq, deleted())
	}
	mustVerify(t, dir)

	// One record a file; the intent that stays open is in the first.
	first := newMem()
	l = mustOpen(t, first, 1)
	seq := mustIntend(t, l, 0)
	for i := range tier.Offset(3) {
		mustConclude(t, l, mustIntend(t, l, 10*i), deleted())
	}
	if err := first.Remove(nameOf(int(seq))); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(first, Options{}); !errors.Is(err, tier.ErrDamaged) ||
		!strings.Contains(err.Error(), nameOf(1)) {
		t.Errorf("the file of an open intent is gone: %v", err)
	}
}

// TestOpenReadsBack: an intent without an outcome is found again, however many files ago it was.
func TestOpenReadsBack(t *testing.T) {
	t.Parallel()
	dir := newMem()
	l := mustOpen(t, dir, 1)
	for i := range tier.Offset(5) {
		mustConclude(t, l, mustIntend(t, l, 10*i), deleted())
	}
	old := mustIntend(t, l, 100)
	for i := range tier.Offset(5) {
		mustConclude(t, l, mustIntend(t, l, 10*i), deleted())
	}
	read := map[string]bool{}
	dir.SetFault(func(op vfs.Op) (vfs.Effect, error) {
		if op.Kind == vfs.OpOpen {
			read[op.Path] = true
		}
		return vfs.Proceed, nil
	})
	open := mustOpen(t, dir, 1).OpenIntents()
	if len(open) != 1 || open[0].Seq != old {
		t.Errorf("%+v", open)
	}
	if read[nameOf(int(old)-1)] || !read[nameOf(int(old))] {
		t.Errorf("read %v", read)
	}
}

func TestOtherVersionsAndNames(t *testing.T) {
	t.Parallel()
	newer := newMem()
	rewriteFile(t, newer, nameOf(1), `{"v":2,"what":"ever"}`+"\n")
	if _, err := Verify(newer); !errors.Is(err, tier.ErrNewer) {
		t.Errorf("Verify: %v", err)
	}
	if _, err := Open(newer, Options{}); !errors.Is(err, tier.ErrNewer) {
		t.Errorf("Open: %v", err)
	}
	if _, err := Verify(newMem()); !errors.Is(err, tier.ErrVanished) {
		t.Errorf("no log: %v", err)
	}
	for _, name := range []string{"audit-0000001.jsonl", "audit-000000.jsonl"} {
		odd := newMem()
		rewriteFile(t, odd, name, "")
		if _, err := Open(odd, Options{}); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := newMem()
	rewriteFile(t, other, "audit-000001.jsonl.gz", "not ours")
	rewriteFile(t, other, "notes.txt", "not ours")
	mustIntend(t, mustOpen(t, other, 0), 0)
	mustVerify(t, other)
}

// FuzzAudit: whatever the last file holds, nothing panics; where Open takes it, the log goes on,
// and where Open refuses it, so does Verify.
func FuzzAudit(f *testing.F) {
	intent, err := bodyOfIntent(deletion(0))
	if err != nil {
		f.Fatal(err)
	}
	line := string(appendLine(nil, entry{1, 1, intent}, tier.SHA256{}, 1)) + "\n"
	f.Add([]byte(line))
	f.Add([]byte(line[:len(line)/2]))
	f.Add([]byte(line + line))
	f.Add([]byte(line + "\x00\x00\n{}\n"))
	f.Add([]byte("{\"v\":1,\"seq\":1}\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := newMem()
		rewriteFile(t, dir, nameOf(1), string(data))
		before, verifyErr := Verify(dir)
		l, err := Open(dir, Options{})
		if (err == nil) != (verifyErr == nil) {
			t.Fatalf("Open: %v, Verify: %v", err, verifyErr)
		}
		if err != nil {
			return
		}
		if len(l.OpenIntents()) != len(before.Open) {
			t.Fatalf("%d open intents, want %d", len(l.OpenIntents()), len(before.Open))
		}
		if seq := mustIntend(t, l, 0); seq != before.Last+1 {
			t.Fatalf("record %d after %d", seq, before.Last)
		}
		if r := mustVerify(t, dir); r.Records != before.Records+1 || r.TornBytes != 0 {
			t.Fatalf("%+v after %+v", r, before)
		}
	})
}
