package offsets

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tierd/tierd/runtime/tier"
)

// Ledger is the durable record of what was copied. All methods are safe for concurrent use. It
// makes no goroutines; Append commits in the goroutine of one of its callers.
type Ledger struct {
	medium Medium
	id     string
	// leading holds a token while someone commits. Only the leader changes index.
	leading chan struct{}

	queueMu sync.Mutex
	queue   []*batch // not yet taken, oldest first; all but the last are full

	mu     sync.RWMutex // guards what follows against the leader's changes
	index  index
	broken error // set once, after an error that leaves the medium's state unknown
}

// index is what a ledger keeps in memory: all but copies, attempts and tombstones, which are read
// from the medium when asked for.
type index struct {
	root   rootState
	logs   map[tier.LogID]*header
	tables map[string]*tier.TableState
	// underWay counts the attempts under way in each table that has any.
	underWay map[string]int64
}

// take puts in force what a group has committed.
func (x *index) take(g *group) {
	x.root = g.root
	for _, id := range g.touchedLogs {
		x.logs[id] = g.logs[id]
	}
	for _, name := range g.touchedTables {
		x.tables[name] = g.tables[name]
	}
	for name, n := range g.underWay { //tidy:ordered sums do not depend on the order
		x.underWay[name] += n
	}
}

// Open reads the ledger that lies in m, and checks every entry of it. The ledger owns m: Close
// closes it, and Open does where it fails. Errors wrap tier.ErrDamaged or tier.ErrNewer and name
// the entry.
func Open(m Medium) (*Ledger, error) {
	l := &Ledger{medium: m, leading: make(chan struct{}, 1)}
	err := m.View(func(r Reader) (err error) {
		l.index, err = load(r)
		return err
	})
	if err != nil {
		return nil, errors.Join(l.explain(err), m.Close())
	}
	l.id = hex.EncodeToString(l.index.root.id[:])
	return l, nil
}

// advice is what to do with a damaged ledger.
const advice = "make a new one of what the store has: tierd rebuild"

// newerAdvice is what to do with one that is of a later version.
const newerAdvice = "run the tierd that wrote it, or a later one"

// explain tells an operator where an error happened and what to do.
func (l *Ledger) explain(err error) error {
	err = fmt.Errorf("ledger %s: %w", l.medium, err)
	switch {
	case errors.Is(err, tier.ErrDamaged):
		return fmt.Errorf("%w; %s", err, advice)
	case errors.Is(err, tier.ErrNewer):
		return fmt.Errorf("%w; %s", err, newerAdvice)
	}
	return err
}

// fail makes err the ledger's last word, unless it has one, and returns the last word.
func (l *Ledger) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = l.explain(err)
	}
	return l.broken
}

// Err returns the error that broke the ledger; nil while it is well.
func (l *Ledger) Err() error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.broken
}

// errClosed is the last word of a ledger that was closed.
var errClosed = errors.New("closed")

// Close waits for the commit under way and gives the medium back. It is idempotent.
func (l *Ledger) Close() error {
	l.leading <- struct{}{}
	defer func() { <-l.leading }()
	_ = l.fail(errClosed) // from here on it is everyone's answer
	return l.medium.Close()
}

// ID is the ledger's id, made once, in 32 hexadecimal digits. Keys in the object store start with
// it.
func (l *Ledger) ID() string { return l.id }

// Clock returns the highest wall time that was seen since an operator accepted one; absent if none
// was.
func (l *Ledger) Clock() tier.Time {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.index.root.clock
}

// Rebuilt returns when the ledger was put together from what the store has; absent if it never was.
func (l *Ledger) Rebuilt() tier.Time {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.index.root.rebuilt
}

// Logs returns the ids of all logs, ascending.
func (l *Ledger) Logs() []tier.LogID {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.broken != nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(l.index.logs), tier.LogID.Compare)
}

// Log returns a copy of the log's durable state; false for one never opened, and for every one
// after the ledger broke.
func (l *Ledger) Log(id tier.LogID) (tier.LogState, bool) {
	h, err := l.header(id)
	if err != nil {
		return tier.LogState{}, false
	}
	return clone(&h.state), true
}

// header returns the log's header in force; ErrVanished for a log never opened.
func (l *Ledger) header(id tier.LogID) (*header, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.broken != nil {
		return nil, l.broken
	}
	h, ok := l.index.logs[id]
	if !ok {
		return nil, fmt.Errorf("ledger %s: log %s: %w", l.medium, id, tier.ErrVanished)
	}
	return h, nil
}

// Table returns a copy of the table's durable state; the zero state for one never seen, and for
// every one after the ledger broke: no deletion is allowed in it.
func (l *Ledger) Table(name string) tier.TableState {
	l.mu.RLock()
	defer l.mu.RUnlock()
	t, ok := l.index.tables[name]
	if !ok || l.broken != nil {
		return tier.TableState{}
	}
	return cloneTable(t)
}

// Copy returns the finished copy at the position; ErrVanished if there is none.
func (l *Ledger) Copy(id tier.LogID, pos tier.Position) (tier.Copy, error) {
	var out storedCopy
	err := l.read(id, kindCopy, pos, func(body []byte) (err error) {
		out, err = decodeCopy(pos, body)
		return err
	})
	return out.Copy, err
}

// Attempt returns the attempt under way at the position; ErrVanished if there is none.
func (l *Ledger) Attempt(id tier.LogID, pos tier.Position) (tier.Attempt, error) {
	var out tier.Attempt
	err := l.read(id, kindAttempt, pos, func(body []byte) (err error) {
		out, err = decodeAttempt(pos, body)
		return err
	})
	return out, err
}

// Abandoned returns the abandoned attempt at the position, and when it was abandoned; ErrVanished
// if there is none.
func (l *Ledger) Abandoned(id tier.LogID, pos tier.Position) (tier.Attempt, tier.Time, error) {
	var out Tombstone
	err := l.read(id, kindTombstone, pos, func(body []byte) (err error) {
		out, err = decodeTombstone(pos, body)
		return err
	})
	return out.Attempt, out.At, err
}

// Named reports whether the attempt is under way, finished or a tombstone: what it has in the store
// is no orphan.
func (l *Ledger) Named(a tier.AttemptID) (bool, error) {
	if err := l.Err(); err != nil {
		return false, err
	}
	named := false
	err := l.medium.View(func(r Reader) error {
		body, err := getBody(r, attemptIDKey(a))
		named = body != nil
		return err
	})
	if err != nil {
		return false, l.fail(err)
	}
	return named, nil
}

// read decodes the entry that the log has at a position.
func (l *Ledger) read(id tier.LogID, k kind, pos tier.Position, decode func([]byte) error) error {
	h, err := l.header(id)
	if err != nil {
		return err
	}
	key := factKey(k, h.number, pos)
	found := false
	err = l.medium.View(func(r Reader) error {
		body, err := getBody(r, key)
		if body == nil || err != nil {
			return err
		}
		found = true
		return named(key, decode(body))
	})
	switch {
	case err != nil:
		return l.fail(err)
	case !found:
		return fmt.Errorf("ledger %s: %s %d of log %s: %w", l.medium, k, pos, id, tier.ErrVanished)
	}
	return nil
}

// Tombstones returns the log's abandoned attempts, ascending by position.
func (l *Ledger) Tombstones(id tier.LogID) ([]Tombstone, error) {
	h, err := l.header(id)
	if err != nil {
		return nil, err
	}
	var out []Tombstone
	err = l.medium.View(func(r Reader) (err error) {
		out, err = tombstones(r, h)
		return err
	})
	if err != nil {
		return nil, l.fail(err)
	}
	return out, nil
}

func tombstones(r Reader, h *header) (out []Tombstone, err error) {
	low, high := factRange(kindTombstone, h.number, 0, h.state.Next)
	err = scanBodies(r, low, high, func(pos tier.Position, body []byte) error {
		t, err := decodeTombstone(pos, body)
		out = append(out, t)
		return err
	})
	return out, err
}

// Facts returns the log's facts at the positions [from, to), ascending. They depend on nothing but
// what was recorded: asked again, they are the same, but for identities of local files that were
// recorded anew, and for copies that were removed, which have no fact any more.
func (l *Ledger) Facts(id tier.LogID, from, to tier.Position) ([]tier.Fact, error) {
	h, err := l.header(id)
	if err != nil {
		return nil, err
	}
	to = min(to, h.state.Next)
	if from >= to {
		return nil, nil
	}
	var out []tier.Fact
	err = l.medium.View(func(r Reader) error {
		for _, k := range factKinds {
			low, high := factRange(k, h.number, from, to)
			err := scanBodies(r, low, high, func(pos tier.Position, body []byte) error {
				f, err := decodeFact(k, pos, body)
				out = append(out, f)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, l.fail(err)
	}
	slices.SortFunc(out, func(a, b tier.Fact) int { return cmp.Compare(a.Position, b.Position) })
	for i := range out {
		out[i].Incarnation = h.state.Incarnation
	}
	return out, nil
}

// factKinds are the kinds of entries that are facts.
var factKinds = []kind{kindCopy, kindMark, kindHole}

// decodeFact reads the entry of a fact. What it lacks is its log's incarnation.
func decodeFact(k kind, pos tier.Position, body []byte) (tier.Fact, error) {
	switch k {
	case kindCopy:
		c, err := decodeCopy(pos, body)
		return tier.Fact{Position: pos, Epoch: c.Epoch, At: c.FinishedAt, Copied: c.copied,
			Add: &c.Copy}, err
	case kindMark:
		m, err := decodeMark(body)
		return m.fact(pos), err
	default:
		hole, err := decodeHole(body, nil)
		return tier.Fact{Position: pos, Epoch: hole.epoch, At: hole.At, Copied: hole.copied,
			Hole: &hole.Hole}, err
	}
}

// Restore calls fn for each log, in the order in which they were opened, with its state, its
// finished copies and its attempts under way, ascending by position. fn must not call the ledger;
// what it is given is its own. It is for the start, before the first Append.
func (l *Ledger) Restore(fn func(tier.LogState, []tier.Remote, []tier.Attempt) error) error {
	l.mu.RLock()
	headers := l.inOrder()
	broken := l.broken
	l.mu.RUnlock()
	if broken != nil {
		return broken
	}
	var own error // of fn; no fault of the ledger
	err := l.medium.View(func(r Reader) error {
		for _, h := range headers {
			copies, attempts, err := readLog(r, h)
			if err != nil {
				return err
			}
			if own = fn(clone(&h.state), copies, attempts); own != nil {
				return own
			}
		}
		return nil
	})
	if err != nil && own == nil {
		return l.fail(err)
	}
	return err
}

// inOrder are the headers of all logs, in the order in which they were opened.
func (l *Ledger) inOrder() []*header {
	return slices.SortedFunc(maps.Values(l.index.logs), func(a, b *header) int {
		return cmp.Compare(a.number, b.number)
	})
}

// readLog reads the copies and the attempts of a log.
func readLog(r Reader, h *header) ([]tier.Remote, []tier.Attempt, error) {
	copies, gone := make([]tier.Remote, 0, h.copies), uint64(0)
	low, high := factRange(kindCopy, h.number, 0, h.state.Next)
	err := scanBodies(r, low, high, func(pos tier.Position, body []byte) error {
		c, err := decodeRemote(pos, body)
		copies = append(copies, c)
		if h.outOfLog(pos, c.Epoch, c.Range) {
			gone++
		}
		return err
	})
	if err == nil {
		err = h.checkCopies(uint64(len(copies)), gone)
	}
	if err != nil {
		return nil, nil, err
	}
	var attempts []tier.Attempt
	low, high = factRange(kindAttempt, h.number, 0, h.state.Next)
	err = scanBodies(r, low, high, func(pos tier.Position, body []byte) error {
		a, err := decodeAttempt(pos, body)
		attempts = append(attempts, a)
		return err
	})
	return copies, attempts, err
}

// checkCopies checks what the log says of its copies against how many there are, and how many of
// them are out of the log.
func (h *header) checkCopies(copies, gone uint64) error {
	if copies == h.copies && gone == h.gone {
		return nil
	}
	return named(logKey(h.number), fmt.Errorf("%w: it has %d copies, %d of them out of the log, "+
		"but says %d and %d", tier.ErrDamaged, copies, gone, h.copies, h.gone))
}

// scanBodies calls fn with the position and the body of each fact key in [low, high).
func scanBodies(r Reader, low, high []byte, fn func(tier.Position, []byte) error) error {
	return r.Scan(low, high, func(key, value []byte) error {
		if !keyShaped(key) {
			return named(key, fmt.Errorf("%w: no such key belongs here", tier.ErrDamaged))
		}
		body, err := disclose(key, value)
		if err != nil {
			return err
		}
		_, pos := splitFactKey(key)
		return named(key, fn(pos, body))
	})
}

// RestoreTables calls fn for each table, ascending by name.
func (l *Ledger) RestoreTables(fn func(tier.TableState) error) error {
	l.mu.RLock()
	var tables []tier.TableState
	for _, name := range slices.Sorted(maps.Keys(l.index.tables)) {
		tables = append(tables, cloneTable(l.index.tables[name]))
	}
	broken := l.broken
	l.mu.RUnlock()
	if broken != nil {
		return broken
	}
	for _, t := range tables {
		if err := fn(t); err != nil {
			return err
		}
	}
	return nil
}
