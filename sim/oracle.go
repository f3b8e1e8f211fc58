package sim

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/tier"
)

// Property is a promise that the oracle watches, by the name that DESIGN gives it.
type Property string

// The properties of safety hold at every moment; those of liveness when nothing fails any more.
const (
	NoUncopiedDelete Property = "S1 NoUncopiedDelete"
	CopiedSound      Property = "S2 CopiedSound"
	CopiedMonotone   Property = "S3 CopiedMonotone"
	PersistBeforeAct Property = "S4 PersistBeforeAct"
	Gated            Property = "S5 Gated"
	NoGap            Property = "S6 NoGap"
	StartFirst       Property = "S7 StartBeforeRemoteDelete"
	EpochFence       Property = "S8 EpochFence"
	ActiveUntouched  Property = "S10 ActiveUntouched"
	ReadBack         Property = "S11 ReadBack"

	PluginContainment Property = "S12 PluginContainment"

	Recovered       Property = "S13 RecoveryIdempotent"
	CountedOnce     Property = "S14 CountedOnce"
	OrphanNeverLive Property = "S15 OrphanNeverLive"
	MinimumAge      Property = "S16 MinimumAge"
	AuditTrue       Property = "S17 AuditTrue"
	EligibleCopied  Property = "L1 EligibleIsCopied"
	ExpiredDeleted  Property = "L2 ExpiredIsDeleted"
	Settled         Property = "L3 NothingIsLeftOver"
	NoLivelock      Property = "L5 NoRetryLivelock"
)

// Violation is a promise that was broken.
type Violation struct {
	Property Property
	Text     string
	Segment  string // table/name@offset; "" where it is of no single segment
	// Action is that of the deletion which a property of the user's judged; "" for other promises.
	Action tier.Action
}

// String puts the property first.
func (v Violation) String() string { return string(v.Property) + ": " + v.Text }

// Oracle stands below the process. It keeps its own record of every byte that the owner of the logs
// ever wrote, sees each operation before it happens, and looks at disk, store and ledger between
// any two effects. What the process believes is only ever judged, never trusted: neither its
// engine's index nor the ledger's copied offset says to the oracle what is safe.
type Oracle struct {
	// Policies is set while policies beside the built-in one are in force: then the oracle, which
	// has the TTL rules alone in words of its own, does not judge why a deletion was asked for.
	Policies bool
	// refused is set where the last reload was, so that its configuration is not in force.
	refused bool
	// Denied tells whether a policy denies every deletion of the log now. It may be nil.
	Denied func(tier.LogID) bool
	// Promises are the user's own properties; nil for none.
	Promises *rego.Promises

	w          *World
	logs       []*logRecord // ascending by id
	lostKeys   []objstore.Key
	unsaid     []unsaid
	saying     []string                      // keys of what is being said again in a manifest
	rotten     []objstore.Key                // of them, those that nobody has read since
	floor      map[tier.LogID]tier.Offset    // the highest copied offset that was durable
	starts     map[tier.LogID]tier.Offset    // the log start that was seen last
	fresh      map[tier.LogID]tier.TierEpoch // for started
	epochs     map[tier.LogID]tier.TierEpoch // for monotone
	clipped    map[tier.LogID]tier.Position  // likewise: one past the last clip that was seen
	strays     []string
	away       map[tier.LogID]tier.RangeSet // what may be in neither tier
	onRecord   map[tier.AttemptID]bool      // attempts that ever were
	served     map[tier.AttemptID]bool      // whose copies were ever part of their log
	objections map[uint64]string            // to the deletion of a file, by inode, when it was taken
	// untold are the announced deletions, by sequence number, of which nobody can tell how they
	// ended: before that was looked for, the owner of the log removed the segment, or the ledger was
	// rebuilt where tierd may delete nothing, and so put nothing right, either.
	untold     map[uint64]bool
	hearing    hearing
	windows    map[string]tier.Time // when the brake's window of each table began
	losses     []loss
	given      map[tier.LossAccepted]bool          // that were judged
	owned      map[string]bool                     // tables that had an entry of their own
	leave      map[string]bool                     // tables all of whose remote data may leave
	answers    map[question]answer                 // of the policies, the last one to each question
	keeps      map[tier.LogID]map[tier.Offset]bool // what plugins asked to keep, in this life
	deletions  []deletion
	clock      tier.Time     // the highest time seen
	tolerated  time.Duration // of World.passed, when the store's clock was last seen to be right
	vouched    vouched
	changed    bool // something did, since rest looked
	inTime     bool // since the last rest something was committed when it was not long astray
	blind      bool // it only takes notes
	departures []departed
	fence      fence
	judged     int      // deletions that the user's properties were asked about
	old        bool     // the ledger is one that was put back
	buried     []buried // those that it replaced
	violations []Violation
}

// logRecord is what the owner of a log did.
type logRecord struct {
	id       tier.LogID
	segments []*segmentRecord // ascending by base
	opened   bool             // the ledger was seen to have it
	dead     []*segmentRecord // as they were when a new leader cut them off
	cutAt    tier.Offset      // the lowest offset that ever was cut off; the highest there is if none
	lineage  []tier.EpochStart
	end      tier.Offset // of the owner's log, where it has a lineage
	replicas bool        // it has some, which have it up to hw, and had it up to hwMax
	hw       tier.Offset
	hwMax    tier.Offset
}

// segmentRecord is one segment as its owner wrote it.
type segmentRecord struct {
	tier.Range // Next is known once it is closed
	closed     bool
	removed    bool // by the owner
	files      []fileRecord
}

// fileRecord is one file of a segment with every content that it ever had, oldest first.
type fileRecord struct {
	name     string
	records  bool // it is the one with the records
	versions []version
	gone     bool // it did not come back with its segment
}

type version struct {
	data []byte
	at   tier.Time // when it was first written
	// rotten is set where the owner never wrote it, but a disk made it of what was there.
	rotten bool
	was    *version // before it rotted, where nothing else told; nil for what was written
}

// deletion is one that was decided: its file was moved to where a crash does not undo it.
type deletion struct {
	fileName
	inode    uint64
	at       tier.Time
	bytes    int64 // of the file
	forgiven bool  // the brake's window need not have it any more
	untiered bool  // its table did not tier then
	renewed  bool  // its owner wrote it again since
}

// question is what the policies are asked of a segment.
type question struct {
	action tier.Action
	log    tier.LogID
	base   tier.Offset
}

// answer is whether the policies let it go, and of which configuration they were.
type answer struct {
	leave      bool
	generation uint64
}

// answered notes what the policies said.
func (o *Oracle) answered(f *gate.Facts, leave bool) {
	o.answers[question{f.Action, f.Log.ID, f.Seg.Range.Base}] = answer{leave, o.w.generation}
}

// said is the last answer about the segment.
func (o *Oracle) said(action tier.Action, id tier.LogID, base tier.Offset) answer {
	return o.answers[question{action, id, base}]
}

// Observe sets an oracle over the world. It must come before the owner of the logs writes anything.
func (w *World) Observe() *Oracle {
	w.oracle = &Oracle{w: w, floor: map[tier.LogID]tier.Offset{},
		away: map[tier.LogID]tier.RangeSet{}, onRecord: map[tier.AttemptID]bool{},
		served:     map[tier.AttemptID]bool{},
		windows:    map[string]tier.Time{},
		given:      map[tier.LossAccepted]bool{},
		hearing:    hearing{of: map[uint64]*removal{}, told: map[uint64]bool{}},
		objections: map[uint64]string{}, answers: map[question]answer{}, untold: map[uint64]bool{},
		keeps:  map[tier.LogID]map[tier.Offset]bool{},
		leave:  map[string]bool{},
		owned:  map[string]bool{},
		fence:  fence{epochs: map[string]tier.TierEpoch{}, known: map[tier.AttemptID]bool{}},
		starts: map[tier.LogID]tier.Offset{}, fresh: map[tier.LogID]tier.TierEpoch{},
		epochs: map[tier.LogID]tier.TierEpoch{}, clipped: map[tier.LogID]tier.Position{}}
	return w.oracle
}

// Violations are the promises broken so far, in order.
func (o *Oracle) Violations() []Violation { return o.violations }

// violateAt is violate for a promise about one segment.
func (o *Oracle) violateAt(p Property, id tier.LogID, base tier.Offset, format string,
	args ...any) {
	o.violate(p, format, args...)
	o.violations[len(o.violations)-1].Segment = fmt.Sprintf("%s@%d", id, base)
}

func (o *Oracle) violate(p Property, format string, args ...any) {
	o.violations = append(o.violations, Violation{Property: p, Text: fmt.Sprintf(format, args...)})
}

func (o *Oracle) record(id tier.LogID) *logRecord {
	i, found := slices.BinarySearchFunc(o.logs, id, func(l *logRecord, id tier.LogID) int {
		return l.id.Compare(id)
	})
	if !found {
		o.logs = slices.Insert(o.logs, i, &logRecord{id: id, cutAt: math.MaxInt64})
	}
	return o.logs[i]
}

func (l *logRecord) segment(base tier.Offset) *segmentRecord {
	for _, s := range l.segments {
		if s.Base == base {
			return s
		}
	}
	return nil
}

// wrote notes what the owner wrote. A new segment closes those before it.
func (o *Oracle) wrote(id tier.LogID, base tier.Offset, name string, data []byte) {
	o.changed = true
	l := o.record(id)
	s := l.segment(base)
	if s == nil {
		s = &segmentRecord{Range: tier.Range{Base: base}}
		if n := len(l.segments); n > 0 {
			last := l.segments[n-1]
			if last.Base > base {
				panic(fmt.Sprintf("sim: segment %d of %s is written after %d", base, id, last.Base))
			}
			last.Next, last.closed = base, true
		}
		l.segments = append(l.segments, s)
	}
	_, records := baseOf(name)
	if records {
		o.rewritten(id, s)
	}
	if records && s.removed {
		s.removed = false
		for i := range s.files {
			s.files[i].gone = true // but for what is written now
		}
	}
	data = bytes.Clone(data)
	at := o.w.Now // what is put back is as old as it ever was
	for _, other := range append(slices.Clone(l.dead), s) {
		for i := range other.files {
			if f := &other.files[i]; other.Base == base && f.name == name {
				at = min(at, o.firstWritten(f, data))
			}
		}
	}
	for i := range s.files {
		if f := &s.files[i]; f.name == name {
			f.gone = false
			f.versions = append(f.versions, version{data: data, at: at})
			return
		}
	}
	s.files = append(s.files, fileRecord{name: name, records: records,
		versions: []version{{data: data, at: at}}})
}

// firstWritten is when the content was in the file for the first time.
func (o *Oracle) firstWritten(f *fileRecord, data []byte) tier.Time {
	at := tier.Time(math.MaxInt64)
	for _, v := range f.versions {
		if bytes.Equal(v.data, data) {
			at = min(at, v.at)
		}
	}
	return at
}

func (o *Oracle) removed(id tier.LogID, base tier.Offset) {
	o.changed = true
	if s := o.record(id).segment(base); s != nil {
		s.removed = true
	}
	o.cannotTell(func(in *intent) bool { return in.is(id, base) })
}

// cannotTell notes that nobody can tell any more how the open local deletions end that are meant.
func (o *Oracle) cannotTell(meant func(*intent) bool) {
	for _, in := range o.w.intents() {
		if in.outcome == "" && in.action == tier.DeleteLocal && meant(in) {
			o.untold[in.seq] = true
		}
	}
}

// oldestRemoved is the oldest segment that the owner of the log removed and did not bring back.
func (o *Oracle) oldestRemoved(id tier.LogID) (base tier.Offset, ok bool) {
	for _, s := range o.record(id).segments {
		if s.removed && s.closed {
			return s.Base, true
		}
	}
	return 0, false
}

// lost notes that the store lost an object by itself.
func (o *Oracle) lost(key string) {
	o.changed = true
	keys, err := objstore.NewKeys(strings.SplitN(key, "/", 2)[0])
	must(err)
	k, err := keys.Parse(key)
	must(err)
	o.lostKeys = append(o.lostKeys, k)
}

// rewritten notes that the segment is on disk again, if it was away.
func (o *Oracle) rewritten(id tier.LogID, s *segmentRecord) {
	if s.closed {
		o.comeBack(id, s.Range)
	}
	for i := range o.deletions {
		if d := &o.deletions[i]; d.log == id && d.base == s.Base {
			d.renewed = true
		}
	}
}

// resumed notes that an operator let a table go on with a new window, if that is durable: whatever
// the process was told became of its record.
func (o *Oracle) resumed(table string, at tier.Time) {
	ledger, err := o.w.ledgerNow()
	if err != nil || ledger.table(table).Window != (tier.BrakeWindow{Since: at}) {
		return
	}
	o.windows[table] = at
	for i := range o.deletions {
		if o.deletions[i].log.Table == table {
			o.deletions[i].forgiven = true
		}
	}
}

// crashed notes what a crash undid: a deletion whose file is in its place again never happened, and
// what becomes of the file from here on is another matter.
func (o *Oracle) crashed() {
	back := map[uint64]bool{}
	for _, l := range o.logs {
		for _, x := range o.w.files(l.id) {
			back[x.stat.Inode] = back[x.stat.Inode] || x.place != dead
		}
	}
	o.deletions = slices.DeleteFunc(o.deletions, func(d deletion) bool { return back[d.inode] })
}

// tick notes the time. A clock that goes back begins new windows.
func (o *Oracle) tick() {
	if o.w.Now < o.clock {
		for i := range o.deletions {
			o.deletions[i].forgiven = true
		}
		// What begins from here on may be over before the next look.
		maps.DeleteFunc(o.windows, func(_ string, since tier.Time) bool { return o.w.Now < since })
	}
	o.clock = o.w.Now
	if !o.w.astray() {
		o.tolerated = o.w.passed
	}
}

// knows returns the last version of the file with the content; nil if its owner never wrote it.
func (o *Oracle) knows(f fileName, data []byte) *version {
	l := o.record(f.log)
	if s := l.segment(f.base); s != nil {
		if v := s.knows(f, data); v != nil {
			return v
		}
	}
	for _, s := range slices.Backward(l.dead) {
		if v := s.knows(f, data); v != nil && s.Base == f.base {
			return v
		}
	}
	return nil
}

func (s *segmentRecord) knows(f fileName, data []byte) *version {
	for i := range s.files {
		if s.files[i].name != f.name {
			continue
		}
		versions := s.files[i].versions
		for i := len(versions) - 1; i >= 0; i-- {
			if bytes.Equal(versions[i].data, data) {
				return &versions[i] // which is never changed
			}
		}
	}
	return nil
}

// see judges an operation that is about to happen.
func (o *Oracle) see(p Point) {
	o.changed = true
	o.tick()
	o.inTime = o.inTime || p.Place == InLedger && !o.longAstray()
	if p.Place == InLedger || o.blind {
		return // the medium must not be looked at within a commit; it is judged after
	}
	o.w.acting = false
	defer func() { o.w.acting = true }()
	if p.Place == InStore {
		o.seeStore(p)
	} else if within(p.Name, sourceDir) {
		o.seeDisk(p)
	}
}

// rest judges the world between two effects.
func (o *Oracle) rest() {
	if o.w.stopped {
		return // the disk is gone until the machine is back
	}
	o.tick()
	o.contained()
	if !o.changed || o.blind {
		return
	}
	o.changed = false
	defer func() { o.inTime = false }()
	ledger, err := o.w.ledgerNow()
	if err != nil {
		o.violate(Recovered, "the ledger cannot be opened: %v", err)
		return
	}
	store := o.w.storeNow(ledger.id)
	o.owns(ledger)
	o.allowed(ledger)
	for _, l := range ledger.logs {
		o.ungoverned(l)
		o.note(l, ledger.table(l.state.Log.Table))
	}
	if !o.old {
		o.named(ledger, store)
	}
	o.heardOf(store)
	o.behind(ledger)
	o.fences(ledger)
	for _, l := range ledger.logs {
		t := ledger.table(l.state.Log.Table)
		o.givenUpAll(l)
		o.started(l, t)
		o.monotone(l)
		if !o.old { // an old one counts what has expired since
			o.sound(l, t, store)
		}
	}
	for _, l := range o.logs {
		files := o.w.files(l.id)
		known, t := ledger.log(l.id), ledger.table(l.id.Table)
		o.kept(l, files, store)
		o.begun(l, files, known)
		if !o.old && t.State == tier.Enabled && known != nil && known.state.Epoch == t.Epoch {
			o.noGap(l, files, known, false)
		}
	}
	o.counted(ledger)
}
