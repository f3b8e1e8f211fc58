package offsets

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// Reading reads a ledger in memory again and again, each time as a process would that opened it
// then, for whoever watches the process from outside. All entries are checked each time; a log is
// put together anew only where one of its entries changed, and only a new fact decoded. The zero
// Reading has read nothing. It is not safe for concurrent use.
type Reading struct {
	ID     string            // of the ledger
	Logs   []*LogReading     // in the order in which they were opened
	Tables []tier.TableState // ascending by name
}

// LogReading is everything that a ledger has of one log. It is the same one in each reading that
// finds the same, and is not to be changed.
type LogReading struct {
	State      tier.LogState
	Facts      []tier.Fact // copies, holes and marks, ascending by position
	Attempts   []tier.Attempt
	Tombstones []Tombstone

	values []*byte // that it was decoded from: where each lies
	places []*byte // those of Facts
}

// Read reads what m holds now, also where its owner has crashed. Where it errs the Reading stays as
// it was.
func (r *Reading) Read(m *Memory) error {
	m.mu.RLock() // what is read is not copied
	defer m.mu.RUnlock()
	l, err := Open(&Memory{now: m.now})
	if err != nil {
		return err
	}
	known := map[tier.LogID]*LogReading{}
	for _, log := range r.Logs {
		known[log.State.Log] = log
	}
	now, values := Reading{ID: l.ID()}, m.now.byLog()
	for _, h := range l.inOrder() {
		log := known[h.state.Log]
		if log == nil || !slices.Equal(log.values, values[h.number]) {
			if log, err = l.readWhole(h, log); err != nil {
				return errors.Join(l.fail(err), l.Close())
			}
			log.values = values[h.number]
		}
		now.Logs = append(now.Logs, log)
	}
	for _, name := range slices.Sorted(maps.Keys(l.index.tables)) {
		now.Tables = append(now.Tables, *l.index.tables[name])
	}
	*r = now
	return l.Close()
}

// readWhole reads everything that the ledger has of a log, which was before when it was read last,
// or nil.
func (l *Ledger) readWhole(h *header, before *LogReading) (*LogReading, error) {
	out := &LogReading{State: clone(&h.state)}
	err := l.medium.View(func(r Reader) error {
		if err := out.readFacts(r, h, before); err != nil {
			return err
		}
		low, high := factRange(kindAttempt, h.number, 0, h.state.Next)
		return scanBodies(r, low, high, func(pos tier.Position, body []byte) error {
			a, err := decodeAttempt(pos, body)
			out.Attempts = append(out.Attempts, a)
			return err
		})
	})
	if err == nil {
		out.Tombstones, err = l.Tombstones(h.state.Log)
	}
	return out, err
}

// readFacts reads the facts, and checks what the log says of its copies.
func (log *LogReading) readFacts(r Reader, h *header, before *LogReading) error {
	var facts []placed
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

// byLog says of each log, by its number, where the values of its entries lie: its state, and what
// it has at positions. A value is never empty, never changed in place, and of one key, so that the
// same place is the same entry.
func (s *sortedMap) byLog() map[uint64][]*byte {
	out := map[uint64][]*byte{}
	for _, e := range s.items {
		switch kind(e.key[0]) {
		case kindLog, kindCopy, kindAttempt, kindTombstone, kindHole, kindMark:
			number := binary.BigEndian.Uint64(e.key[1:])
			out[number] = append(out[number], &e.value[0])
		}
	}
	return out
}
