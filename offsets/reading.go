package offsets

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// Reading reads a ledger in memory again and again, each time as a process would that opened it
// then, for whoever watches the process from outside. An entry that lies in the place where it lay
// in the reading before was checked then, and only its part of the tally is reckoned again; a log
// is put together anew only where one of its entries changed, and only a new fact decoded. The zero
// Reading has read nothing. It is not safe for concurrent use.
type Reading struct {
	ID     string            // of the ledger
	Clock  tier.Time         // as Ledger.Clock
	Logs   []*LogReading     // in the order in which they were opened
	Tables []tier.TableState // ascending by name

	root   rootState
	tables []*byte // where each of Tables lies
	ids    []*byte // where attempts' ids lie, in their order
}

// LogReading is everything that a ledger has of one log. It is the same one in each reading that
// finds the same, and is not to be changed.
type LogReading struct {
	State      tier.LogState
	Facts      []tier.Fact // copies, holes and marks, ascending by position
	Attempts   []tier.Attempt
	Tombstones []Tombstone

	header *header
	values []*byte // that it was decoded from: where each lies
	places []*byte // those of Facts
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
	tx := &memoryTx{now: from}
	l, err := newLoader(tx)
	if err != nil {
		return now, err
	}
	now = Reading{ID: r.ID, Clock: l.index.root.clock, root: l.index.root,
		ids: make([]*byte, 0, len(r.ids)+1)}
	if now.root.id != r.root.id || now.ID == "" {
		now.ID = hex.EncodeToString(now.root.id[:])
	}
	logs := r.compare(from)
	for _, c := range logs {
		if !c.changed {
			l.index.logs[c.log.State.Log] = c.log.header
		}
	}
	l.known = func(key, value []byte) bool { return r.knows(l, &now, logs, key, value) }
	if err := l.load(tx); err != nil {
		return now, err
	}
	if now.root.nextLog < r.root.nextLog || len(l.index.tables) < len(r.Tables) {
		// What logs stand on is gone, which no commit does: nothing was checked before.
		return (&Reading{}).read(from)
	}
	now.Logs = make([]*LogReading, len(logs))
	for i, c := range logs {
		if now.Logs[i] = c.log; c.changed {
			if now.Logs[i], err = readWhole(tx, l.byNumber[c.number], c.log); err != nil {
				return now, err
			}
			now.Logs[i].values = c.values
		}
	}
	now.Tables = make([]tier.TableState, 0, len(l.index.tables))
	for _, name := range slices.Sorted(maps.Keys(l.index.tables)) {
		now.Tables = append(now.Tables, *l.index.tables[name])
	}
	return now, nil
}

// compared is a log of the ledger as it lies there now.
type compared struct {
	number  uint64
	log     *LogReading // as it was read last; nil if it was not there
	same    int         // so many of its values lie where they lay
	changed bool
	values  []*byte // where it changed
}

// compare says which logs changed, ascending by number. A value is never empty, never changed in
// place, and of one key, so that the same place is the same entry.
func (r *Reading) compare(from *sortedMap) []compared {
	out := make([]compared, 0, len(r.Logs)+1)
	for _, e := range from.items {
		if !keyShaped(e.key) {
			continue // load says so
		}
		switch kind(e.key[0]) {
		case kindLog:
			c := compared{number: binary.BigEndian.Uint64(e.key[1:])}
			i := slices.IndexFunc(r.Logs, func(l *LogReading) bool { return l.header.number == c.number })
			if c.changed = i < 0; !c.changed {
				c.log = r.Logs[i]
			}
			out = append(out, c)
			out[len(out)-1].takes(&e.value[0])
		case kindCopy, kindAttempt, kindTombstone, kindHole, kindMark:
			if c := find(out, e.key); c != nil {
				c.takes(&e.value[0])
			}
		}
	}
	for i := range out {
		if c := &out[i]; !c.changed && c.same < len(c.log.values) {
			c.changed, c.values = true, c.log.values[:c.same]
		}
	}
	return out
}

// find returns the log of an entry; nil where there is none.
func find(logs []compared, key []byte) *compared {
	number := binary.BigEndian.Uint64(key[1:])
	for i := range logs {
		if logs[i].number == number {
			return &logs[i]
		}
	}
	return nil
}

// takes compares the log's next value.
func (c *compared) takes(place *byte) {
	switch {
	case c.changed:
		c.values = append(c.values, place)
	case c.same < len(c.log.values) && c.log.values[c.same] == place:
		c.same++
	default:
		c.changed, c.values = true, append(slices.Clone(c.log.values[:c.same]), place)
	}
}

// knows reports whether the entry was there in the reading before, as it is now.
func (r *Reading) knows(l *loader, now *Reading, logs []compared, key, value []byte) bool {
	switch kind(key[0]) {
	case kindTable:
		now.tables = append(now.tables, &value[0])
		i := slices.Index(r.tables, &value[0])
		if i >= 0 {
			l.index.tables[r.Tables[i].Table] = &r.Tables[i]
		}
		return i >= 0
	case kindAttemptID:
		// Their order stays, and between two readings few come or go.
		i := len(now.ids)
		now.ids = append(now.ids, &value[0])
		near := r.ids[min(max(i-idsNear, 0), len(r.ids)):min(i+idsNear+1, len(r.ids))]
		return slices.Contains(near, &value[0])
	default:
		c := find(logs, key)
		return c != nil && !c.changed
	}
}

// idsNear is how far the place of an attempt's id moves that is found again without a search.
const idsNear = 2

// readWhole reads everything that the ledger has of a log, which was before when it was read last,
// or nil.
func readWhole(r Reader, h *header, before *LogReading) (*LogReading, error) {
	out := &LogReading{State: clone(&h.state), header: h}
	if err := out.readFacts(r, h, before); err != nil {
		return nil, err
	}
	low, high := factRange(kindAttempt, h.number, 0, h.state.Next)
	err := scanBodies(r, low, high, func(pos tier.Position, body []byte) error {
		a, err := decodeAttempt(pos, body)
		out.Attempts = append(out.Attempts, a)
		return err
	})
	if err == nil {
		out.Tombstones, err = tombstones(r, h)
	}
	return out, err
}

// readFacts reads the facts, and checks what the log says of its copies.
func (log *LogReading) readFacts(r Reader, h *header, before *LogReading) error {
	facts := make([]placed, 0, before.size()+1)
	var copies, gone uint64
	for _, k := range factKinds {
		low, high := factRange(k, h.number, 0, h.state.Next)
		err := r.Scan(low, high, func(key, value []byte) error {
			_, pos := splitFactKey(key)
			f, known := before.fact(pos, &value[0])
			if !known {
				body, err := disclose(key, value)
				if err == nil {
					f, err = decodeFact(k, pos, body)
				}
				if err != nil {
					return named(key, err)
				}
			}
			f.Incarnation = h.state.Incarnation
			facts = append(facts, placed{f, &value[0]})
			if f.Add != nil {
				copies++
				if h.outOfLog(pos, f.Epoch, f.Add.Content.Range) {
					gone++
				}
			}
			return nil
		})
		if err != nil {
			return err
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
