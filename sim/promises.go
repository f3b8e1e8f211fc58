package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// PromiseProperty is the user's own property at file:line, as violations name it.
func PromiseProperty(rule string) Property { return Property("violation " + rule) }

// departed is one deletion, as the later ones' input has it.
type departed struct {
	Action  tier.Action `json:"action"`
	Now     tier.Time   `json:"now_ns"`
	Final   bool        `json:"final"`
	Table   string      `json:"table"`
	Log     string      `json:"log"`
	Base    tier.Offset `json:"base"`
	Next    tier.Offset `json:"next"`
	Bytes   int64       `json:"bytes"`
	Written tier.Time   `json:"written_ns"`
}

// deletionInput is the input of the user's properties, as policies/schema/deletion.json has it.
type deletionInput struct {
	Action  tier.Action             `json:"action"`
	Now     tier.Time               `json:"now_ns"`
	Final   bool                    `json:"final"`
	Table   tableInput              `json:"table"`
	Log     logInput                `json:"log"`
	Segment segmentInput            `json:"segment"`
	Node    nodeInput               `json:"node"`
	Facts   map[string]any          `json:"facts"`
	History []departed              `json:"history"`
	Written map[string]writtenInput `json:"written"`
}

type tableInput struct {
	Name          string             `json:"name"`
	Labels        map[string]string  `json:"labels"`
	TTL           int64              `json:"ttl_ns"`
	LocalTTL      int64              `json:"local_ttl_ns"`
	Tiering       bool               `json:"tiering"`
	DisablePolicy tier.DisablePolicy `json:"disable_policy"`
}

type logInput struct {
	ID    string         `json:"id"`
	State tier.TierState `json:"tier_state"`
}

type segmentInput struct {
	Base    tier.Offset `json:"base"`
	Next    tier.Offset `json:"next"`
	Bytes   int64       `json:"bytes"`
	Written tier.Time   `json:"written_ns"`
	Age     tier.Time   `json:"age_ns"`
}

type nodeInput struct {
	Used int64 `json:"disk_used_bytes"`
	Free int64 `json:"disk_free_bytes"`
}

type writtenInput struct {
	Bytes    int64 `json:"bytes"`
	Segments int64 `json:"segments"`
}

// departs asks the user's properties about a deletion that has been decided, and keeps it for the
// later ones.
func (o *Oracle) departs(d departed, state tier.TierState) {
	if o.Promises == nil {
		return
	}
	t, _ := o.w.Config.Tables(d.Table)
	known := map[string]any{}
	if o.w.Config.Extern != nil {
		id, err := tier.ParseLogID(d.Log)
		must(err)
		known, _ = o.w.Config.Extern(o.w.Now, id)
	}
	in := deletionInput{Action: d.Action, Now: d.Now, Final: d.Final,
		Table: tableInput{t.Name, labelsOf(t), int64(t.TTL), int64(t.LocalTTL), t.Tiering,
			t.DisablePolicy},
		Log:     logInput{d.Log, state},
		Segment: segmentInput{d.Base, d.Next, d.Bytes, d.Written, d.Now - d.Written},
		Node:    nodeInput{o.w.Config.Node.DiskUsedBytes, o.w.Config.Node.DiskFreeBytes},
		Facts:   known, History: o.departures, Written: o.written()}
	if in.History == nil {
		in.History = []departed{}
	}
	text, err := json.Marshal(in)
	must(err)
	broken, err := o.Promises.Judge(o.w.asking(context.Background()), d.Now, text)
	segment := fmt.Sprintf("%s@%d", d.Log, d.Base)
	if err != nil {
		o.violations = append(o.violations, Violation{PromiseProperty("evaluation"), err.Error(),
			segment, d.Action})
	}
	for _, b := range broken {
		o.violations = append(o.violations, Violation{PromiseProperty(b.Rule), b.Text, segment,
			d.Action})
	}
	o.judged++
	o.departures = append(o.departures, d)
}

func labelsOf(t tier.Table) map[string]string {
	if t.Labels == nil {
		return map[string]string{}
	}
	return t.Labels
}

// written is what the owners wrote, by table.
func (o *Oracle) written() map[string]writtenInput {
	out := map[string]writtenInput{}
	for _, l := range o.logs {
		w := out[l.id.Table]
		for _, s := range l.segments {
			w.Segments++
			w.Bytes += s.bytes()
		}
		out[l.id.Table] = w
	}
	return out
}

// bytes are those of the segment's files, as they were written last.
func (s *segmentRecord) bytes() (sum int64) {
	for _, f := range s.files {
		sum += int64(len(f.versions[len(f.versions)-1].data))
	}
	return sum
}

// departsLocally tells the user's properties of a local segment that goes.
func (o *Oracle) departsLocally(f fileName, files []file) {
	s := o.record(f.log).segment(f.base)
	i := slices.IndexFunc(files, func(x file) bool { return x.base == f.base && x.records })
	if o.Promises == nil || s == nil || i < 0 {
		return
	}
	ledger, err := o.w.ledgerNow()
	if err != nil {
		return // rest says so
	}
	d := departed{Action: tier.DeleteLocal, Now: o.w.Now, Table: f.log.Table, Log: f.log.String(),
		Base: f.base, Next: s.Next, Bytes: s.bytes(), Written: files[i].stat.ModTime}
	v := o.knows(f, files[i].data)
	if v != nil {
		d.Written = v.at
	}
	known := ledger.log(f.log)
	d.Final = known == nil || known.state.LogStart >= s.Next ||
		v == nil || o.w.storeNow(ledger.id).missing(f, v) != ""
	o.departs(d, ledger.table(f.log.Table).State)
}

// departsRemotely tells the user's properties of the segments that a move took out of the log.
func (o *Oracle) departsRemotely(l *ledgerLog, t tier.TableState, from tier.Offset) {
	if o.Promises == nil {
		return
	}
	id := l.state.Log
	live := liveRecords(o.w.files(id))
	for _, s := range o.record(id).segments {
		at, copied := o.copiedAt(l, s, 0)
		if !copied || s.Next > l.state.LogStart || s.Next <= from {
			continue
		}
		action := tier.DeleteRemote
		if leaves(t) {
			action = tier.DisableDelete
		}
		local := slices.ContainsFunc(live, func(x file) bool { return x.base == s.Base })
		o.departs(departed{Action: action, Now: o.w.Now, Final: !local, Table: id.Table,
			Log: id.String(), Base: s.Base, Next: s.Next, Bytes: s.bytes(), Written: at}, t.State)
	}
}
