package offsets

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// onDisk makes a ledger with one log and n copies, closes it, and opens it again.
func onDisk(t *testing.T, n int) (*Ledger, *Bolt) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, _ := openAt(t, path)
	id := tier.LogID{Table: "t", Name: "0"}
	mustAppend(t, l, tier.LogOpened{Log: id, Epoch: 1})
	for i := range n {
		a := benchAttempt(i, span(tier.Offset(i), tier.Offset(i+1)))
		pos := mustAppend(t, l, tier.CopyStarted{Log: id, Attempt: a})
		c := benchCopy(i, a.Range)
		c.Position = pos
		mustAppend(t, l, tier.CopyFinished{Log: id, Copy: c})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return openAt(t, path)
}

// TestFaultInAValue takes away the end of a value that goes over many pages: the fault is in the
// one who reads it, not in bbolt.
func TestFaultInAValue(t *testing.T) {
	t.Parallel()
	l, m := onDisk(t, 0)
	id := tier.LogID{Table: "t", Name: "0"}
	a := benchAttempt(1, span(0, 9))
	a.Names = []string{strings.Repeat("n", 50*4096)}
	pos := mustAppend(t, l, tier.CopyStarted{Log: id, Attempt: a})
	m.journalMax = 1              // so that the value goes into its place
	for i := range tier.Time(8) { // moves all other pages to the front
		mustAppend(t, l, tier.ClockSeen{At: 1 + i})
	}
	b, err := os.ReadFile(m.path)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndex(b, bytes.Repeat([]byte("n"), 4096))
	if err := os.Truncate(m.path, int64(last)/4096*4096-10*4096); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Attempt(id, pos); !errors.Is(err, tier.ErrDamaged) {
		t.Fatalf("got error %v, want damage", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestMediumGoesBack lets entries change behind the ledger's back. It is noticed before the next
// record is taken, be the entry older or newer than it should be.
func TestMediumGoesBack(t *testing.T) {
	t.Parallel()
	id := tier.LogID{Table: "t", Name: "0"}
	changes := map[string]func(h *header, root *rootState){
		"copied offset fell":    func(h *header, _ *rootState) { h.state.Copied-- },
		"copied offset rose":    func(h *header, _ *rootState) { h.state.Copied++ },
		"next position fell":    func(h *header, _ *rootState) { h.state.Next-- },
		"next position rose":    func(h *header, _ *rootState) { h.state.Next++ },
		"log start rose":        func(h *header, _ *rootState) { h.state.LogStart++ },
		"epoch rose":            func(h *header, _ *rootState) { h.state.Epoch++ },
		"log became another":    func(h *header, _ *rootState) { h.state.Log.Name = "1" },
		"the clock went back":   func(_ *header, root *rootState) { root.clock-- },
		"a log was numbered":    func(_ *header, root *rootState) { root.nextLog++ },
		"the root was replaced": func(_ *header, root *rootState) { root.id[3]++ },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMemory([16]byte{1})
			l, err := Open(m)
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, tier.ClockSeen{At: 9})
			mustAppend(t, l, tier.LogOpened{Log: id, Epoch: 1})
			mustAppend(t, l, tier.HoleRecorded{Log: id, Hole: tier.Hole{Range: span(0, 9)}})
			h, root := *l.index.logs[id], l.index.root
			change(&h, &root)
			err = m.Update(func(tx Tx) error {
				key := logKey(h.number)
				return errors.Join(tx.Put(key, enclose(key, h.encode())),
					tx.Put(rootKey(), enclose(rootKey(), root.encode())))
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = l.Append(context.Background(), tier.Published{Log: id, Position: 0})
			if !errors.Is(err, tier.ErrDamaged) {
				t.Errorf("got error %v, want damage", err)
			}
			if l.Err() != err {
				t.Errorf("the ledger goes on")
			}
		})
	}
}

// TestContradictions gives a ledger entries that are well in themselves, and in number and sum, but
// do not fit together. It is damaged.
func TestContradictions(t *testing.T) {
	t.Parallel()
	id := tier.LogID{Table: "t", Name: "0"}
	putHeader := func(tx Tx, number uint64, change func(h *header), h header) error {
		h.number = number
		change(&h)
		return replace(tx, logKey(number), h.encode())
	}
	tests := map[string]func(tx Tx, h header) error{
		"a copy is not counted": func(tx Tx, h header) error {
			return putHeader(tx, h.number, func(h *header) { h.copies-- }, h)
		},
		"a copy is counted that is not there": func(tx Tx, h header) error {
			return putHeader(tx, h.number, func(h *header) { h.copies++ }, h)
		},
		"a position was never handed out": func(tx Tx, h header) error {
			return putHeader(tx, h.number, func(h *header) { h.state.Next = 1 }, h)
		},
		"an unpublished position was never handed out": func(tx Tx, h header) error {
			return putHeader(tx, h.number, func(h *header) {
				h.state.Unpublished = []tier.Position{9}
			}, h)
		},
		"the copied offset lies below the start": func(tx Tx, h header) error {
			return putHeader(tx, h.number, func(h *header) { h.state.Start = 99 }, h)
		},
		"a range beyond the prefix reaches into it": func(tx Tx, h header) error {
			return putHeader(tx, h.number, func(h *header) { h.ahead = tier.RangeSet{span(1, 9)} }, h)
		},
		"a log is there twice": func(tx Tx, h header) error {
			return putHeader(tx, 2, func(*header) {}, h)
		},
		"a log's number was never given": func(tx Tx, h header) error {
			return putHeader(tx, 3, func(h *header) { h.state.Log.Name = "1" }, h)
		},
		"a copy belongs to no log": func(tx Tx, h header) error {
			c := storedCopy{Copy: benchCopy(1, span(0, 1))}
			return replace(tx, factKey(kindCopy, 2, 0), c.encode())
		},
		"a log's table is not there": func(tx Tx, h header) error {
			return putHeader(tx, h.number, func(h *header) { h.state.Log.Table = "other" }, h)
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMemory([16]byte{1})
			l, err := Open(m)
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, tier.LogOpened{Log: id, Epoch: 1})
			// A second log takes a number; its own header goes again.
			mustAppend(t, l, tier.LogOpened{Log: tier.LogID{Table: "t", Name: "2"}, Epoch: 1})
			for i := range 2 {
				a := benchAttempt(i, span(tier.Offset(i), tier.Offset(i+1)))
				c := benchCopy(i, a.Range)
				c.Position = mustAppend(t, l, tier.CopyStarted{Log: id, Attempt: a})
				mustAppend(t, l, tier.CopyFinished{Log: id, Copy: c})
			}
			err = m.Update(func(tx Tx) error {
				return errors.Join(replace(tx, logKey(2), nil), change(tx, *l.index.logs[id]))
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Open(m); !errors.Is(err, tier.ErrDamaged) {
				t.Errorf("got error %v, want damage", err)
			}
		})
	}
}

func openAt(t testing.TB, path string) (*Ledger, *Bolt) {
	t.Helper()
	m, err := OpenBolt(path, BoltOptions{NewID: func() [16]byte { return [16]byte{1} }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, m
}

func mustAppend(t testing.TB, l *Ledger, r tier.Record) tier.Position {
	t.Helper()
	pos, err := l.Append(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return pos
}

// TestWriteError lets the file fail under bbolt. The ledger stops, and what was durable is there.
func TestWriteError(t *testing.T) {
	t.Parallel()
	l, m := onDisk(t, 3)
	path := m.path
	if err := m.file.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := l.Append(context.Background(), tier.ClockSeen{At: 5})
	if !errors.Is(err, os.ErrClosed) || errors.Is(err, tier.ErrRefused) {
		t.Fatalf("got error %v, want that of the file", err)
	}
	if _, again := l.Append(context.Background(), tier.ClockSeen{At: 6}); again != err {
		t.Errorf("the next record: got error %v, want %v", again, err)
	}
	l.Close()
	l, _ = openAt(t, path)
	if s, ok := l.Log(tier.LogID{Table: "t", Name: "0"}); !ok || s.Copied != 3 || l.Clock() != 0 {
		t.Errorf("after a restart: copied offset %d, clock %d", s.Copied, l.Clock())
	}
}

// TestFault takes pages away under bbolt, as a disk does that can no longer read them: the kernel
// answers a look at them with a signal. It becomes an error, for readers and for writers.
func TestFault(t *testing.T) {
	t.Parallel()
	id := tier.LogID{Table: "t", Name: "0"}
	looks := map[string]func(l *Ledger) error{
		"Copy":  func(l *Ledger) error { _, err := l.Copy(id, 7); return err },
		"Facts": func(l *Ledger) error { _, err := l.Facts(id, 0, 40); return err },
		"Restore": func(l *Ledger) error {
			return l.Restore(func(tier.LogState, []tier.Remote, []tier.Attempt) error { return nil })
		},
		"Append": func(l *Ledger) error {
			_, err := l.Append(context.Background(), tier.CopyAbandoned{Log: id, Position: 7})
			return err
		},
	}
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, m := onDisk(t, 40)
			if err := os.Truncate(m.path, 8192); err != nil {
				t.Fatal(err)
			}
			err := look(l)
			if !errors.Is(err, tier.ErrDamaged) {
				t.Fatalf("got error %v, want damage", err)
			}
			if again := look(l); again != err {
				t.Errorf("the second look: got error %v, want %v", again, err)
			}
			if err := l.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			m, err = OpenBolt(m.path, BoltOptions{})
			if !errors.Is(err, tier.ErrDamaged) {
				t.Errorf("open again: got %v, error %v, want damage", m, err)
			}
		})
	}
}
