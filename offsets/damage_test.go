package offsets_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/offsets/offsetstest"
	"github.com/tierd/tierd/runtime/tier"
)

// entryOf is an entry of a medium.
type entryOf struct{ key, value []byte }

func entries(t *testing.T, m offsets.Medium) []entryOf {
	t.Helper()
	var out []entryOf
	err := m.View(func(r offsets.Reader) error {
		return r.Scan(nil, nil, func(key, value []byte) error {
			out = append(out, entryOf{bytes.Clone(key), bytes.Clone(value)})
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// changed is a copy of the medium with one entry replaced, or removed where value is nil.
func changed(t *testing.T, m *offsets.Memory, key, value []byte) *offsets.Memory {
	t.Helper()
	out := m.Clone()
	err := out.Update(func(tx offsets.Tx) error {
		if value == nil {
			return tx.Delete(key)
		}
		return tx.Put(key, value)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// opensDamaged checks that the medium is refused as damaged, with advice and a name.
func opensDamaged(t *testing.T, m offsets.Medium, name string) {
	t.Helper()
	l, err := offsets.Open(m)
	if err == nil {
		l.Close()
		t.Fatal("a damaged ledger was opened")
	}
	text := err.Error()
	if !errors.Is(err, tier.ErrDamaged) || !strings.Contains(text, "tierd rebuild") ||
		!strings.Contains(text, name) {
		t.Fatalf("got error %q, want damage of %q with advice", text, name)
	}
}

// TestDamagedValues flips every bit of every value, and finds each.
func TestDamagedValues(t *testing.T) {
	t.Parallel()
	m := historic(t)
	for _, e := range entries(t, m) {
		for i := range e.value {
			for bit := range 8 {
				value := bytes.Clone(e.value)
				value[i] ^= 1 << bit
				opensDamaged(t, changed(t, m, e.key, value), fmt.Sprintf("%x", e.key))
			}
		}
		opensDamaged(t, changed(t, m, e.key, e.value[:1]), fmt.Sprintf("%x", e.key))
	}
}

// TestMissingEntries removes each entry in turn.
func TestMissingEntries(t *testing.T) {
	t.Parallel()
	m := historic(t)
	for _, e := range entries(t, m) {
		opensDamaged(t, changed(t, m, e.key, nil), "")
	}
}

// TestMisplacedEntries puts each value under other keys, of its own kind and others.
func TestMisplacedEntries(t *testing.T) {
	t.Parallel()
	m := historic(t)
	all := entries(t, m)
	for _, e := range all {
		for i := range e.key {
			key := bytes.Clone(e.key)
			key[i] ^= 1
			opensDamaged(t, changed(t, m, key, e.value), "")
		}
		for _, other := range all {
			if !bytes.Equal(e.key, other.key) {
				opensDamaged(t, changed(t, m, e.key, other.value), fmt.Sprintf("%x", e.key))
			}
		}
	}
}

// TestStaleEntries brings back what each entry was after earlier records: its own checksum fits.
func TestStaleEntries(t *testing.T) {
	t.Parallel()
	m := offsets.NewMemory([16]byte{1})
	l, err := offsets.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	var states []*offsets.Memory
	for _, r := range offsetstest.History() {
		if _, err := l.Append(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		states = append(states, m.Clone())
	}
	last := states[len(states)-1]
	now := map[string][]byte{}
	for _, e := range entries(t, last) {
		now[string(e.key)] = e.value
	}
	earlier := map[string]bool{}
	for _, s := range states {
		earlier[string(dump(t, s))] = true
	}
	stale := 0
	for _, old := range states {
		for _, e := range entries(t, old) {
			if bytes.Equal(now[string(e.key)], e.value) {
				continue
			}
			before := changed(t, last, e.key, e.value)
			if earlier[string(dump(t, before))] {
				continue // all of it is of an earlier commit, which a ledger cannot notice
			}
			stale++
			opensDamaged(t, before, "")
		}
	}
	if stale < 20 {
		t.Fatalf("only %d entries were stale", stale)
	}
}

// TestNewer refuses what a later version wrote: a value, and the ledger as a whole.
func TestNewer(t *testing.T) {
	t.Parallel()
	m := historic(t)
	for _, e := range entries(t, m) {
		value := bytes.Clone(e.value)
		value[0]++
		opensNewer(t, changed(t, m, e.key, sealed(e.key, value)))
		if len(e.key) == 1 {
			value = bytes.Clone(e.value)
			value[1]++ // the format
			opensNewer(t, changed(t, m, e.key, sealed(e.key, value)))
		}
	}
}

// sealed corrects the checksum.
func sealed(key, value []byte) []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	body := value[:len(value)-4]
	sum := crc32.Update(crc32.Checksum(key, table), table, body)
	return binary.BigEndian.AppendUint32(bytes.Clone(body), sum)
}

func opensNewer(t *testing.T, m offsets.Medium) {
	t.Helper()
	_, err := offsets.Open(m)
	if !errors.Is(err, tier.ErrNewer) || errors.Is(err, tier.ErrDamaged) {
		t.Fatalf("got error %v, want ErrNewer", err)
	}
}

// image is the bytes of a ledger's file, with what it told then and one commit before.
type image struct {
	bytes []byte
	told  [2]offsetstest.Snapshot
}

// images makes a ledger of several levels of pages, and shows it now and then. Its journal has a
// size of which little, or much, is in its place.
func images(t testing.TB, journal int) []image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	reopen := func() *offsets.Ledger {
		m, err := offsets.OpenBolt(path, offsets.BoltOptions{NewID: newID, JournalBytesMax: journal})
		if err != nil {
			t.Fatal(err)
		}
		l, err := offsets.Open(m)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := reopen()
	add := func(records ...tier.Record) {
		for _, r := range records {
			if _, err := l.Append(context.Background(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(offsetstest.History()...)
	log := offsetstest.History()[0].Subject()
	var out []image
	for n := range 150 {
		a := tier.Attempt{ID: tier.AttemptID{9, byte(n)}, Epoch: 1, Names: []string{"x.log"},
			Range: tier.Range{Base: tier.Offset(100 + n), Next: tier.Offset(101 + n)}}
		pos, err := l.Append(context.Background(), tier.CopyStarted{Log: log, Attempt: a})
		if err != nil {
			t.Fatal(err)
		}
		c := tier.Copy{Attempt: a.ID, Position: pos, Epoch: 1}
		c.Content.Range = a.Range
		c.Content.Files = []tier.SourceFile{{FileDigest: tier.FileDigest{Name: "x.log"}}}
		before, err := offsetstest.Take(l)
		if err != nil {
			t.Fatal(err)
		}
		add(tier.CopyFinished{Log: log, Copy: c})
		if n%49 != 0 && n != 149 {
			continue
		}
		after, err := offsetstest.Take(l)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, image{used(b), [2]offsetstest.Snapshot{before, after}})
		l = reopen()
	}
	l.Close()
	return out
}

// used cuts off the end of a file that no page has used yet.
func used(b []byte) []byte {
	end := len(bytes.TrimRight(b, "\x00"))
	return b[:min(len(b), (end+8191)/4096*4096)]
}

// openBytes opens a ledger's file of these bytes, reads all of it, and goes on with it.
func openBytes(t testing.TB, path string, b []byte) (s offsetstest.Snapshot, err error) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := offsets.OpenBolt(path, offsets.BoltOptions{NewID: newID})
	if err != nil {
		return s, err
	}
	l, err := offsets.Open(m)
	if err != nil {
		return s, err
	}
	if s, err = offsetstest.Take(l); err == nil {
		_, err = l.Append(context.Background(), tier.ClockSeen{At: s.Clock + 1})
	}
	return s, errors.Join(err, l.Close())
}

// soundOrDamaged checks that bytes which may be damaged are refused as such, or tell exactly what
// the last commit or the one before told. Returns whether they were refused.
func soundOrDamaged(t testing.TB, what, path string, b []byte, last image) bool {
	t.Helper()
	got, err := openBytes(t, path, b)
	if err != nil {
		if !errors.Is(err, tier.ErrDamaged) || !strings.Contains(err.Error(), "tierd rebuild") ||
			!strings.Contains(err.Error(), path) {
			t.Fatalf("%s: got error %v, want damage of %s with advice", what, err, path)
		}
		return true
	}
	if reflect.DeepEqual(last.told[0], got) || reflect.DeepEqual(last.told[1], got) {
		return false
	}
	t.Fatalf("%s: opened, but is another ledger", what)
	return false
}

// TestDamagedFile damages a bbolt file in many places: single bits, whole pages, pages of an older
// commit, and its end.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	for _, journal := range []int{10_000, 0} {
		t.Run(fmt.Sprintf("journal=%d", journal), func(t *testing.T) {
			t.Parallel()
			damageFile(t, images(t, journal))
		})
	}
}

func damageFile(t *testing.T, all []image) {
	t.Helper()
	last := all[len(all)-1]
	sound := last.bytes
	path := filepath.Join(t.TempDir(), "ledger.db")
	if soundOrDamaged(t, "sound", path, sound, last) {
		t.Fatal("a sound file was refused")
	}
	const page = 4096
	random := rand.New(rand.NewPCG(1, 2))
	found := map[string]int{}
	try := func(kind string, at int, change func(b []byte)) {
		b := bytes.Clone(sound)
		change(b)
		if soundOrDamaged(t, fmt.Sprintf("%s at %d", kind, at), path, b, last) {
			found[kind]++
		}
	}
	for at := 0; at < len(sound); at += 1 + random.IntN(800) {
		try("bit", at, func(b []byte) { b[at] ^= 1 << random.IntN(8) })
	}
	for base := 0; base < len(sound); base += page {
		for range 6 { // page headers and the first elements
			at := base + random.IntN(96)
			try("head", at, func(b []byte) { b[at] ^= 1 << random.IntN(8) })
		}
		try("zeroed", base, func(b []byte) { clear(b[base:min(base+page, len(b))]) })
		for _, old := range all[:len(all)-1] {
			if base+page <= len(old.bytes) {
				try("stale", base, func(b []byte) { copy(b[base:base+page], old.bytes[base:]) })
			}
		}
	}
	for _, kind := range []string{"bit", "head", "zeroed", "stale"} {
		if found[kind] < 3 {
			t.Errorf("%s: only %d were found out; the test tests nothing", kind, found[kind])
		}
	}
	for size := 1; size < len(sound); size += 1 + random.IntN(2*page) {
		soundOrDamaged(t, fmt.Sprintf("cut to %d bytes", size), path, sound[:size], last)
	}
}

// FuzzDamagedFile sets three places of a file to other values.
func FuzzDamagedFile(f *testing.F) {
	all := images(f, 10_000)
	last := all[len(all)-1]
	f.Add(uint32(16), byte(1), uint32(4096), byte(2), uint32(9000), byte(3))
	f.Fuzz(func(t *testing.T, at1 uint32, b1 byte, at2 uint32, b2 byte, at3 uint32, b3 byte) {
		b := bytes.Clone(last.bytes)
		b[int(at1)%len(b)], b[int(at2)%len(b)], b[int(at3)%len(b)] = b1, b2, b3
		soundOrDamaged(t, "changed", filepath.Join(t.TempDir(), "ledger.db"), b, last)
	})
}
