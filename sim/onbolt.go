package sim

import (
	"bytes"
	"errors"
	"fmt"
	"path"

	"github.com/tierd/tierd/offsets"
)

// A share of the histories keeps the ledger in a real bbolt file. The medium in memory still says
// which commit fails, and what a crash leaves; the process reads from the file, each commit goes to
// both, and what a new process finds in the file has to be what was committed. A second process on
// the file is refused.

// boltFile is the ledger's file below Config.LedgerDir.
const boltFile = "ledger.db"

// onBolt is the medium of one process: a file, and the memory that it must agree with.
type onBolt struct {
	w    *World
	mem  *offsets.Memory
	file *offsets.Bolt
}

// medium is where the ledger of the process that begins lies.
func (w *World) medium() (offsets.Medium, error) {
	if w.Config.LedgerDir == "" {
		return w.Medium, nil
	}
	at := path.Join(w.Config.LedgerDir, boltFile)
	file, err := w.openBolt(at)
	if err != nil {
		return nil, err
	}
	w.bolt = &onBolt{w, w.Medium, file}
	switch second, err := w.openBolt(at); {
	case err == nil:
		w.oracle.violate(Recovered, "a second process has opened the ledger beside the first")
		must(second.Close())
	case !errors.Is(err, offsets.ErrInUse):
		return nil, err
	}
	return w.bolt, w.bolt.begin()
}

// openBolt opens the ledger's file at the path, as a process does.
func openBolt(at string) (*offsets.Bolt, error) {
	return offsets.OpenBolt(at, offsets.BoltOptions{NewID: func() [16]byte { return [16]byte{1} }})
}

// pair is a key with its value; none for one that is deleted.
type pair struct{ key, value []byte }

// contents reads a whole medium.
func contents(m offsets.Medium) (all []pair, err error) {
	err = m.View(func(r offsets.Reader) error {
		return r.Scan(nil, nil, func(key, value []byte) error {
			all = append(all, pair{bytes.Clone(key), bytes.Clone(value)})
			return nil
		})
	})
	return all, err
}

// begin compares file and memory, and makes the file what the memory is: where a commit failed, or
// the ledger was replaced, only the memory knows what is to be there.
func (b *onBolt) begin() error {
	want, err := contents(b.mem.Clone())
	if err != nil {
		return err
	}
	got, err := contents(b.file)
	if err != nil {
		return err
	}
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same = bytes.Equal(got[i].key, want[i].key) && bytes.Equal(got[i].value, want[i].value)
	}
	known := b.w.boltKnown
	b.w.boltKnown = true
	if same {
		return nil
	}
	if known {
		b.w.oracle.violate(Recovered, "the ledger's file has %d entries, and not the %d that were "+
			"committed", len(got), len(want))
	}
	return b.file.Update(func(tx offsets.Tx) error {
		for _, p := range got {
			if err := tx.Delete(p.key); err != nil {
				return err
			}
		}
		return apply(tx, want)
	})
}

func apply(tx offsets.Tx, changes []pair) error {
	for _, p := range changes {
		err := error(nil)
		if p.value == nil {
			err = tx.Delete(p.key)
		} else {
			err = tx.Put(p.key, p.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// View implements offsets.Medium.
func (b *onBolt) View(fn func(offsets.Reader) error) error { return b.file.View(fn) }

// Update implements offsets.Medium.
func (b *onBolt) Update(fn func(offsets.Tx) error) error {
	var made recordingTx
	refused := error(nil)
	err := b.mem.Update(func(tx offsets.Tx) error {
		made.Tx = tx
		refused = fn(&made)
		return refused
	})
	if err != nil {
		b.w.boltKnown = b.w.boltKnown && refused != nil // else the commit is there or not
		return err
	}
	return b.file.Update(func(tx offsets.Tx) error { return apply(tx, made.changes) })
}

// Close implements offsets.Medium.
func (b *onBolt) Close() error { return errors.Join(b.file.Close(), b.mem.Close()) }

// String implements offsets.Medium.
func (b *onBolt) String() string { return fmt.Sprintf("%s, and in memory", b.file) }

// recordingTx keeps what a commit changes.
type recordingTx struct {
	offsets.Tx
	changes []pair
}

// Put implements offsets.Tx.
func (t *recordingTx) Put(key, value []byte) error {
	t.changes = append(t.changes, pair{bytes.Clone(key), bytes.Clone(value)})
	return t.Tx.Put(key, value)
}

// Delete implements offsets.Tx.
func (t *recordingTx) Delete(key []byte) error {
	t.changes = append(t.changes, pair{bytes.Clone(key), nil})
	return t.Tx.Delete(key)
}

// letGo ends the use of the file by a process that has ended.
func (w *World) letGo() {
	if w.bolt != nil {
		must(w.bolt.file.Close())
		w.bolt = nil
	}
}
