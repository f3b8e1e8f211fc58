package offsets

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tierd/tierd/runtime/tier"
)

// valueBytesMax bounds one value; a record that would need a larger one is refused.
const valueBytesMax = 1 << 20

// group is the records that are committed together: what they changed so far, over what was in
// force before them.
type group struct {
	base   *index
	w      writer
	root   rootState
	logs   map[tier.LogID]*header
	tables map[string]*tier.TableState
	// underWay is how many attempts more, or fewer, are under way in a table.
	underWay map[string]int64
	// touched are the logs and tables above in the order of their first change.
	touchedLogs   []tier.LogID
	touchedTables []string
	scratch       []byte // for a body that is not kept
}

// newGroup begins a group in a transaction. It checks that the transaction holds the state that
// the ledger has in memory.
func newGroup(base *index, tx Tx) (*group, error) {
	root, err := readRoot(tx)
	if err != nil {
		return nil, err
	}
	if root != base.root {
		return nil, named(rootKey(), fmt.Errorf("%w: it is not what was last written",
			tier.ErrDamaged))
	}
	return &group{base: base, root: root, w: writer{tx, root.tally},
		logs: map[tier.LogID]*header{}, tables: map[string]*tier.TableState{},
		underWay: map[string]int64{}}, nil
}

// readRoot reads the entry of the ledger itself.
func readRoot(r getter) (rootState, error) {
	key := rootKey()
	value, err := r.Get(key)
	if err != nil {
		return rootState{}, err
	}
	if value == nil {
		return rootState{}, named(key, fmt.Errorf("%w: it is missing", tier.ErrDamaged))
	}
	body, err := disclose(key, value)
	if err != nil {
		return rootState{}, err
	}
	root, err := decodeRoot(body)
	return root, named(key, err)
}

// log returns the log's header as the group sees it; nil if it was never opened. Before the first
// change of a log its stored header is compared with the one in memory: one that went back, or
// forward, is damage.
func (g *group) log(id tier.LogID) (*header, error) {
	if h, ok := g.logs[id]; ok {
		return h, nil
	}
	h, ok := g.base.logs[id]
	if !ok {
		return nil, nil
	}
	key := logKey(h.number)
	body, err := g.get(key)
	if err != nil {
		return nil, err
	}
	if body == nil {
		return nil, named(key, fmt.Errorf("%w: it is missing", tier.ErrDamaged))
	}
	g.scratch = h.append(g.scratch[:0])
	if !bytes.Equal(body, g.scratch) {
		return nil, named(key, fmt.Errorf("%w: it is not what was last written%s", tier.ErrDamaged,
			h.difference(body)))
	}
	g.logs[id] = h
	return h, nil
}

// table returns the table's state as the group sees it.
func (g *group) table(name string) (tier.TableState, bool) {
	t, ok := g.tables[name]
	if !ok {
		t, ok = g.base.tables[name]
	}
	if !ok {
		return tier.TableState{}, false
	}
	return *t, true
}

// get returns the body of the value of key; nil if there is none.
func (g *group) get(key []byte) ([]byte, error) { return getBody(&g.w, key) }

// getter is what of a Reader getBody needs.
type getter interface {
	Get(key []byte) ([]byte, error)
}

func getBody(r getter, key []byte) ([]byte, error) {
	value, err := r.Get(key)
	if err != nil || value == nil {
		return nil, err
	}
	return disclose(key, value)
}

// anyUnderWay reports whether an attempt is under way in the table.
func (g *group) anyUnderWay(table string) bool {
	return g.base.underWay[table]+g.underWay[table] > 0
}

// eachCopy calls fn with every copy of the log, ascending by position.
func (g *group) eachCopy(h *header, fn func(tier.Remote)) error {
	low, high := factRange(kindCopy, h.number, 0, h.state.Next)
	return scanBodies(&g.w, low, high, func(pos tier.Position, body []byte) error {
		r, err := decodeRemote(pos, body)
		if err == nil {
			fn(r)
		}
		return err
	})
}

// attempt returns the attempt under way at the position; nil if there is none.
func (g *group) attempt(h *header, pos tier.Position) (*tier.Attempt, error) {
	key := factKey(kindAttempt, h.number, pos)
	body, err := g.get(key)
	if err != nil || body == nil {
		return nil, err
	}
	a, err := decodeAttempt(pos, body)
	return &a, named(key, err)
}

// errStop ends a scan that has seen enough.
var errStop = errors.New("seen enough")

// any reports whether a key lies in [low, high).
func (g *group) any(low, high []byte) (bool, error) {
	err := g.w.Scan(low, high, func(_, _ []byte) error { return errStop })
	if errors.Is(err, errStop) {
		return true, nil
	}
	return false, err
}

// add decides on one record and takes its changes into the transaction. An error that wraps
// tier.ErrRefused concerns the record, of which then nothing is taken.
func (g *group) add(r tier.Record) (draft, error) {
	d, err := decide(g, r)
	if err != nil {
		return draft{}, err
	}
	values := make([][]byte, len(d.puts))
	for i, e := range d.puts {
		if len(e.body) > valueBytesMax {
			return draft{}, refuse("%s: the value has %d bytes, more than %d", keyName(e.key),
				len(e.body), valueBytesMax)
		}
		values[i] = enclose(e.key, e.body)
	}
	if err := g.takeLog(d); err != nil {
		return draft{}, err
	}
	if err := g.takeTable(d); err != nil {
		return draft{}, err
	}
	if d.underWay != 0 {
		g.underWay[r.Subject().Table] += d.underWay
	}
	if d.clock != nil {
		g.root.clock = *d.clock
	}
	for _, key := range d.deletes {
		if err := g.w.delete(key); err != nil {
			return draft{}, err
		}
	}
	for i, e := range d.puts {
		if err := g.w.put(e.key, values[i], e.isNew); err != nil {
			return draft{}, err
		}
	}
	return d, nil
}

// takeLog takes the draft's header over. That it follows the one before is asserted here, before
// it is written; loading and log assert the same after it was read.
func (g *group) takeLog(d draft) error {
	if d.log == nil {
		return nil
	}
	id := d.log.state.Log
	old := g.logs[id]
	if d.opened {
		g.root.nextLog++
	} else if err := d.log.follows(old); err != nil {
		return fmt.Errorf("record would break the ledger: %w", err)
	}
	if d.opened || old == g.base.logs[id] {
		g.touchedLogs = append(g.touchedLogs, id)
	}
	g.logs[id] = d.log
	return nil
}

// takeTable takes the draft's table over. Its epochs never go back.
func (g *group) takeTable(d draft) error {
	if d.table == nil {
		return nil
	}
	name := d.table.Table
	old, _ := g.table(name)
	if d.table.Epoch < old.Epoch || d.table.Fresh < old.Fresh || d.table.Fresh > d.table.Epoch {
		return fmt.Errorf("record would break the ledger: table %q: tier epoch %d (fresh %d) after "+
			"%d (%d)", name, d.table.Epoch, d.table.Fresh, old.Epoch, old.Fresh)
	}
	if _, ok := g.tables[name]; !ok {
		g.touchedTables = append(g.touchedTables, name)
	}
	g.tables[name] = d.table
	return nil
}

// errUnchanged says that there is nothing to commit.
var errUnchanged = errors.New("nothing changed")

// finish writes what several records may have changed: headers, tables and the root. It returns
// errUnchanged where there is nothing to commit.
func (g *group) finish() error {
	for _, id := range g.touchedLogs {
		key := logKey(g.logs[id].number)
		g.scratch = g.logs[id].append(g.scratch[:0])
		isNew := g.base.logs[id] == nil
		if err := g.w.put(key, enclose(key, g.scratch), isNew); err != nil {
			return err
		}
	}
	for _, name := range g.touchedTables {
		key := tableKey(name)
		if err := g.w.put(key, enclose(key, encodeTable(g.tables[name])), false); err != nil {
			return err
		}
	}
	g.root.tally = g.w.tally
	if g.root == g.base.root && len(g.touchedLogs)+len(g.touchedTables) == 0 {
		return errUnchanged
	}
	g.root.format = formatVersion // an older one becomes this one
	key := rootKey()
	return g.w.Put(key, enclose(key, g.root.encode()))
}
