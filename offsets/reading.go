package offsets

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// Reading reads a ledger in memory again and again, each time as a process would that opened it
// then, for whoever watches the process from outside. An entry that lies in the place where it lay
// in the reading before was checked then; a log is put together anew only where one of its entries
// changed, and only a new fact decoded. The zero Reading has read nothing. It is not safe for
// concurrent use, and not to be copied once it was used.
type Reading struct {
	ID     string            // of the ledger
	Clock  tier.Time         // as Ledger.Clock
	Logs   []*LogReading     // in the order in which they were opened
	Tables []tier.TableState // ascending by name

	root  rootState // whose tally is that of items
	items []item    // all that was read
	spare []item    // room for those of the next reading
}

// LogReading is everything that a ledger has of one log. It is the same one in each reading that
// finds the same, and is not to be changed.
type LogReading struct {
	State      tier.LogState
	Facts      []tier.Fact // copies, holes and marks, ascending by position
	Attempts   []tier.Attempt
	Tombstones []Tombstone

	header *header
	places []*byte // where the entries of Facts lie
}

// Read reads what m holds now, also where its owner has crashed. Where it errs the Reading stays as
// it was.
func (r *Reading) Read(m *Memory) error {
	m.mu.RLock() // what is read is not copied
	defer m.mu.RUnlock()
	now, err := r.read(&m.now)
	if err != nil {
		return (&Ledger{medium: m}).explain(err)
	}
	*r = now
	return nil
}

func (r *Reading) read(from *sortedMap) (now Reading, err error) {
	l, err := newLoader(&memoryTx{now: from})
	if err != nil {
		return now, err
	}
	root := l.index.root
	now = Reading{ID: r.ID, Clock: root.clock, Tables: r.Tables, root: root,
		items: append(r.spare[:0], from.items...), spare: r.items}
	if root.id != r.root.id || now.ID == "" {
		now.ID = hex.EncodeToString(root.id[:])
	}
	c := changes{tally: r.root.tally}
	if err := c.between(r.items, from.items); err != nil {
		return now, err
	}
	if c.lost || root.nextLog < r.root.nextLog {
		// What logs stand on is gone, which no commit does: nothing was checked before.
		return (&Reading{}).read(from)
	}
	if err := l.checkTally(c.tally); err != nil {
		return now, err
	}
	if c.tables || len(r.items) == 0 {
		if now.Tables, err = l.readTables(from); err != nil {
			return now, err
		}
	}
	for i := range now.Tables {
		l.index.tables[now.Tables[i].Table] = &now.Tables[i]
	}
	now.Logs, err = l.readLogs(from, r.Logs, c.logs)
	return now, err
}

// changes says what is another entry than it was.
type changes struct {
	tally  tally
	logs   []uint64 // numbers of those that have such entries, ascending
	tables bool     // some table has
	lost   bool     // a log or a table has no entry any more
}

// between compares two lists of entries, and checks each new one by itself. A value is never empty,
// never changed in place, and of one key, so that the same place is the same entry.
func (c *changes) between(before, now []item) error {
	for _, e := range now {
		same := false
		for len(before) > 0 && !same {
			old := before[0]
			order := bytes.Compare(old.key, e.key)
			if same = &old.value[0] == &e.value[0]; !same && order > 0 {
				break
			} else if !same {
				c.goes(old, order == 0)
			}
			before = before[1:]
		}
		if !same {
			if err := c.comes(e); err != nil {
				return named(e.key, err)
			}
		}
	}
	for _, old := range before {
		c.goes(old, false)
	}
	return nil
}

// comes takes in an entry that was not there.
func (c *changes) comes(e item) error {
	if !keyShaped(e.key) {
		return fmt.Errorf("%w: there is no such key", tier.ErrDamaged)
	}
	body, err := disclose(e.key, e.value)
	if err != nil || kind(e.key[0]) == kindRoot {
		return err
	}
	c.tally.add(e.value)
	c.touches(e.key)
	if kind(e.key[0]) == kindAttemptID {
		_, err = decodePlace(body)
	}
	return err
}

// goes takes out an entry that is no more, or another one now.
func (c *changes) goes(e item, replaced bool) {
	k := kind(e.key[0])
	if k == kindRoot {
		return
	}
	c.tally.remove(storedChecksum(e.value))
	c.touches(e.key)
	c.lost = c.lost || !replaced && (k == kindLog || k == kindTable)
}

func (c *changes) touches(key []byte) {
	switch kind(key[0]) {
	case kindTable:
		c.tables = true
	case kindLog, kindCopy, kindAttempt, kindTombstone, kindHole, kindMark:
		number := binary.BigEndian.Uint64(key[1:])
		if i, found := slices.BinarySearch(c.logs, number); !found {
			c.logs = slices.Insert(c.logs, i, number)
		}
	}
}

// readTables reads all tables.
func (l *loader) readTables(from *sortedMap) (out []tier.TableState, err error) {
	for _, e := range from.between([]byte{byte(kindTable)}, []byte{byte(kindTable) + 1}) {
		if err := l.entry(e.key, e.value); err != nil {
			return nil, err
		}
		out = append(out, *l.index.tables[string(e.key[1:])])
	}
	return out, nil
}

// readLogs reads the logs that changed, and keeps the others as they were before.
func (l *loader) readLogs(from *sortedMap, before []*LogReading, changed []uint64) ([]*LogReading,
	error) {
	known := map[uint64]*LogReading{}
	numbers := slices.Clone(changed)
	for _, log := range before {
		n := log.header.number
		known[n] = log
		if !slices.Contains(changed, n) {
			numbers = append(numbers, n)
			l.index.logs[log.State.Log] = log.header
		}
	}
	slices.Sort(numbers)
	out := make([]*LogReading, len(numbers))
	for i, n := range numbers {
		if out[i] = known[n]; slices.Contains(changed, n) {
			var err error
			if out[i], err = l.readLog(from, n, known[n]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// readLog reads everything that the ledger has of a log, which was before when it was read last, or
// nil.
func (l *loader) readLog(from *sortedMap, number uint64, before *LogReading) (*LogReading, error) {
	all := slices.Clone(from.between(logKey(number), logKey(number+1)))
	for _, k := range []kind{kindCopy, kindAttempt, kindTombstone, kindHole, kindMark} {
		all = append(all, from.ofLog(k, number)...)
	}
	for _, e := range all {
		if err := l.entry(e.key, e.value); err != nil {
			return nil, err
		}
	}
	h := l.byNumber[number]
	if err := l.finish(h); err != nil {
		return nil, err
	}
	out := &LogReading{State: clone(&h.state), header: h}
	if err := out.readFacts(all, before); err != nil {
		return nil, err
	}
	for _, e := range from.ofLog(kindAttempt, number) {
		_, pos := splitFactKey(e.key)
		a, err := decodeAttempt(pos, bodyOf(e.value))
		if err != nil {
			return nil, named(e.key, err)
		}
		out.Attempts = append(out.Attempts, a)
	}
	for _, e := range from.ofLog(kindTombstone, number) {
		_, pos := splitFactKey(e.key)
		t, err := decodeTombstone(pos, bodyOf(e.value))
		if err != nil {
			return nil, named(e.key, err)
		}
		out.Tombstones = append(out.Tombstones, t)
	}
	return out, nil
}

// ofLog are the entries of the kind that a log has, ascending by position.
func (s *sortedMap) ofLog(k kind, number uint64) []item {
	return s.between(factKey(k, number, 0), factKey(k, number+1, 0))
}

// bodyOf is the body of a value that was looked at.
func bodyOf(value []byte) []byte { return value[1 : len(value)-4] }

// readFacts reads those of the log's entries that are facts, and checks what the log says of its
// copies.
func (log *LogReading) readFacts(entries []item, before *LogReading) error {
	h := log.header
	facts := make([]placed, 0, before.size()+1)
	var copies, gone uint64
	for _, e := range entries {
		k := kind(e.key[0])
		if !slices.Contains(factKinds, k) {
			continue
		}
		_, pos := splitFactKey(e.key)
		f, known := before.fact(pos, &e.value[0])
		if !known {
			var err error
			if f, err = decodeFact(k, pos, bodyOf(e.value)); err != nil {
				return named(e.key, err)
			}
		}
		f.Incarnation = h.state.Incarnation
		facts = append(facts, placed{f, &e.value[0]})
		if f.Add != nil {
			copies++
			if h.outOfLog(pos, f.Epoch, f.Add.Content.Range) {
				gone++
			}
		}
	}
	slices.SortFunc(facts, placed.compare)
	log.Facts, log.places = make([]tier.Fact, 0, len(facts)), make([]*byte, 0, len(facts))
	for _, f := range facts {
		log.Facts, log.places = append(log.Facts, f.Fact), append(log.places, f.place)
	}
	return h.checkCopies(copies, gone)
}

// placed is a fact, and where its entry lies.
type placed struct {
	tier.Fact
	place *byte
}

func (f placed) compare(other placed) int { return cmp.Compare(f.Position, other.Position) }

// size is how many facts there were.
func (log *LogReading) size() int {
	if log == nil {
		return 0
	}
	return len(log.Facts)
}

// fact is the one at the position, if its entry still lies in that place.
func (log *LogReading) fact(pos tier.Position, place *byte) (tier.Fact, bool) {
	if log == nil {
		return tier.Fact{}, false
	}
	i, ok := slices.BinarySearchFunc(log.Facts, pos, func(f tier.Fact, pos tier.Position) int {
		return cmp.Compare(f.Position, pos)
	})
	if !ok || log.places[i] != place {
		return tier.Fact{}, false
	}
	return log.Facts[i], true
}
