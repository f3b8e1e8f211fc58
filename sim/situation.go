package sim

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Situation is one that a run of histories must have met: a promise that was never in danger was
// not tested.
type Situation int

// The situations, in the order of Situations.
const (
	LocalDeletion Situation = iota
	RemoteExpiry
	CrashPutRecord
	CrashRecordAudit
	CrashAuditDrop
	CrashInRecovery
	TimeOutWithEffect
	DenialAlone
	ClockBackPending
	LateOldEpoch
	AllExpiredRestart
	CrashDisabling
	CrashDisabled
	CrashDisabledDelete
	CrashEnabled
	Divergence
	PluginTrap
	OldLedger
	LostCommits
	LostLedger
	TwiceAfterRemoval
	DriftedApart
	LossAccepted
	EntryGone
	Dropped
	SaidAgain
	situationsMax
)

// situationNames say what was met, for people.
var situationNames = [situationsMax]string{
	LocalDeletion:       "a local segment is deleted",
	RemoteExpiry:        "a remote segment expires",
	CrashPutRecord:      "a crash between the upload and its record",
	CrashRecordAudit:    "a crash between the record of a deletion and its audit outcome",
	CrashAuditDrop:      "a crash between the announcement of a deletion and the drop",
	CrashInRecovery:     "a crash in a recovery",
	TimeOutWithEffect:   "a time-out that had its effect",
	DenialAlone:         "a denial that alone prevented a deletion",
	ClockBackPending:    "the clock goes back with a deletion pending",
	LateOldEpoch:        "a late completion of an old tier epoch",
	AllExpiredRestart:   "everything remote expired, then a restart",
	CrashDisabling:      "a crash while a table becomes DISABLING",
	CrashDisabled:       "a crash while a table becomes DISABLED",
	CrashDisabledDelete: "a crash while a DISABLED table goes through DISABLING again",
	CrashEnabled:        "a crash while a table becomes ENABLED again",
	Divergence:          "a leader change cuts off what was copied",
	PluginTrap:          "a plugin traps while something could be deleted",
	OldLedger:           "an old ledger is put back",
	LossAccepted:        "the loss of a damaged segment is accepted",
	EntryGone:           "the entry of a table goes away with something due",
	Dropped:             "a table is dropped",
	LostCommits:         "commits of the ledger are lost that were said to be durable",
	LostLedger:          "the ledger is lost, and made anew",
	TwiceAfterRemoval:   "an upload takes effect once more after its object was removed",
	SaidAgain:           "what the store lost of a manifest is said again",
	DriftedApart:        "something is not removed since the clocks have drifted apart",
}

// String is the situation in words.
func (s Situation) String() string { return situationNames[s] }

// Situations are all of them.
func Situations() []Situation {
	out := make([]Situation, situationsMax)
	for s := range situationsMax {
		out[s] = s
	}
	return out
}

// NotApplicable says why no history of the project can meet the situation; "" where histories must.
func (p *Project) NotApplicable(s Situation) string {
	kafka := p.Config.Layout == tier.LayoutKafka
	if !p.Unsettled && !p.tiers() && slices.Contains(ofCopies, s) {
		return "no table tiers, so that nothing is copied"
	}
	switch s {
	case LocalDeletion, CrashRecordAudit, CrashAuditDrop:
		if p.Config.Delete != tier.LocalDeleteUnlink {
			return "no source deletes local segments"
		}
	case RemoteExpiry, AllExpiredRestart, TwiceAfterRemoval:
		if !p.Unsettled && !p.expires() {
			return "no limit and no policy lets a remote segment go"
		}
	case DriftedApart:
		switch {
		case p.Config.MaxClockStep == 0:
			return "there is only one clock"
		case !p.Unsettled && !p.expires():
			return "no limit and no policy lets a remote segment go"
		}
	case DenialAlone:
		if !p.Unsettled && !p.denies() {
			return "no rule denies"
		}
	case LateOldEpoch, EntryGone, Dropped, CrashDisabling, CrashDisabled, CrashDisabledDelete,
		CrashEnabled:
		if !p.Unsettled {
			return "settings stay as they are in the configuration"
		}
	case Divergence:
		if !kafka {
			return "directories of plain files have no leaders"
		}
	case LossAccepted:
		if !kafka {
			return "nothing tells that a plain file is damaged"
		}
	case PluginTrap:
		if p.wild == nil {
			return "the plugins are those of the configuration, and run as they are"
		}
	case OldLedger, LostCommits, LostLedger:
		if kafka {
			return "a lost ledger is simulated with plain files"
		}
	}
	return ""
}

// ofCopies are the situations that no history without a copy meets.
var ofCopies = []Situation{RemoteExpiry, CrashPutRecord, AllExpiredRestart, TwiceAfterRemoval,
	Divergence, LossAccepted}

// tiers reports whether some table does.
func (p *Project) tiers() bool {
	return slices.ContainsFunc(p.tables(), func(name string) bool {
		t, _ := p.Config.Tables(name)
		return t.Tiering
	})
}

// expires reports whether some limit or policy lets remote segments go.
func (p *Project) expires() bool {
	return p.Config.Policies.ExpiresRemote() ||
		slices.ContainsFunc(p.tables(), func(name string) bool {
			t, _ := p.Config.Tables(name)
			return t.TTL > 0 || t.Bytes.Set
		})
}

// denies reports whether some user policy may deny.
func (p *Project) denies() bool {
	for _, r := range p.Config.Policies.Rules() {
		if r.Answer == "deny" {
			return true
		}
	}
	return false
}

func (h *play) met(s Situation) { h.out.Met[s]++ }

// progress is how far the effect under way has come.
type progress struct {
	put, intended, moved bool
	recorded             int
}

func (h *play) progress() (out progress) {
	for _, p := range h.recent {
		switch {
		case p.Place == InStore && p.Kind == string(fault.OpUpload):
			out.put = true
		case p.Place == InLedger:
			out.recorded++
		case p.Place == OnDisk && within(p.Name, auditDir) && vfs.OpKind(p.Kind) == vfs.OpSync:
			out.intended = true
		case p.Place == OnDisk && vfs.OpKind(p.Kind) == vfs.OpRename:
			out.moved = true
		}
	}
	return out
}

// situationsAtStop looks at what was under way when the process stopped.
func (h *play) situationsAtStop() {
	if h.start {
		h.met(CrashInRecovery)
	}
	at := h.progress()
	switch f := h.effect.(type) {
	case engine.Copy:
		if at.put && at.recorded == 1 {
			h.met(CrashPutRecord)
		}
	case engine.Delete:
		if at.intended && !at.moved {
			h.met(CrashAuditDrop)
		}
		if at.moved && at.recorded > 0 {
			h.met(CrashRecordAudit)
		}
	case engine.ChangeTier:
		h.metChange(f)
	}
}

// moments are those between two operations at which a process is stopped on purpose, since chance
// alone hardly ever hits them.
var moments = []struct {
	name string
	is   func(h *play, p Point) bool
}{
	{"between an upload and its record", func(h *play, p Point) bool {
		at, copies := h.progress(), false
		if h.effect != nil {
			_, copies = h.effect.(engine.Copy)
		}
		return copies && at.put && at.recorded == 1 && p.Place == InLedger
	}},
	{"between the record of a deletion and its audit outcome", func(h *play, p Point) bool {
		at := h.progress()
		return h.deletes() && at.moved && at.recorded > 0 && announces(p)
	}},
	{"between the announcement of a deletion and the drop", func(h *play, p Point) bool {
		at := h.progress()
		return h.deletes() && at.intended && !at.moved && vfs.OpKind(p.Kind) == vfs.OpRename
	}},
	{"while a table becomes DISABLED", func(h *play, p Point) bool {
		f, ok := h.effect.(engine.ChangeTier)
		return ok && f.State == tier.Disabled && p.Place == InLedger
	}},
	{"while a DISABLED table goes through DISABLING again", func(h *play, p Point) bool {
		f, ok := h.effect.(engine.ChangeTier)
		return ok && f.State == tier.Disabling && p.Place == InLedger && h.started(f.Table, tier.Disabled)
	}},
	{"while a table becomes ENABLED again", func(h *play, p Point) bool {
		f, ok := h.effect.(engine.ChangeTier)
		return ok && f.State == tier.Enabled && p.Place == InLedger
	}},
}

// momentWeights say how often chance waits for each: long for what takes a chain of events.
var momentWeights = []int{1, 1, 1, 1, 4, 2}

func (h *play) deletes() bool {
	_, ok := h.effect.(engine.Delete)
	return ok
}

// started reports whether the table was in the state when the effect under way began.
func (h *play) started(table string, s tier.TierState) bool {
	return h.w.process.ledger.Table(table).State == s
}

// awaited reports whether the moment has come at which the process is to be stopped.
func (h *play) awaited(p Point) bool {
	if h.moment < 0 || !moments[h.moment].is(h, p) {
		return false
	}
	h.moment = -1
	return true
}

func (h *play) metChange(f engine.ChangeTier) {
	before := h.w.process.ledger.Table(f.Table).State
	switch {
	case f.State == tier.Disabling && before == tier.Disabled:
		h.met(CrashDisabledDelete)
	case f.State == tier.Disabling:
		h.met(CrashDisabling)
	case f.State == tier.Disabled:
		h.met(CrashDisabled)
	case f.State == tier.Enabled:
		h.met(CrashEnabled)
	}
}

// situationsAtStart looks at what a new process found.
func (h *play) situationsAtStart() {
	ledger := h.w.process.ledger
	for _, id := range ledger.Logs() {
		s, ok := ledger.Log(id)
		v, _ := h.w.process.engine.Log(id)
		if ok && s.Copied > s.Start && len(s.Expired) > 0 && v.Remote.Segments == 0 {
			h.met(AllExpiredRestart)
		}
	}
}

// situationsAnswered looks at what plugins answered.
func (h *play) situationsAnswered(faults []plugin.Fault) {
	trap := slices.ContainsFunc(faults, func(f plugin.Fault) bool {
		return f.Kind == plugin.FaultTrap
	})
	e := h.w.process.engine
	if trap && slices.ContainsFunc(e.Logs(), func(id tier.LogID) bool {
		return len(e.Deletable(id, false)) > 0
	}) {
		h.met(PluginTrap)
	}
}

// situationsAfter looks at an effect that has ended.
func (h *play) situationsAfter(f engine.Effect, r engine.Result) {
	switch r := r.(type) {
	case engine.Deleted:
		if len(r.Gone) > 0 {
			h.met(LocalDeletion)
		}
	case engine.Diverged:
		h.met(Divergence)
	case engine.Moved:
		if r.Cause == tier.MoveExpired && len(r.Expired) > 0 {
			h.met(RemoteExpiry)
		}
	}
	if c, ok := f.(engine.Copy); ok && c.Epoch < h.w.process.ledger.Table(c.Log.Table).Epoch {
		h.met(LateOldEpoch)
	}
}

// due reports whether something of the table waits to be done.
func (h *play) due(table string) bool {
	return slices.ContainsFunc(h.w.Queued(), func(f engine.Effect) bool {
		s := subject(f)
		return s == table || strings.HasPrefix(s, table+"/")
	})
}

// situationsClockBack looks whether a deletion is pending while the clock goes back.
func (h *play) situationsClockBack() {
	for _, f := range h.w.Queued() {
		switch f.(type) {
		case engine.Delete, engine.Expire, engine.Remove:
			h.met(ClockBackPending)
			return
		}
	}
}

// asked is told what the policies said.
func (h *play) asked(f *gate.Facts, e rego.Evaluation, err error) {
	h.out.Decisions++
	h.mix(string(f.Action), f.Log.ID.String(), e.Digest, word(e.Delete))
	denied, expired := false, false
	fired := map[string]bool{}
	for _, r := range e.Fired {
		fired[r.Rule] = true
		denied = denied || r.Answer == "deny"
		expired = expired || strings.HasPrefix(r.Answer, "expire")
	}
	if err == nil && denied && expired {
		h.met(DenialAlone)
	}
	if h.w.Config.Policies == h.p.Config.Policies && err == nil {
		for i, r := range h.rules {
			if !r.Counts(f.Action) {
				continue
			}
			if fired[r.Where] {
				h.out.Rules[i].True++
			} else {
				h.out.Rules[i].False++
			}
		}
	}
	h.decided(f, e)
	if h.opts.asked != nil {
		h.opts.asked(f, e)
	}
	if h.opts.Trace {
		h.line(LanePolicy, "%s", verdict(f, e, err))
	}
}

func word(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// verdict is a decision in words.
func verdict(f *gate.Facts, e rego.Evaluation, err error) string {
	answer := "keep"
	if e.Delete {
		answer = "delete"
	}
	if err != nil {
		answer = "keep: " + err.Error()
	}
	text := string(f.Action) + " of " + f.Log.ID.String() + " " + f.Seg.Range.String() + ": " + answer
	for i, r := range e.Reasons {
		if i == 3 {
			return text + "; and more"
		}
		text += "; " + r.Text
		if r.Rule != "" {
			text += " (" + path.Join(path.Base(path.Dir(r.Rule)), path.Base(r.Rule)) + ")"
		}
	}
	return text
}

// decided notes which rule decided about a segment last. What let it go counts for more than what
// kept it at another time.
func (h *play) decided(f *gate.Facts, e rego.Evaluation) {
	if h.opts.search != nil {
		return // a failure's own history is made without one
	}
	for _, r := range e.Reasons {
		if r.Rule == "" {
			continue
		}
		if h.out.deciders == nil {
			h.out.deciders = map[deletionOf]Decided{}
		}
		segment := fmt.Sprintf("%s@%d", f.Log.ID, f.Seg.Range.Base)
		for _, key := range []deletionOf{{segment, f.Action}, {segment, ""}} {
			if _, known := h.out.deciders[key]; e.Delete || !known {
				h.out.deciders[key] = Decided{f.Action, r.Rule, r.Text}
			}
		}
		return
	}
}

// deletionOf is what policies were asked about: a segment, and an action, "" for any.
type deletionOf struct {
	segment string
	action  tier.Action
}

// Decided is what the policies said of a segment last, or, where a property of the user's judged
// one deletion of it, what they said of that.
type Decided struct {
	Action tier.Action
	Rule   string // file:line; "" where none was asked
	Text   string // its reason
}

// Decided is what was said of the segment of the violation.
func (o *Outcome) Decided() Decided {
	if o.Violation == nil {
		return Decided{}
	}
	return o.deciders[deletionOf{o.Violation.Segment, o.Violation.Action}]
}
