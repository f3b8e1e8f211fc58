package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// The oracle reads disk, store and ledger itself, past the process and past every fault.

// Where a file of a segment is on its way out.
const (
	trashDir      = ".tierd-trash"
	pendingSuffix = ".pending"
	deadSuffix    = ".dead"
)

// filePlace is where a file of a segment is within its log.
type filePlace uint8

const (
	live    filePlace = iota
	pending           // in the trash, and may come back
	dead              // in the trash, and its deletion is decided
)

// fileName is a path of the source taken apart.
type fileName struct {
	log     tier.LogID
	base    tier.Offset
	name    string // base name, as it is while the file is live
	records bool   // it is the file with the records
	place   filePlace
}

// parsedPath is what a path is, and always will be.
type parsedPath struct {
	fileName
	ok bool
}

// parsePath takes a path from the root of the disk apart; ok is false if it is no file of a
// segment.
func (w *World) parsePath(p string) (f fileName, ok bool) {
	parsed, known := w.paths[p]
	if !known {
		parsed.fileName, parsed.ok = w.takeApart(p)
		w.paths[p] = parsed
	}
	return parsed.fileName, parsed.ok
}

func (w *World) takeApart(p string) (f fileName, ok bool) {
	rest, inside := strings.CutPrefix(p, sourceDir+"/")
	if !inside {
		return fileName{}, false
	}
	dir, name := path.Split(rest)
	dir = strings.TrimSuffix(dir, "/")
	if d, trashed := strings.CutSuffix(dir, "/"+trashDir); trashed {
		dir = d
		if n, isDead := strings.CutSuffix(name, deadSuffix); isDead {
			name, f.place = n, dead
		} else if n, isPending := strings.CutSuffix(name, pendingSuffix); isPending {
			name, f.place = n, pending
		} else {
			return fileName{}, false
		}
	}
	if i := strings.LastIndexByte(dir, '-'); i > 0 && w.Config.Layout == tier.LayoutKafka {
		dir = dir[:i] + "/" + dir[i+1:]
	}
	id, err := tier.ParseLogID(dir)
	if err != nil {
		return fileName{}, false
	}
	f.log, f.name = id, name
	_, f.records = baseOf(name)
	f.base, ok = baseOfAny(name)
	return f, ok
}

// baseOfAny reads the name of any file of a segment.
func baseOfAny(name string) (tier.Offset, bool) {
	if stem, isCompanion := strings.CutSuffix(name, Companion); isCompanion {
		name = stem + ".log"
	}
	return baseOf(name)
}

// file is one that is on disk now.
type file struct {
	fileName
	at   string // its path from the root
	stat tier.Stat
	data []byte
}

// files are every file of a log, also those in its trash, ascending by base and name. They are read
// anew after each change of the disk, and are not to be changed by who looks at them.
func (w *World) files(id tier.LogID) []file {
	r := &w.filesRead
	source := w.source()
	n := w.Disk.ChangesBelow(source)
	if r.disk != w.Disk || r.changes != n || r.source != source {
		r.disk, r.changes, r.source = w.Disk, n, source
		r.of = map[tier.LogID][]file{}
	}
	files, read := r.of[id]
	if !read {
		files = w.readFiles(id)
		r.of[id] = files
	}
	return files
}

// filesRead is what the files of logs were when they were read last.
type filesRead struct {
	disk    *vfs.Mem
	changes uint64
	source  string
	of      map[tier.LogID][]file
}

func (w *World) readFiles(id tier.LogID) []file {
	var out []file
	source := w.source()
	dir := path.Join(source, w.logDir(id))
	for _, d := range []string{dir, dir + "/" + trashDir} {
		w.Disk.Look(d, func(i vfs.Info, data []byte) {
			at := d + "/" + i.Name
			named := at
			if source != sourceDir { // one that is elsewhere has the same files
				named = sourceDir + strings.TrimPrefix(at, source)
			}
			if f, ok := w.parsePath(named); ok {
				out = append(out, file{f, at, i.Stat, data})
			}
		})
	}
	slices.SortStableFunc(out, func(a, b file) int {
		if a.base != b.base {
			return int(a.base - b.base)
		}
		return strings.Compare(a.name, b.name)
	})
	return out
}

// liveRecords keeps the files with records that are in their place.
func liveRecords(files []file) []file {
	return slices.DeleteFunc(slices.Clone(files), func(f file) bool {
		return f.place != live || !f.records
	})
}

func readFile(dir vfs.Dir, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// must stops a simulation that cannot look at its own world.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("sim: look at the world: %v", err))
	}
}

// ledgerLog is what the ledger durably holds of a log. It is the same one as long as that is the
// same.
type ledgerLog struct {
	of         *offsets.LogReading
	state      tier.LogState
	facts      []tier.Fact // copies and holes, ascending by position
	attempts   []tier.Attempt
	tombstones []offsets.Tombstone

	// Once somebody asked:
	covers  tier.RangeSet
	written []remnant
}

// covered are the offsets that are in a finished copy, in a recorded hole, or expired. They are not
// to be changed.
func (l *ledgerLog) covered() tier.RangeSet {
	if l.covers == nil {
		l.covers = l.allCovered()
	}
	return l.covers
}

func (l *ledgerLog) allCovered() tier.RangeSet {
	var out tier.RangeSet
	for _, r := range l.state.Expired {
		out = out.Add(r)
	}
	for _, f := range l.facts {
		switch {
		case f.Add != nil && f.Add.Epoch >= l.state.Fresh:
			out = out.Add(l.clip(f.Position, f.Add.Content.Range))
		case f.Hole != nil:
			out = out.Add(l.clip(f.Position, f.Hole.Range))
		}
	}
	return out
}

// clip is what of a fact's range the log's lineage has not left, in words of the oracle's own: what
// lies below every clip that came after the fact.
func (l *ledgerLog) clip(pos tier.Position, r tier.Range) tier.Range {
	for _, c := range l.state.Clips {
		if c.Position > pos {
			r.Next = min(r.Next, c.Offset)
		}
	}
	return r
}

// ledgerTruth is what the ledger durably holds.
type ledgerTruth struct {
	id     string
	clock  tier.Time    // the highest one that counts as right
	logs   []*ledgerLog // in the order in which they were opened
	tables []tier.TableState
}

func (t *ledgerTruth) log(id tier.LogID) *ledgerLog {
	for _, l := range t.logs {
		if l.state.Log == id {
			return l
		}
	}
	return nil
}

func (t *ledgerTruth) table(name string) tier.TableState {
	for _, s := range t.tables {
		if s.Table == name {
			return s
		}
	}
	return tier.TableState{Table: name}
}

// ledgerNow is the ledger as a process that started now would find it. It is read anew after each
// commit, and is not to be changed by who looks at it.
func (w *World) ledgerNow() (*ledgerTruth, error) {
	r := &w.ledgerRead
	if commits := w.Medium.Commits(); r.medium != w.Medium || r.commits != commits {
		r.medium, r.commits = w.Medium, commits
		before := r.truth
		r.truth, r.err = nil, r.reading.Read(w.Medium)
		if r.err == nil {
			r.truth = truthOf(&r.reading, before)
		}
	}
	return r.truth, r.err
}

// ledgerRead is what the ledger was when it was read last.
type ledgerRead struct {
	medium  *offsets.Memory
	commits uint64
	reading offsets.Reading
	truth   *ledgerTruth
	err     error
}

func truthOf(r *offsets.Reading, before *ledgerTruth) *ledgerTruth {
	t := &ledgerTruth{id: r.ID, clock: r.Clock, logs: make([]*ledgerLog, len(r.Logs)),
		tables: r.Tables}
	for i, l := range r.Logs {
		if before != nil {
			t.logs[i] = before.log(l.State.Log)
		}
		if t.logs[i] == nil || t.logs[i].of != l {
			t.logs[i] = &ledgerLog{of: l, state: l.State, facts: l.Facts,
				attempts: l.Attempts, tombstones: l.Tombstones}
		}
	}
	return t
}

// intent is a deletion that the audit log announced, with its outcome, if it has one.
type intent struct {
	seq     uint64
	action  tier.Action
	log     string
	base    tier.Offset
	object  string // key, or what keys begin with; "" of a local segment
	sum     tier.SHA256
	outcome tier.OutcomeResult
}

// is reports whether it is of the segment.
func (in *intent) is(id tier.LogID, base tier.Offset) bool {
	return in.log == id.String() && in.base == base
}

// intents reads the audit log as it would be after a crash now that drops what is not synced. It
// knows the lines' format and nothing of package audit.
func (w *World) intents() []*intent {
	var all []byte
	w.Disk.LookSynced(auditDir, func(i vfs.Info, data []byte) {
		switch {
		case path.Ext(i.Name) != ".jsonl":
		case all == nil:
			all = data
		default:
			all = append(all, data...) // of one file there is no room left: it goes elsewhere
		}
	})
	// Lines only ever come after others, but where a crash drops some.
	if !bytes.HasPrefix(all, w.audited.text) {
		w.audited = auditTruth{}
	}
	w.audited.read(all)
	return w.audited.intents
}

// auditTruth is what the audit log was when it was read last.
type auditTruth struct {
	text    []byte // of whole lines; shared
	intents []*intent
	bySeq   map[uint64]*intent
}

// read takes over the lines that come after those that were read.
func (t *auditTruth) read(all []byte) {
	if t.bySeq == nil {
		t.bySeq = map[uint64]*intent{}
	}
	for line := range bytes.Lines(all[len(t.text):]) {
		if line[len(line)-1] != '\n' {
			break // torn: it was never durable
		}
		t.text = all[:len(t.text)+len(line)]
		t.line(line)
	}
}

func (t *auditTruth) line(line []byte) {
	of, in, plain := plainLine(line)
	if !plain {
		of, in = anyLine(line)
	}
	switch {
	case in == nil: // torn: it was never durable
	case of == 0:
		t.bySeq[in.seq] = in
		t.intents = append(t.intents, in)
	case t.bySeq[of] != nil:
		t.bySeq[of].outcome = in.outcome
	}
}

// anyLine is plainLine for any line; nil for one that is torn.
func anyLine(line []byte) (of uint64, in *intent) {
	// What the policies saw is long, comes last in an intent, and is not the oracle's to judge.
	head, input, has := bytes.Cut(line, []byte(`,"input":`))
	if end := []byte("}}}\n"); has && bytes.HasSuffix(input, end) {
		line = append(bytes.Clone(head), end[1:]...)
	}
	var r struct {
		Seq    uint64
		Intent *struct {
			Action tier.Action
			Log    string
			Range  tier.Range
			Object string
			SHA256 tier.SHA256
		}
		Outcome *struct {
			Of     uint64
			Result tier.OutcomeResult
		}
	}
	switch {
	case json.Unmarshal(line, &r) != nil:
		return 0, nil
	case r.Intent != nil:
		return 0, &intent{r.Seq, r.Intent.Action, r.Intent.Log, r.Intent.Range.Base, r.Intent.Object,
			r.Intent.SHA256, ""}
	case r.Outcome != nil:
		return r.Outcome.Of, &intent{seq: r.Seq, outcome: r.Outcome.Result}
	}
	return 0, nil
}
