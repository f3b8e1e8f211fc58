package offsets

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Fault is what becomes of one commit to a Memory.
type Fault uint8

// The faults.
const (
	NoFault    Fault = iota
	FailBefore       // the commit fails, and nothing of it is there
	FailAfter        // the commit fails, but all of it is durable
	Lose             // the commit succeeds, but a crash undoes it and what follows it, unless a
	// later commit without fault came after: the disk had said too early that it was done
)

// ErrInjected is the error of a commit that a fault fails.
var ErrInjected = errors.New("injected fault")

var errCrashed = errors.New("the machine has crashed")

// Memory is a medium in memory, for simulations and tests. It behaves like a disk whose owner can
// crash: what was committed is there after Crash, but for commits that a fault lost.
type Memory struct {
	mu      sync.RWMutex
	now     sortedMap
	durable *sortedMap // what a crash goes back to, where that is not now
	commits uint64     // asked for so far
	fault   func(commit uint64) Fault
	dead    error // why nothing more can be done
}

var _ Medium = (*Memory)(nil)

// NewMemory returns a medium with a new ledger of that id.
func NewMemory(id [16]byte) *Memory {
	m := &Memory{now: sortedMap{values: map[string][]byte{}}}
	tx := &memoryTx{now: &m.now}
	if err := birth(tx, func() [16]byte { return id }); err != nil {
		panic(err) // it has an id, and a map does not fail
	}
	tx.apply()
	return m
}

// Inject sets what becomes of the commits from here on; fault is asked once for each, with the
// number of commits before it. nil lets all succeed.
func (m *Memory) Inject(fault func(commit uint64) Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault
}

// Commits is how many commits were asked for so far, failed ones included.
func (m *Memory) Commits() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.commits
}

// Crash ends the use of m and returns what is there after a restart, without faults. It drops
// nothing that was committed, but for commits that a fault lost.
func (m *Memory) Crash() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = errCrashed
	from := &m.now
	if m.durable != nil {
		from = m.durable
	}
	return &Memory{now: from.clone()}
}

// Clone returns an independent copy of what m holds now, without faults: a backup, to go back to an
// old state with.
func (m *Memory) Clone() *Memory {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return &Memory{now: m.now.clone()}
}

// View implements Medium.
func (m *Memory) View(fn func(Reader) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.dead != nil {
		return m.dead
	}
	return fn(&memoryTx{now: &m.now})
}

// Update implements Medium.
func (m *Memory) Update(fn func(Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead != nil {
		return m.dead
	}
	tx := &memoryTx{now: &m.now}
	if err := fn(tx); err != nil {
		return err
	}
	fault := NoFault
	if m.fault != nil {
		fault = m.fault(m.commits)
	}
	m.commits++
	switch fault {
	case FailBefore:
		return fmt.Errorf("commit: %w", ErrInjected)
	case Lose:
		if m.durable == nil {
			before := m.now.clone()
			m.durable = &before
		}
	default:
		m.durable = nil
	}
	tx.apply()
	if fault == FailAfter {
		return fmt.Errorf("commit: %w", ErrInjected)
	}
	return nil
}

// Close implements Medium. The content stays for Crash and Clone.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead == nil {
		m.dead = errClosed
	}
	return nil
}

// String implements Medium.
func (m *Memory) String() string { return "in memory" }

// sortedMap is a map with its keys in order.
type sortedMap struct {
	keys   []string
	values map[string][]byte // never changed once they are in
}

func (s *sortedMap) clone() sortedMap {
	return sortedMap{keys: slices.Clone(s.keys), values: maps.Clone(s.values)}
}

func (s *sortedMap) set(key string, value []byte) {
	if _, ok := s.values[key]; !ok {
		i, _ := slices.BinarySearch(s.keys, key)
		s.keys = slices.Insert(s.keys, i, key)
	}
	s.values[key] = value
}

func (s *sortedMap) remove(key string) {
	if i, ok := slices.BinarySearch(s.keys, key); ok {
		s.keys = slices.Delete(s.keys, i, i+1)
		delete(s.values, key)
	}
}

// between returns the keys in [from, to), ascending; where to is nil, to the last.
func (s *sortedMap) between(from, to []byte) []string {
	low, _ := slices.BinarySearch(s.keys, string(from))
	high := len(s.keys)
	if to != nil {
		high, _ = slices.BinarySearch(s.keys, string(to))
	}
	return s.keys[low:max(low, high)]
}

// memoryTx is a transaction: its changes lie over what is there now, until apply.
type memoryTx struct {
	now     *sortedMap
	changes sortedMap // a nil value stands for a deletion
}

// Get implements Reader.
func (t *memoryTx) Get(key []byte) ([]byte, error) {
	if v, ok := t.changes.values[string(key)]; ok {
		return v, nil
	}
	return t.now.values[string(key)], nil
}

// Scan implements Reader.
func (t *memoryTx) Scan(from, to []byte, fn func(key, value []byte) error) error {
	keys := t.now.between(from, to)
	if changed := t.changes.between(from, to); len(changed) > 0 {
		keys = append(slices.Clone(keys), changed...)
		slices.Sort(keys)
		keys = slices.Compact(keys)
	}
	for _, key := range keys {
		value, _ := t.Get([]byte(key))
		if value == nil {
			continue
		}
		if err := fn([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

// Put implements Tx.
func (t *memoryTx) Put(key, value []byte) error {
	t.change(key, bytes.Clone(value))
	return nil
}

// Delete implements Tx.
func (t *memoryTx) Delete(key []byte) error {
	t.change(key, nil)
	return nil
}

func (t *memoryTx) change(key, value []byte) {
	if t.changes.values == nil {
		t.changes.values = map[string][]byte{}
	}
	t.changes.set(string(key), value)
}

// apply commits the changes.
func (t *memoryTx) apply() {
	for _, key := range t.changes.keys {
		if value := t.changes.values[key]; value != nil {
			t.now.set(key, value)
		} else {
			t.now.remove(key)
		}
	}
}
