package offsets

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/tierd/tierd/runtime/tier"
)

// journaled opens a file whose journal is never full, with the values of 20 keys in it, each commit
// with two parts.
func journaled(t *testing.T) (*Bolt, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	_, m := openAt(t, path)
	for i := range 10 {
		put(t, m, map[string]string{
			fmt.Sprintf("\xF0%d", i): strings.Repeat("v", partBytes),
			fmt.Sprintf("\xF1%d", i): "w",
		})
	}
	return m, path
}

func put(t *testing.T, m *Bolt, values map[string]string) {
	t.Helper()
	err := m.Update(func(tx Tx) error {
		var err error
		for key, value := range values {
			if value == "" {
				err = errors.Join(err, tx.Delete([]byte(key)))
			} else {
				err = errors.Join(err, tx.Put([]byte(key), []byte(value)))
			}
		}
		root, rerr := readRoot(tx)
		root.clock++
		return errors.Join(err, rerr, tx.Put(rootKey(), enclose(rootKey(), root.encode())))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// content is all that a reader sees, with the sums of the values in their place.
func content(t *testing.T, r Reader) string {
	t.Helper()
	var out strings.Builder
	err := r.Scan(nil, nil, func(key, value []byte) error {
		got, err := r.Get(key)
		if !bytes.Equal(got, value) {
			err = errors.Join(err, fmt.Errorf("key %x: get and scan differ", key))
		}
		fmt.Fprintf(&out, "%x=%x ", key, checksum(key, value))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func contentOf(t *testing.T, m *Bolt) (out string) {
	t.Helper()
	err := m.View(func(r Reader) error {
		out = content(t, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tamper changes the tree in the file, below the journal.
func tamper(t *testing.T, m *Bolt, change func(tree *boltTx) error) {
	t.Helper()
	err := m.update(func(tx *bbolt.Tx) error {
		tree, err := m.tree(tx)
		return errors.Join(err, change(tree))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOldView looks at a commit while others follow, in which the journal is put into its place.
func TestOldView(t *testing.T) {
	t.Parallel()
	m, _ := journaled(t)
	before := contentOf(t, m)
	err := m.View(func(r Reader) error {
		for i, journalMax := range []int{1 << 30, 1, 1, 1 << 30, 1} {
			m.journalMax = journalMax
			put(t, m, map[string]string{"\xF03": "", "\xF04": fmt.Sprint(i), "\xF2": fmt.Sprint(i)})
			if got := content(t, r); got != before {
				t.Errorf("commit %d is seen by who looked before:\n%s\nwant:\n%s", i, got, before)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if contentOf(t, m) == before {
		t.Error("the commits are not seen by who looks after them")
	}
}

// TestViewBetween looks at what is recent over the tree of the commit after, as one does who comes
// between a commit and the moment at which it is made known.
func TestViewBetween(t *testing.T) {
	t.Parallel()
	for _, journalMax := range []int{1 << 30, 1} {
		m, _ := journaled(t)
		m.journalMax = journalMax
		before, old := contentOf(t, m), m.recent.Load()
		put(t, m, map[string]string{"\xF03": "", "\xF04": "x", "\xF2": "y"})
		err := m.transact(false, func(tx *bbolt.Tx) error {
			tree, err := m.tree(tx)
			if got := content(t, &recentReader{old, tree}); got != before {
				t.Errorf("journal of %d: got\n%s\nwant\n%s", journalMax, got, before)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedJournal takes parts of a journal away, or replaces them. What its checksums do not
// show, its numbers or the root do.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	enclosed := func(part uint64, body string) func(*boltTx) error {
		key := journalKey(part)
		return func(tree *boltTx) error { return tree.Put(key, enclose(key, []byte(body))) }
	}
	newer := func(version byte) func(*boltTx) error {
		key := journalKey(3)
		value := append([]byte{version}, 0, 0, 0, 0)
		return func(tree *boltTx) error { return tree.Put(key, resealed(key, value)) }
	}
	for name, c := range map[string]struct {
		change func(tree *boltTx) error
		want   error
		word   string
	}{
		"the first is missing": {func(tree *boltTx) error { return tree.Delete(journalKey(0)) },
			tier.ErrDamaged, "part 1 of the journal"},
		"one is missing": {func(tree *boltTx) error { return tree.Delete(journalKey(3)) },
			tier.ErrDamaged, "part 4 of the journal"},
		"the last is missing": {func(tree *boltTx) error { return tree.Delete(journalKey(19)) },
			tier.ErrDamaged, "(00)"},
		"there is one too many": {enclosed(21, ""), tier.ErrDamaged, "part 21 of the journal"},
		"one ends in a key":     {enclosed(3, "\x05abc"), tier.ErrDamaged, "part 3 of the journal"},
		"one ends in a value":   {enclosed(3, "\x01a\x05b"), tier.ErrDamaged, "part 3 of the journal"},
		"a key is misshapen": {func(tree *boltTx) error { return tree.Put([]byte{9, 0, 0}, []byte{1}) },
			tier.ErrDamaged, "entry 090000"},
		"one is of a later version": {newer(valueVersion + 1), tier.ErrNewer, "part 3 of the journal"},
		"all of it is of a later version": {func(tree *boltTx) error {
			root := rootState{format: formatVersion + 1}
			return errors.Join(tree.Delete(journalKey(0)),
				tree.Put(rootKey(), enclose(rootKey(), root.encode())))
		}, tier.ErrNewer, "(00)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, path := journaled(t)
			tamper(t, m, c.change)
			m.Close()
			m, err := OpenBolt(path, BoltOptions{ReadOnly: true})
			if m != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.word) ||
				!strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "tierd") {
				t.Errorf("got error %v, want one of %q that wraps %v", err, c.word, c.want)
			}
		})
	}
}

// resealed gives a value of which the end is no checksum the right one.
func resealed(key, value []byte) []byte {
	value = value[:len(value)-4]
	sum := checksum(key, value)
	return append(value, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
}

// TestJournalBytes pins the bytes of a part: format version 2.
func TestJournalBytes(t *testing.T) {
	t.Parallel()
	_, m := openAt(t, filepath.Join(t.TempDir(), "ledger.db"))
	put := func(tx Tx) error {
		return errors.Join(tx.Put([]byte("\xF0a"), []byte("value")), tx.Delete([]byte("\xF0b")))
	}
	if err := m.Update(put); err != nil {
		t.Fatal(err)
	}
	tamper(t, m, func(tree *boltTx) error {
		got, err := tree.Get(journalKey(0))
		const want = "01" + "02f061" + "0576616c7565" + "02f062" + "00" + "3e9d2cce"
		if hex.EncodeToString(got) != want {
			t.Errorf("got %x, want %s", got, want)
		}
		return err
	})
}

// TestFormat1 opens a file of format 1, which has no journal, and goes on with it.
func TestFormat1(t *testing.T) {
	t.Parallel()
	id := tier.LogID{Table: "t", Name: "0"}
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, m := openAt(t, path)
	mustAppend(t, l, tier.LogOpened{Log: id, Epoch: 1})
	m.journalMax = 1
	mustAppend(t, l, tier.HoleRecorded{Log: id, Hole: tier.Hole{Range: span(0, 9)}})
	mustAppend(t, l, tier.ClockSeen{At: 5})
	formatOf := func() (format uint64) {
		tamper(t, m, func(tree *boltTx) error {
			root, err := readRoot(tree)
			format = root.format
			return err
		})
		return format
	}
	tamper(t, m, func(tree *boltTx) error {
		recent, err := m.recent.Load().fold(tree)
		if err != nil || recent.changes.Len() != 1 {
			return errors.Join(err, errors.New("want the root alone"))
		}
		root, err := readRoot(tree)
		root.format = 1
		return errors.Join(err, tree.Put(rootKey(), enclose(rootKey(), root.encode())))
	})
	l.Close()
	l, m = openAt(t, path)
	if s, _ := l.Log(id); s.Copied != 9 || l.Clock() != 5 || formatOf() != 1 {
		t.Errorf("format %d: copied offset %d, clock %d", formatOf(), s.Copied, l.Clock())
	}
	mustAppend(t, l, tier.ClockSeen{At: 6})
	if formatOf() != 2 {
		t.Errorf("the format stays %d", formatOf())
	}
	l.Close()
	l, _ = openAt(t, path)
	if s, _ := l.Log(id); s.Copied != 9 || l.Clock() != 6 {
		t.Errorf("after a restart: copied offset %d, clock %d", s.Copied, l.Clock())
	}
}
