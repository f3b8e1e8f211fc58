package offsetstest

import (
	"fmt"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
)

// Snapshot is everything that a ledger tells.
type Snapshot struct {
	ID     string
	Clock  tier.Time
	Logs   []LogSnapshot // ascending by id
	Tables []tier.TableState
}

// LogSnapshot is everything that a ledger tells of one log. All slices ascend by position.
type LogSnapshot struct {
	State      tier.LogState
	Copies     []tier.Copy
	Attempts   []tier.Attempt
	Tombstones []offsets.Tombstone
	Facts      []tier.Fact
}

// Take reads a whole ledger in every way there is, and checks that the ways agree.
func Take(l *offsets.Ledger) (Snapshot, error) {
	if err := l.Err(); err != nil {
		return Snapshot{}, err
	}
	s := Snapshot{ID: l.ID(), Clock: l.Clock()}
	restored := map[tier.LogID][]tier.Remote{}
	attempts := map[tier.LogID][]tier.Attempt{}
	err := l.Restore(func(st tier.LogState, rs []tier.Remote, as []tier.Attempt) error {
		restored[st.Log], attempts[st.Log] = rs, as
		return nil
	})
	if err != nil {
		return s, err
	}
	for _, id := range l.Logs() {
		one, err := takeLog(l, id, attempts[id])
		if err != nil {
			return s, fmt.Errorf("log %s: %w", id, err)
		}
		rs := restored[id]
		if len(rs) != len(one.Copies) {
			return s, fmt.Errorf("log %s: %d copies restored of %d", id, len(rs), len(one.Copies))
		}
		for i, c := range one.Copies {
			if c.Remote() != rs[i] {
				return s, fmt.Errorf("log %s: restored %+v, want %+v", id, rs[i], c.Remote())
			}
		}
		s.Logs = append(s.Logs, one)
	}
	err = l.RestoreTables(func(t tier.TableState) error {
		s.Tables = append(s.Tables, t)
		return nil
	})
	return s, err
}

func takeLog(l *offsets.Ledger, id tier.LogID, attempts []tier.Attempt) (LogSnapshot, error) {
	s := LogSnapshot{Attempts: attempts}
	var ok bool
	if s.State, ok = l.Log(id); !ok {
		return s, fmt.Errorf("is listed, but not known")
	}
	var err error
	if s.Tombstones, err = l.Tombstones(id); err != nil {
		return s, err
	}
	if s.Facts, err = l.Facts(id, 0, s.State.Next+1); err != nil {
		return s, err
	}
	for _, f := range s.Facts {
		if f.Add == nil {
			continue
		}
		c, err := l.Copy(id, f.Position)
		if err != nil {
			return s, err
		}
		s.Copies = append(s.Copies, c)
	}
	for _, a := range attempts {
		if _, err := l.Attempt(id, a.Position); err != nil {
			return s, err
		}
	}
	for _, t := range s.Tombstones {
		if a, at, err := l.Abandoned(id, t.Position); err != nil || a.ID != t.ID || at != t.At {
			return s, fmt.Errorf("abandoned attempt %s: got %s, error %w", t.ID, a.ID, err)
		}
	}
	return s, allNamed(l, s)
}

// allNamed checks that the ledger knows every attempt of which it tells.
func allNamed(l *offsets.Ledger, s LogSnapshot) error {
	var ids []tier.AttemptID
	for _, c := range s.Copies {
		ids = append(ids, c.Attempt)
	}
	for _, a := range s.Attempts {
		ids = append(ids, a.ID)
	}
	for _, t := range s.Tombstones {
		ids = append(ids, t.ID)
	}
	for _, id := range ids {
		if named, err := l.Named(id); err != nil || !named {
			return fmt.Errorf("attempt %s is not named, error %w", id, err)
		}
	}
	return nil
}
