package offsets

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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
