package offsets

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// Reading reads a ledger in memory again and again, each time as a process would that opened it
// then, for whoever watches the process from outside. All entries are checked each time; those of a
// log are decoded anew only where one of them changed. The zero Reading has read nothing. It is not
// safe for concurrent use.
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
}

// Read reads what m holds now. Where it errs the Reading stays as it was.
func (r *Reading) Read(m *Memory) error {
	l, err := Open(m.Clone())
	if err != nil {
		return err
	}
	known := map[tier.LogID]*LogReading{}
	for _, log := range r.Logs {
		known[log.State.Log] = log
	}
	now, values := Reading{ID: l.ID()}, m.byLog()
	for _, h := range l.inOrder() {
		log := known[h.state.Log]
		if log == nil || !slices.Equal(log.values, values[h.number]) {
			if log, err = l.readWhole(h); err != nil {
				return errors.Join(err, l.Close())
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

// readWhole decodes everything that the ledger has of a log.
func (l *Ledger) readWhole(h *header) (*LogReading, error) {
	out := &LogReading{State: clone(&h.state)}
	err := l.medium.View(func(r Reader) (err error) {
		_, out.Attempts, err = readLog(r, h)
		return err
	})
	if err != nil {
		return nil, l.fail(err)
	}
	if out.Facts, err = l.Facts(h.state.Log, 0, h.state.Next); err != nil {
		return nil, err
	}
	out.Tombstones, err = l.Tombstones(h.state.Log)
	return out, err
}

// byLog says of each log, by its number, where the values of its entries lie: its state, and what
// it has at positions. A value is never empty, never changed in place, and of one key, so that the
// same place is the same entry.
func (m *Memory) byLog() map[uint64][]*byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	out := map[uint64][]*byte{}
	for _, e := range m.now.items {
		switch kind(e.key[0]) {
		case kindLog, kindCopy, kindAttempt, kindTombstone, kindHole, kindMark:
			number := binary.BigEndian.Uint64(e.key[1:])
			out[number] = append(out[number], &e.value[0])
		}
	}
	return out
}
