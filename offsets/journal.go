package offsets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/btree"

	"github.com/tierd/tierd/runtime/tier"
)

// A commit writes every page anew of which it changes anything, and the records of a thousand logs
// lie in a thousand pages. So a commit writes its changes one behind the other, as parts of the
// journal, and they are kept in memory too. When there are many, a commit puts them where they
// belong before it adds its own: then what several records changed in a page goes there at once.
//
// The root alone is put into its place by every commit. So a journal of which the end is missing
// does not fit it, and is found.

const (
	// journalBytesMax is how many bytes the journal has before its changes are put where they belong.
	journalBytesMax = 2 << 20
	// partBytes is how large a part of the journal becomes, where one change is not larger. Two of
	// them go into a page of 4 KiB, of which a commit writes the last one anew.
	partBytes = 1600
	// recentDegree is that of the tree in memory.
	recentDegree = 32
)

// change sets the value of a key; nil deletes it. Neither is ever changed.
type change struct{ key, value []byte }

// recent is what the latest commits have changed: all that the journal says, and the root. It does
// not change once its commit is over.
type recent struct {
	changes *btree.BTreeG[change]
	parts   uint64 // the number of the next part of the journal; they are numbered from 0
	bytes   int    // of the parts
}

func newRecent() *recent {
	return &recent{changes: btree.NewG(recentDegree, func(a, b change) bool {
		return bytes.Compare(a.key, b.key) < 0
	})}
}

// clone returns what the next commit may change.
func (r *recent) clone() *recent {
	out := *r
	out.changes = r.changes.Clone()
	return &out
}

// fold puts all changes where they belong, in the order of their keys, and returns what the journal
// has then.
func (r *recent) fold(tree *boltTx) (*recent, error) {
	for n := range r.parts {
		if err := tree.Delete(journalKey(n)); err != nil {
			return nil, err
		}
	}
	after := newRecent()
	var err error
	r.changes.Ascend(func(c change) bool {
		switch {
		case isRoot(c.key): // it is there already
			after.changes.ReplaceOrInsert(c)
		case c.value == nil:
			err = tree.Delete(c.key)
		default:
			err = tree.Put(c.key, c.value)
		}
		return err == nil
	})
	return after, err
}

func isRoot(key []byte) bool { return len(key) == 1 && kind(key[0]) == kindRoot }

// readJournal reads what the journal in the file says, if this tierd knows the ledger's format.
func readJournal(tree *boltTx) (*recent, error) {
	if _, err := readRoot(tree); err != nil {
		return nil, err
	}
	r := newRecent()
	c, err := tree.seek([]byte{byte(kindJournal)})
	for ; err == nil && c.key != nil && kind(c.key[0]) == kindJournal; err = c.next() {
		if err := r.readPart(c.key, c.value); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	root, err := tree.Get(rootKey())
	if last, ok := r.changes.Get(change{key: rootKey()}); ok && !bytes.Equal(last.value, root) {
		return nil, named(rootKey(), fmt.Errorf("%w: the journal says something else of it",
			tier.ErrDamaged))
	}
	r.changes.ReplaceOrInsert(change{rootKey(), bytes.Clone(root)})
	return r, err
}

// readPart takes the changes of the next part.
func (r *recent) readPart(key, value []byte) error {
	if !bytes.Equal(key, journalKey(r.parts)) {
		return named(key, fmt.Errorf("%w: part %d of the journal should be here", tier.ErrDamaged,
			r.parts))
	}
	body, err := disclose(key, value)
	if err != nil {
		return err
	}
	r.parts++
	r.bytes += len(value)
	d := decoder{b: bytes.Clone(body)}
	for len(d.b) > 0 && !d.bad {
		c := change{key: d.take(d.count())}
		if value := d.take(d.count()); len(value) > 0 {
			c.value = value
		}
		r.changes.ReplaceOrInsert(c)
	}
	return named(key, d.end())
}

// recentReader reads a commit: its recent changes, and below them the tree in the file. The tree
// may already be that of the commit after: that differs from it by what recent has, which hides it.
type recentReader struct {
	recent *recent
	tree   *boltTx
}

// Get implements Reader.
func (r *recentReader) Get(key []byte) ([]byte, error) {
	if c, ok := r.recent.changes.Get(change{key: key}); ok {
		return c.value, nil
	}
	return r.tree.Get(key)
}

// Scan implements Reader.
func (r *recentReader) Scan(from, to []byte, fn func(key, value []byte) error) error {
	if to != nil && bytes.Compare(from, to) >= 0 {
		return nil
	}
	cursor, err := r.tree.seek(from)
	// below calls fn with what the tree has below high, and skips high itself.
	below := func(high []byte) {
		for err == nil && cursor.key != nil {
			order := -1
			if high != nil {
				order = bytes.Compare(cursor.key, high)
			}
			if order > 0 {
				return
			}
			if order < 0 && kind(cursor.key[0]) != kindJournal {
				err = fn(cursor.key, cursor.value)
			}
			if err == nil {
				err = cursor.next()
			}
		}
	}
	visit := func(c change) bool {
		if below(c.key); err == nil && c.value != nil {
			err = fn(c.key, c.value)
		}
		return err == nil
	}
	if to == nil {
		r.recent.changes.AscendGreaterOrEqual(change{key: from}, visit)
	} else {
		r.recent.changes.AscendRange(change{key: from}, change{key: to}, visit)
	}
	below(to)
	return err
}

// recentTx changes a commit that is not over.
type recentTx struct {
	recentReader
	full bool   // the journal was, and its changes go to their places before the first new one
	part []byte // of the journal, under way: the value without its checksum
	root []byte // where it was put
}

var _ Tx = (*recentTx)(nil)

// Put implements Tx.
func (t *recentTx) Put(key, value []byte) error {
	if isRoot(key) {
		t.root = value
	}
	return t.change(change{key, value})
}

// Delete implements Tx.
func (t *recentTx) Delete(key []byte) error { return t.change(change{key: key}) }

func (t *recentTx) change(c change) (err error) {
	if t.full { // a commit that changes nothing is undone, and would do this in vain
		t.full = false
		if t.recent, err = t.recent.fold(t.tree); err != nil {
			return err
		}
	}
	t.recent.changes.ReplaceOrInsert(c)
	if t.part == nil {
		t.part = append(make([]byte, 0, partBytes+512), valueVersion)
	}
	t.part = append(binary.AppendUvarint(t.part, uint64(len(c.key))), c.key...)
	t.part = append(binary.AppendUvarint(t.part, uint64(len(c.value))), c.value...)
	if len(t.part) < partBytes {
		return nil
	}
	return t.endPart()
}

// endPart writes the part of the journal that is under way.
func (t *recentTx) endPart() error {
	key := journalKey(t.recent.parts)
	value := binary.BigEndian.AppendUint32(t.part, checksum(key, t.part))
	t.recent.parts++
	t.recent.bytes += len(value)
	t.part = nil
	return t.tree.Put(key, value)
}

// finish writes what is not written yet.
func (t *recentTx) finish() error {
	var err error
	if t.part != nil {
		err = t.endPart()
	}
	if t.root != nil {
		err = errors.Join(err, t.tree.Put(rootKey(), t.root))
	}
	return err
}
