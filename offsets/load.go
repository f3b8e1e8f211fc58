package offsets

import (
	"encoding/binary"
	"fmt"

	"github.com/tierd/tierd/runtime/planted"
	"github.com/tierd/tierd/runtime/tier"
)

// loader reads a whole ledger once: it checks every entry, counts them, and keeps what the index
// holds. Entries come in the order of their keys, so that logs come before what belongs to them.
type loader struct {
	index    index
	byNumber map[uint64]*header
	inOrder  []*header         // of their numbers
	copies   map[uint64]uint64 // finished copies found, by number of the log
	tally    tally
	words    map[string]string
	last     *header // of the entry before
}

// load reads the ledger. Errors wrap tier.ErrDamaged or tier.ErrNewer.
func load(r Reader) (index, error) {
	l, err := newLoader(r)
	if err != nil {
		return index{}, err
	}
	return l.index, l.load(r)
}

// newLoader reads the root.
func newLoader(r Reader) (*loader, error) {
	root, err := readRoot(r)
	if err != nil {
		return nil, err
	}
	return &loader{
		index: index{root: root, logs: map[tier.LogID]*header{},
			tables: map[string]*tier.TableState{}, underWay: map[string]int64{}},
		byNumber: map[uint64]*header{},
		copies:   map[uint64]uint64{},
		words:    map[string]string{},
	}, nil
}

// load reads everything after the root.
func (l *loader) load(r Reader) error {
	if err := r.Scan(afterRoot, nil, l.entry); err != nil {
		return err
	}
	if err := l.checkTally(l.tally); err != nil {
		return err
	}
	for _, h := range l.inOrder {
		if err := l.finish(h); err != nil {
			return err
		}
	}
	return nil
}

// checkTally compares the tally of the entries that were found with what the root says.
func (l *loader) checkTally(found tally) error {
	if says := l.index.root.tally; found != says {
		return named(rootKey(), fmt.Errorf("%w: it speaks of %d entries with the sum %016x, "+
			"there are %d with %016x", tier.ErrDamaged, says.entries, says.sum, found.entries,
			found.sum))
	}
	return nil
}

// finish checks a log once everything of it was read.
func (l *loader) finish(h *header) error {
	if err := l.checkLog(h); err != nil {
		return named(logKey(h.number), fmt.Errorf("%w: %w", tier.ErrDamaged, err))
	}
	if planted.Is(planted.CopiedNotRestored) {
		h.state.Copied = h.state.Start
	}
	return nil
}

// entry takes one entry in.
func (l *loader) entry(key, value []byte) error {
	if !keyShaped(key) {
		return named(key, fmt.Errorf("%w: there is no such key", tier.ErrDamaged))
	}
	body, err := disclose(key, value)
	if err != nil {
		return err
	}
	l.tally.add(value)
	switch k := kind(key[0]); k {
	case kindLog:
		err = l.log(binary.BigEndian.Uint64(key[1:]), body)
	case kindTable:
		var t tier.TableState
		t, err = decodeTable(string(key[1:]), body)
		l.index.tables[t.Table] = &t
	case kindCopy, kindAttempt, kindTombstone, kindHole, kindMark:
		err = l.fact(k, key, body)
	case kindAttemptID:
		_, err = decodePlace(body)
	}
	return named(key, err)
}

func (l *loader) log(number uint64, body []byte) error {
	h, err := decodeHeader(number, body, l.words)
	if err != nil {
		return err
	}
	if _, twice := l.index.logs[h.state.Log]; twice || number >= l.index.root.nextLog {
		return fmt.Errorf("%w: log %s is there twice, or its number was never given",
			tier.ErrDamaged, h.state.Log)
	}
	l.index.logs[h.state.Log] = h
	l.byNumber[number] = h
	l.inOrder = append(l.inOrder, h)
	return nil
}

// fact takes in what a log has at a position.
func (l *loader) fact(k kind, key, body []byte) error {
	number, pos := splitFactKey(key)
	if l.last == nil || l.last.number != number {
		l.last = l.byNumber[number]
	}
	if l.last == nil || pos >= l.last.state.Next {
		return fmt.Errorf("%w: no log gave out this position", tier.ErrDamaged)
	}
	switch k {
	case kindCopy:
		l.copies[number]++
	case kindAttempt:
		l.index.underWay[l.last.state.Log.Table]++
	case kindHole:
		hole, err := decodeHole(body, l.words)
		if err != nil {
			return err
		}
		hole.Range = l.last.clip(pos, hole.Range)
		if hole.epoch >= l.last.state.Fresh && !hole.Empty() {
			l.last.state.Holes = append(l.last.state.Holes, hole.Hole)
		}
	case kindMark:
		m, err := decodeMark(body)
		for i := range l.last.state.Clips {
			if c := &l.last.state.Clips[i]; m.mark == markClip && c.Position == pos {
				c.At = m.at // it is written once, in the mark
			}
		}
		return err
	}
	return nil
}

// checkLog says what is wrong with a log once everything was read.
func (l *loader) checkLog(h *header) error {
	if n := l.copies[h.number]; n != h.copies {
		return fmt.Errorf("it has %d copies, but says %d", n, h.copies)
	}
	if _, ok := l.index.tables[h.state.Log.Table]; !ok {
		return fmt.Errorf("the table of %s is missing", h.state.Log)
	}
	sortHoles(h.state.Holes)
	return h.check()
}
