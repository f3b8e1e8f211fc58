package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/tierd/tierd/runtime/tier"
)

// never is later than every due time.
const never = tier.Time(math.MaxInt64)

// deleteBatchMax bounds one Delete effect, so that a fresh decision is never far away.
const deleteBatchMax = 64

// Engine is the state machine. It is not safe for concurrent use.
type Engine struct {
	settings Settings
	started  bool
	now      tier.Time
	paused   *tier.Reason
	clock    *tier.Reason // why nothing final may happen by the clocks
	stale    *tier.Reason // why nothing final may happen by the manifests

	logs    map[tier.LogID]*logIndex
	order   []*logIndex // ascending by id; what is iterated, so that no map order is visible
	tables  map[string]*tableIndex
	sources map[string]*sourceIndex

	inflight      map[EffectID]Effect
	lastID        EffectID
	copies        int // Copy and Resolve effects in flight
	deletes       int // Delete and Expire effects in flight
	removers      int // Remove effects in flight
	sweeping      bool
	sweepAt       tier.Time
	sweepFailures int // in a row

	wantRemover []*logIndex // in the order in which they came

	candidates     []*logIndex // that plugins are asked about, ascending by id
	unasked        int         // of those, the ones that wait for the first answer
	opens          int         // Open and OpenEpoch effects in flight
	round          []*logIndex // of candidates: those that are still to be asked about this time
	roundAt        tier.Time   // when the last round began
	selecting      bool        // a Select is under way
	selectAt       tier.Time   // not before is the next round
	selectFailures int         // in a row

	due     queue         // logs that wait for a time
	ready   queue         // logs with a segment to copy, the oldest first
	wanting []*tableIndex // tables with a log that wants to delete, ascending by name
	out     []Effect
}

type tableIndex struct {
	name       string
	generation uint64 // of cfg
	cfg        tier.Table
	governed   bool
	state      tier.TableState
	known      bool        // the ledger has it
	logs       []*logIndex // ascending by id
	deleting   bool        // one Delete or Expire of a table at a time keeps the brake's count exact
	pausing    bool
	changing   bool   // a ChangeTier is under way
	governing  bool   // a Govern is under way
	noting     string // its entry
	draining   bool   // no deletion begins: the table is about to become DISABLING
	removing   int    // Remove effects in flight
	want       queue  // logs whose oldest segment may go now, in either tier
	failures   int
	retryAt    tier.Time
}

type sourceIndex struct {
	trouble *tier.Reason
	scanned bool // at least one whole look since the start
}

// New returns an engine that knows nothing. It emits nothing before Started.
func New() *Engine {
	return &Engine{
		logs:     map[tier.LogID]*logIndex{},
		tables:   map[string]*tableIndex{},
		sources:  map[string]*sourceIndex{},
		inflight: map[EffectID]Effect{},
		due: queue{
			key:  func(l *logIndex) tier.Time { return l.due },
			slot: func(l *logIndex) *int { return &l.dueSlot },
		},
		ready: queue{
			first: func(a, b *logIndex) int { return compareScores(a.rank, b.rank) },
			key:   func(l *logIndex) tier.Time { return l.oldest },
			slot:  func(l *logIndex) *int { return &l.readySlot },
		},
	}
}

// Step takes one event at the time now and returns what is worth doing next. The effects are the
// caller's; each must be answered by a Finished with its id. A clock that goes back changes only
// what is due.
func (e *Engine) Step(now tier.Time, ev Event) []Effect {
	e.setClock(now)
	switch ev := ev.(type) {
	case Restored:
		e.restore(ev)
	case RestoredTable:
		t := e.table(ev.State.Table)
		t.state, t.known = ev.State, true
	case Started:
		e.started = true
		e.evaluateAll()
	case Reconfigured:
		if ev.Settings.Generation != e.settings.Generation {
			e.askRemovalsAgain()
		}
		e.settings = ev.Settings
		e.selectAt, e.selectFailures = 0, 0
		e.forgetAdvice()
		e.evaluateAll()
	case Reconsidered:
		for _, id := range ev.Logs {
			if l := e.logs[id]; l != nil {
				l.reconsider()
				e.evaluate(l)
			}
		}
	case Scanned:
		e.scanned(ev.Scan)
	case SourceScanned:
		e.sourceScanned(ev)
	case Tick:
		e.tick()
	case Paused:
		e.paused = ev.Reason
		e.evaluateAll()
	case ClockJudged:
		e.clock = ev.Reason
		e.evaluateAll()
	case Resumed:
		t := e.table(ev.Table)
		t.state.Paused, t.state.Window = nil, tier.BrakeWindow{Since: now}
		e.evaluateTable(ev.Table)
	case TableDropped:
		e.dropped(ev)
	case LossAccepted:
		e.lossAccepted(ev)
	case Advised:
		e.advised(ev)
	case Scrubbed:
		e.scrubbed(ev)
	case Finished:
		e.finished(ev)
	case Late:
		e.late(ev)
	default:
		panic(fmt.Sprintf("engine: unknown event %T", ev))
	}
	if e.started {
		e.fill()
	}
	out := e.out
	e.out = nil
	return out
}

func (e *Engine) lossAccepted(ev LossAccepted) {
	l := e.log(ev.Accepted.Log)
	if ev.Hole != nil {
		l.addHole(*ev.Hole)
	}
	l.giveUp(ev.Segment)
	l.settle(ev.Segment.Base)
	e.evaluate(l)
}

// setClock takes over the time. Where it went back by more than what anything that failed waits,
// that must not wait for so much longer. A smaller step stretches a wait by less than twice.
func (e *Engine) setClock(now tier.Time) {
	back := e.now-now > e.settings.Backoff.Max
	if e.now = now; !back {
		return
	}
	latest := now + e.settings.Backoff.Max
	for _, l := range e.order {
		t := l.table
		t.retryAt = min(t.retryAt, latest)
		if l.failures > 0 && l.retryAt > latest {
			l.retryAt = latest
			if l.due != never {
				l.wake(latest)
				e.due.fix(l)
			}
		}
	}
}

// Idle reports whether nothing is under way and nothing can be started now: all that is left waits
// for a time or for a change outside.
func (e *Engine) Idle() bool {
	return len(e.inflight) == 0 && e.ready.len() == 0 && len(e.wanting) == 0 &&
		len(e.wantRemover) == 0 && e.unasked == 0
}

// NextDue is the earliest time at which a Tick would do something; ok is false if there is none.
func (e *Engine) NextDue() (at tier.Time, ok bool) {
	at, ok = e.selectDue()
	if l := e.due.head(); l != nil && (!ok || l.due < at) {
		return l.due, true
	}
	return at, ok
}

// RetryAt is the earliest time at which a log that failed is tried again; absent if none has
// failed.
func (e *Engine) RetryAt() tier.Time {
	var at tier.Time
	for _, l := range e.order {
		if l.failures > 0 && l.block == nil && (at == 0 || l.retryAt < at) {
			at = l.retryAt
		}
	}
	return at
}

func (e *Engine) restore(ev Restored) {
	l := e.log(ev.State.Log)
	l.opened, l.stale = true, true
	l.state = ev.State
	l.source = ev.State.Source
	l.remote = slices.Clone(ev.Copies)
	for i := range l.remote {
		l.remote[i] = l.state.Clip(l.remote[i])
	}
	slices.SortFunc(l.remote, compareRemote)
	l.sum.holds = false
	l.attempts = slices.Clone(ev.Attempts)
	l.tombstones = slices.Clone(ev.Tombstones)
}

// log returns the index of a log, a new one for a log never heard of.
func (e *Engine) log(id tier.LogID) *logIndex {
	if l := e.logs[id]; l != nil {
		return l
	}
	t := e.table(id.Table)
	l := &logIndex{id: id, table: t, due: never}
	e.logs[id] = l
	i, _ := find(e.order, id)
	e.order = slices.Insert(e.order, i, l)
	i, _ = find(t.logs, id)
	t.logs = slices.Insert(t.logs, i, l)
	return l
}

// find returns where the log is in a list that ascends by id, or would be.
func find(list []*logIndex, id tier.LogID) (i int, found bool) {
	return slices.BinarySearchFunc(list, id, func(l *logIndex, id tier.LogID) int {
		return l.id.Compare(id)
	})
}

func (e *Engine) table(name string) *tableIndex {
	if t := e.tables[name]; t != nil {
		return t
	}
	t := &tableIndex{
		name:  name,
		state: tier.TableState{Table: name, State: tier.Enabled, Epoch: 1},
		want: queue{
			key:  func(l *logIndex) tier.Time { return l.wantSince },
			slot: func(l *logIndex) *int { return &l.wantSlot },
		},
	}
	e.tables[name] = t
	return t
}

// config resolves the table's settings once per generation; false where the table is frozen.
func (e *Engine) config(t *tableIndex) (tier.Table, bool) {
	if e.settings.Table == nil {
		return tier.Table{}, false
	}
	if t.generation != e.settings.Generation || t.generation == 0 {
		t.cfg, t.governed = e.settings.Table(t.name)
		t.generation = e.settings.Generation
	}
	if t.governing { // the entry governed, and is about to be on record
		noted := t.state
		noted.Entry = t.noting
		return t.cfg, !noted.Frozen(t.cfg, t.governed)
	}
	return t.cfg, !t.state.Frozen(t.cfg, t.governed)
}

func (e *Engine) source(name string) *sourceIndex {
	if s := e.sources[name]; s != nil {
		return s
	}
	s := &sourceIndex{}
	e.sources[name] = s
	return s
}

func (e *Engine) scanned(scan tier.Scan) {
	l := e.log(scan.Log)
	if l.present && l.source != scan.Source {
		l.double = &scan
		e.evaluate(l)
		return
	}
	l.look(scan)
	e.evaluate(l)
}

// sourceScanned marks what is no longer there. Nothing is concluded from a source in trouble: its
// logs keep their last index, and no decision is made on it.
func (e *Engine) sourceScanned(ev SourceScanned) {
	s := e.source(ev.Source)
	changed := (s.trouble == nil) != (ev.Trouble == nil) || !s.scanned
	s.trouble = ev.Trouble
	if ev.Trouble != nil {
		e.evaluateSource(ev.Source)
		return
	}
	s.scanned = true
	here := slices.Clone(ev.Logs)
	slices.SortFunc(here, tier.LogID.Compare)
	for _, l := range e.order {
		if l.source != ev.Source && l.double == nil {
			continue
		}
		_, found := slices.BinarySearchFunc(here, l.id, tier.LogID.Compare)
		if d := l.double; d != nil && !found && (d.Source == ev.Source || l.source == ev.Source) {
			// One of the two is gone: the other one is the log.
			if l.double = nil; l.source == ev.Source {
				l.look(*d)
			}
			e.evaluate(l)
			continue
		}
		if l.source != ev.Source {
			continue
		}
		awaited := l.stale || l.toLook
		l.looked = l.looked || l.toLook
		l.stale = false
		if l.present != found {
			l.present = found
			e.evaluate(l)
		} else if changed || awaited {
			e.evaluate(l)
		}
	}
}

func (e *Engine) tick() {
	for l := e.due.head(); l != nil && l.due <= e.now; l = e.due.head() {
		e.due.remove(l)
		e.evaluate(l)
		if l.due <= e.now {
			panic(fmt.Sprintf("engine: %s is due at %s again at once", l.id, l.due))
		}
	}
}

func (e *Engine) evaluateAll() {
	for _, l := range e.order {
		l.reconsider()
		e.evaluate(l)
	}
}

func (e *Engine) evaluateTable(name string) {
	for _, l := range e.table(name).logs {
		l.reconsider()
		e.evaluate(l)
	}
}

// askRemovalsAgain forgets which removals were denied: other policies may be in force. Where facts
// alone changed they wait for the slow period, since there may be many of one log.
func (e *Engine) askRemovalsAgain() {
	for _, l := range e.order {
		clear(l.denied)
	}
}

// reconsider forgets why something was kept, and does not remember the answer to a question that is
// under way: it may be of before the change.
func (l *logIndex) reconsider() {
	l.kept, l.remoteKept = nil, nil
	l.looked = false
	l.outdated = l.outdated || l.deleting || l.expiring
}

func (e *Engine) evaluateSource(name string) {
	for _, l := range e.order {
		if l.source == name {
			e.evaluate(l)
		}
	}
}

// evaluate decides anew what one log needs, from scratch: what it waits for, what it may copy,
// whether its oldest segment may go. It is idempotent.
func (e *Engine) evaluate(l *logIndex) {
	looked := l.looked
	l.looked, l.toLook = false, false
	l.due = never
	e.due.remove(l)
	e.ready.remove(l)
	e.unwant(l)
	l.block = e.blocked(l)
	l.stays = e.localDelete(l.source) != tier.LocalDeleteUnlink
	if !e.started {
		return
	}
	wasUnasked := l.unasked
	l.candidate, l.unasked = l.deleting && l.advice != nil, false // it is needed afterwards
	t := l.table
	if t.state.State != tier.Enabled {
		l.suspectUnread()
	}
	if l.block == nil {
		switch {
		case !l.opened || l.elsewhere():
			e.open(l)
		case t.state.State == tier.Enabled && l.state.Epoch < t.state.Epoch:
			e.openEpoch(l, t)
		case l.inDoubt():
			e.compare(l)
		default:
			e.maintain(l)
			e.considerCopy(l)
			e.considerDelete(l)
		}
	}
	if _, governed := e.config(t); (governed || t.state.Dropped != 0) && l.opened {
		e.considerStore(l, t, looked)
	}
	e.nominate(l, wasUnasked)
	l.forgive(e.now)
	e.tend(t)
	if l.due != never {
		e.due.fix(l)
	}
}

// considerStore decides what of the log is due in the store, which keeps its own time, whatever
// becomes of the source: a disablement has to end also where that is gone.
func (e *Engine) considerStore(l *logIndex, t *tableIndex, looked bool) {
	if l.block != nil && !e.retryLater(l) {
		e.resolveNext(l) // nobody else does
	}
	doubt := l.inDoubt()
	if l.block != nil && t.state.Leaves() {
		doubt = l.comparing // what is left of the lineage leaves with the rest
	}
	if doubt {
		return
	}
	e.publish(l)
	e.considerRemote(l, looked)
}

// forgive forgets a failure that has nothing left to try again: what failed is gone.
func (l *logIndex) forgive(now tier.Time) {
	busy := l.copies > 0 || l.opening || l.resolving || l.deleting || l.holing || l.publishing ||
		l.checking || l.moving || l.expiring || l.removing || l.clearing || l.inDoubt() ||
		l.readySlot > 0 || l.wantSlot > 0 || l.unasked
	if l.failures > 0 && now >= l.retryAt && !busy {
		l.forget()
	}
}

// wake makes sure that the log is evaluated at t or earlier.
func (l *logIndex) wake(t tier.Time) { l.due = min(l.due, t) }

// blocked says why nothing at all is decided for the log, if so.
func (e *Engine) blocked(l *logIndex) *tier.Reason {
	reason := func(code tier.Code, format string, args ...any) *tier.Reason {
		return &tier.Reason{Code: code, Text: fmt.Sprintf(format, args...)}
	}
	s := e.source(l.source)
	t := l.table
	cfg, governed := e.config(t)
	switch {
	case t.state.Dropped != 0:
		return reason(tier.CodeFrozen, "the table %q was dropped; what is local stays as it is until an "+
			"entry of the configuration governs the table, and all remote data are gone", l.id.Table)
	case l.source == "":
		return reason(tier.CodeEmptied, "no source has had the log since the ledger was rebuilt: all of "+
			"it is in the store")
	case l.state.Emptied && s.trouble == nil && s.scanned && !l.present:
		return reason(tier.CodeEmptied, "tierd deleted the last local segment, and none came since")
	case s.trouble != nil:
		return s.trouble
	case l.double != nil:
		return reason(tier.CodeDuplicateLog, "the log lies in the sources %q and %q: both are frozen",
			l.source, l.double.Source)
	case !l.present && s.scanned:
		return reason(tier.CodeSourceVanished, "the log is no longer in the source %q", l.source)
	case !l.present:
		return reason(tier.CodeSourceUnread, "the source %q was not scanned yet", l.source)
	case !governed:
		return e.frozen(t)
	case cfg.Compacted == tier.Yes || cfg.Compacted == tier.Unknown && l.compacted:
		if cfg.Named && cfg.Tiering {
			return reason(tier.CodeCompactedTable, "the table is compacted and cannot be tiered, and %s "+
				"names it: take it out, or set remote.storage.enable: false", cfg.Entry)
		}
		return reason(tier.CodeCompacted, "compacted logs are not tiered")
	case l.opened && l.incarnation != l.state.Incarnation &&
		(l.state.Source != "" || l.state.Incarnation != ""):
		return reason(tier.CodeIncarnation,
			"the log was recreated under the same name: its id is %q, the copied one's %q",
			l.incarnation, l.state.Incarnation)
	case l.elsewhere() && l.incarnation == "" && l.state.Source != "":
		return reason(tier.CodeMoved, "the log was in the source %q and is in %q now, and nothing tells "+
			"that it is the same one: move its local directory back (tierd drop would "+
			"delete the copies of its whole table in the store)", l.state.Source, l.source)
	case l.shrunk():
		return reason(tier.CodeIncarnation, "the log ends at %d, below the copied offset %d: it was cut "+
			"off, or begun anew under the same name, and nothing tells which: move its local directory "+
			"away (tierd drop would delete the copies of its whole table in the store)",
			l.localEnd, l.state.Copied)
	}
	return nil
}

// Emptied reports whether tierd deleted the last local segment of each log of the source, and none
// came since: then that nothing is there is as it should be.
func (e *Engine) Emptied(source string) bool {
	n := 0
	for _, l := range e.order {
		if l.opened && l.source == source {
			if !l.state.Emptied {
				return false
			}
			n++
		}
	}
	return n > 0
}

// elsewhere reports whether the log is in another source than it was copied from.
func (l *logIndex) elsewhere() bool { return l.opened && l.source != l.state.Source }

// shrunk reports whether a log of which only its files tell anything is shorter than it was. Its
// last segment is never deleted before another one follows, so that no log becomes shorter by
// tierd's hand; one that was emptied begins again above what was copied.
func (l *logIndex) shrunk() bool {
	return l.opened && l.layout == tier.LayoutPlain && l.whole && len(l.local) > 0 &&
		l.localEnd < l.state.Copied
}

func (e *Engine) open(l *logIndex) {
	if l.opening || len(l.local) == 0 || !l.whole {
		return
	}
	if e.retryLater(l) {
		return
	}
	l.opening = true
	e.opens++
	f := Open{ID: e.id(), Log: l.id, Source: l.source, Layout: l.layout,
		Incarnation: l.incarnation, Start: l.local[0].Base, State: tier.Enabled}
	if cfg, _ := e.config(l.table); !cfg.Tiering {
		f.State = tier.Disabled
	}
	e.emit(f)
}

// openEpoch brings the log into the table's epoch, where the log is by now.
func (e *Engine) openEpoch(l *logIndex, t *tableIndex) {
	busy := l.copies > 0 || l.resolving || len(l.attempts) > 0 || l.deleting || l.moving
	if l.opening || busy || len(l.local) == 0 || e.retryLater(l) {
		e.maintain(l)
		return
	}
	l.opening = true
	e.opens++
	e.emit(OpenEpoch{ID: e.id(), Log: l.id, Source: l.source, Epoch: t.state.Epoch,
		Fresh: l.state.Epoch < t.state.Fresh, Start: l.local[0].Base})
}

// retryLater reports whether the log failed lately and has to wait.
func (e *Engine) retryLater(l *logIndex) bool {
	if l.failures > 0 && e.now < l.retryAt {
		l.wake(l.retryAt)
		return true
	}
	return false
}

func (e *Engine) id() EffectID {
	e.lastID++
	return e.lastID
}

func (e *Engine) emit(f Effect) {
	e.inflight[e.lastID] = f
	e.out = append(e.out, f)
}

// fill starts copies and deletions as far as there are free workers.
func (e *Engine) fill() {
	e.considerSelect()
	for e.copies < e.settings.Workers && e.ready.len() > 0 {
		e.startCopy(e.ready.head())
	}
	for len(e.wantRemover) > 0 && e.removers < e.settings.Removers {
		l := e.wantRemover[0]
		e.wantRemover = e.wantRemover[1:]
		e.evaluate(l)
	}
	e.considerSweep()
	for i := 0; i < len(e.wanting) && e.deletes < e.settings.Deleters; {
		t := e.wanting[i]
		if t.deleting || t.pausing || t.draining {
			i++
			continue
		}
		e.startWanted(t.want.head(), t)
		if i < len(e.wanting) && e.wanting[i] == t {
			i++
		}
	}
}

// startWanted asks about whichever tier's oldest segment is due: the remote one first, since it is
// the older.
func (e *Engine) startWanted(l *logIndex, t *tableIndex) {
	if i := l.oldestRemote(); i >= 0 && !l.expiring && l.remoteKept == nil && !t.state.Leaves() &&
		t.state.State != tier.Disabling && e.finalStopped(t) == nil && e.begins(l, t, i) &&
		e.remoteDue(l, t, i, l.remoteExtent().Bytes) <= e.now && e.startExpire(l, t) {
		return
	}
	e.startDelete(l)
}
