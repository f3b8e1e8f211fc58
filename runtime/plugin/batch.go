package plugin

import (
	"encoding/json"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// Table is what plugins are told of a table.
type Table struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// Tables is the list of tables that a batch refers to. It never changes: where the tables or
// their labels do, make a new one, and every instance is configured afresh. The nil *Tables is
// the empty list.
type Tables struct {
	list  []Table
	index map[string]int
	json  json.RawMessage
}

// NewTables makes a list of tables. Indices are those of list.
func NewTables(list []Table) (*Tables, error) {
	t := &Tables{list: make([]Table, 0, len(list)), index: make(map[string]int, len(list))}
	for i, table := range list {
		if table.Labels == nil {
			table.Labels = map[string]string{}
		}
		t.list = append(t.list, table)
		t.index[table.Name] = i
	}
	text, err := json.Marshal(t.list)
	t.json = text
	return t, err
}

// Len is the number of tables.
func (t *Tables) Len() int {
	if t == nil {
		return 0
	}
	return len(t.list)
}

// Index returns the index of a table, -1 if it is not in the list.
func (t *Tables) Index(name string) int {
	if t != nil {
		if i, ok := t.index[name]; ok {
			return i
		}
	}
	return -1
}

func (t *Tables) text() json.RawMessage {
	if t == nil {
		return json.RawMessage("[]")
	}
	return t.json
}

// Segment is one candidate of a batch.
type Segment struct {
	tier.Range
	Bytes    int64         // of all its files
	MaxTime  tier.Time     // largest record timestamp; absent if there is none usable
	Age      time.Duration // 0 if it is not known
	Local    bool          // it is on local disk
	Remote   bool          // it is in the object store
	Copied   bool          // every offset lies below the copied offset
	Verified bool          // its copy was verified
}

// Log is one log of a batch with its segments, ascending by base.
type Log struct {
	ID            tier.LogID // for reports alone; plugins do not see it
	Table         int        // index in Batch.Tables; -1 if it is not there
	State         tier.TierState
	LocalBytes    int64 // of the whole log on local disk
	DiskUsedBytes int64 // of the disk that the log lies on
	DiskFreeBytes int64
	Segments      []Segment
}

// Batch is what plugins are asked about at one time. All candidates of a log belong in one batch:
// a plugin that keeps the newest segments of a log cannot see those of another batch. Row i of a
// Result is the i-th segment, counted over all logs in their order.
type Batch struct {
	Now    tier.Time
	Tables *Tables
	Logs   []Log
}

// Len is the number of segments.
func (b *Batch) Len() int {
	n := 0
	for i := range b.Logs {
		n += len(b.Logs[i].Segments)
	}
	return n
}
