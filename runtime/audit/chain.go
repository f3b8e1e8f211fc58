package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// chain is what reading the log up to some record established. The zero chain may begin anywhere.
type chain struct {
	first     uint64 // seq of the first record that was read; 0 if none was
	firstPrev tier.SHA256
	seq       uint64 // of the last record; 0 if there is none
	head      tier.SHA256
	batch     uint64
	openFrom  uint64
	open      map[uint64]tier.Deletion // intents from first on without an outcome
}

// chainError says that a record does not fit where it stands. No crash makes such a line.
type chainError struct{ error }

// step takes the next line. An error that is no chainError says that the line is no record; then
// nothing changed.
func (c *chain) step(line []byte) (record, error) {
	r, err := readLine(line)
	if err != nil {
		return record{}, err
	}
	if err := c.follows(r); err != nil {
		return r, chainError{err}
	}
	if c.first == 0 {
		c.first, c.firstPrev, c.open = r.Seq, r.Prev, map[uint64]tier.Deletion{}
	}
	c.seq, c.head, c.batch = r.Seq, sha256.Sum256(line), r.Batch
	if err := c.apply(r); err != nil {
		return r, chainError{fmt.Errorf("record %d: %w", r.Seq, err)}
	}
	return r, nil
}

// begin takes the first line that is read, of the file with the number.
func (c *chain) begin(line []byte, number int) (record, error) {
	r, err := c.step(line)
	if err == nil && (r.Seq == 1) != (number == 1) {
		err = chainError{fmt.Errorf("record %d cannot begin this file", r.Seq)}
	}
	return r, err
}

// follows checks the place of a record.
func (c *chain) follows(r record) error {
	switch {
	case c.first == 0 && (r.Seq == 0 || (r.Seq == 1) != (r.Prev == tier.SHA256{})):
		return fmt.Errorf("record %d cannot have the prev %s", r.Seq, r.Prev)
	case c.first != 0 && r.Seq != c.seq+1:
		return fmt.Errorf("record %d follows record %d: records were removed, added or moved",
			r.Seq, c.seq)
	case c.first != 0 && r.Prev != c.head:
		return fmt.Errorf("record %d does not carry the hash of record %d: one of them was changed",
			r.Seq, c.seq)
	case r.Batch != r.Seq && (c.first == 0 || r.Batch != c.batch):
		return fmt.Errorf("record %d cannot be of the batch %d", r.Seq, r.Batch)
	}
	return nil
}

// apply takes over what the record says. Of intents before c.first nothing is known.
func (c *chain) apply(r record) error {
	switch {
	case (r.Intent == nil) == (r.Outcome == nil):
		return errors.New("want an intent or an outcome")
	case r.Intent != nil:
		d, err := r.Intent.deletion()
		if err != nil {
			return err
		}
		c.open[r.Seq] = d
	default:
		of := r.Outcome.Of
		if _, isOpen := c.open[of]; !isOpen && of >= c.first {
			return fmt.Errorf("it concludes record %d, which is no open intent", of)
		}
		delete(c.open, of)
	}
	oldest := oldestOpen(c.open, r.Seq)
	if r.OpenFrom != oldest && (r.OpenFrom == 0 || r.OpenFrom >= c.first) {
		return fmt.Errorf("open_from is %d, but the oldest open intent %d", r.OpenFrom, oldest)
	}
	c.openFrom = r.OpenFrom
	return nil
}

// oldestOpen is the open_from after the record seq.
func oldestOpen(open map[uint64]tier.Deletion, seq uint64) uint64 {
	oldest := seq + 1
	for s := range open {
		oldest = min(oldest, s)
	}
	return oldest
}

// openIntents are the intents without an outcome, ascending.
func openIntents(open map[uint64]tier.Deletion) []tier.Intent {
	var out []tier.Intent
	for _, seq := range slices.Sorted(maps.Keys(open)) {
		out = append(out, tier.Intent{Seq: seq, Deletion: open[seq]})
	}
	return out
}
