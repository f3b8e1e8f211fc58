package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim/choose"
)

// act is one thing that a step can do.
type act struct {
	kind, name string
	weight     int // among those of its kind
	do         func()
}

// acts are all that may happen in the history, in a fixed order.
func (h *play) acts() []act {
	return slices.Concat(h.ownerActs(), h.processActs(), h.timeActs(), h.operatorActs(),
		h.settingsActs(), h.clockActs(), h.storeActs(), h.diskActs(), h.stopActs(),
		h.overlapActs(), h.factsActs(), h.readerActs(), h.decayActs(),
		h.ledgerActs(), h.rotActs(), h.dropActs(), h.lossActs())
}

func (h *play) log() tier.LogID {
	names := h.p.logNames()
	return h.p.Logs[choose.Pick(h.c, "log", names, nil)]
}

// segment chooses one that is on disk, and not the active one; ok is false if there is none.
func (h *play) segment() (id tier.LogID, base tier.Offset, ok bool) {
	id = h.log()
	bases, err := h.w.Bases(id)
	must(err)
	if len(bases) < 2 {
		return id, 0, false
	}
	return id, bases[choose.Number(h.c, "segment", 0, len(bases)-2)], true
}

func (h *play) ownerActs() []act {
	if h.broker != nil {
		return h.leaderActs()
	}
	return []act{
		{kindOwner, "rolls", 8, func() {
			id := h.log()
			must(h.w.Append(id, choose.Number(h.c, "segments", 1, 3)))
			h.line(LaneDisk, "%s rolls", id)
		}},
		{kindOwner, "writes a second file", 1, func() {
			if id, base, ok := h.segment(); ok {
				must(h.w.WriteCompanion(id, base, fmt.Appendf(nil, "%s %d", id, base)))
			}
		}},
		{kindOwner, "removes a segment", 1, func() {
			if id, base, ok := h.segment(); ok {
				must(h.w.Remove(id, base))
				h.line(LaneDisk, "%s loses its segment %d by its owner's hand", id, base)
			}
		}},
		{kindOwner, "drops the head", 1, func() {
			id := h.log()
			bases, err := h.w.Bases(id)
			must(err)
			for i, n := 0, choose.Number(h.c, "segments", 1, 2); i < n && i < len(bases)-1; i++ {
				must(h.w.Remove(id, bases[i]))
				h.line(LaneDisk, "%s loses its segment %d by its owner's hand", id, bases[i])
			}
		}},
		{kindOwner, "brings a segment back", 1, func() {
			id := h.log()
			if base, ok := h.o.oldestRemoved(id); ok {
				must(h.w.Write(id, base, Content(id, base, 1)))
				h.line(LaneDisk, "%s has its segment %d again", id, base)
			}
		}},
		{kindOwner, "rewrites a segment", 2, func() {
			if id, base, ok := h.segment(); ok {
				h.w.Advance(time.Millisecond)
				version := choose.Number(h.c, "version", 1, 3)
				must(h.w.Write(id, base, Content(id, base, version)))
				h.line(LaneDisk, "%s has version %d of its segment %d", id, version, base)
			}
		}},
		{kindOwner, "appends to a closed segment", 1, func() {
			if id, base, ok := h.segment(); ok {
				h.w.Advance(time.Millisecond)
				must(h.w.Grow(id, base, []byte("more\n")))
				h.line(LaneDisk, "%s appends to its segment %d, which is closed", id, base)
			}
		}},
		{kindOwner, "loses its mount", 1, func() { must(h.w.Vanish()) }},
		{kindOwner, "has its mount", 2, func() { must(h.w.Return()) }},
	}
}

func (h *play) processActs() []act {
	return []act{
		{kindProcess, "scans", 3, func() { h.alive(h.scan()) }},
		{kindProcess, "performs one effect", 5, func() {
			if n := len(h.w.Queued()); n > 0 {
				h.alive(h.w.Perform(choose.Number(h.c, "effect", 0, n-1)))
			}
		}},
		{kindProcess, "runs", 4, func() { h.alive(h.w.Run()) }},
	}
}

func (h *play) scan() error {
	_, err := h.w.Scan()
	if err == nil {
		h.w.step(engine.Tick{})
	}
	return err
}

func (h *play) timeActs() []act {
	spans := h.opts.Bounds.apart(h.p.spans())
	names := make([]string, len(spans))
	for i, s := range spans {
		names[i] = s.name
	}
	wait := func() {
		s := spans[choose.Pick(h.c, "time", names, nil)]
		h.line(LaneClock, "it is later by %s", s.name)
		h.alive(h.w.Elapse(h.left(s.long) + time.Second))
	}
	return []act{
		{kindTime, "passes", 2, wait},
		{kindTime, "passes, and the process runs", 3, func() {
			wait()
			h.alive(h.w.Run())
		}},
	}
}

func (h *play) operatorActs() []act {
	return []act{
		{kindOperator, "pauses, or lets go on", 1, h.pauseOrGoOn},
		{kindOperator, "resumes a table", 2, func() { h.resume(h.log().Table) }},
		{kindOperator, "accepts the clock", 1, func() { h.acceptClock() }},
		{kindOperator, "reloads", 1, func() { _ = h.reload() }},
	}
}

func (h *play) pauseOrGoOn() {
	h.w.SetPaused(!h.w.Paused)
	h.line(LanePolicy, "the pause file is there: %t", h.w.Paused)
}

func (h *play) acceptClock() {
	if err := h.w.AcceptClock(); err != nil && !errors.Is(err, tier.ErrRefused) {
		h.alive(err)
	}
	h.line(LaneClock, "an operator accepts the clock")
}

func (h *play) clockActs() []act {
	return []act{
		{kindClock, "goes back", 2, func() {
			s := choose.Number(h.c, "seconds", 1, 5000)
			h.situationsClockBack()
			h.w.Advance(-time.Duration(s) * time.Second)
			h.line(LaneClock, "goes back by %d seconds", s)
		}},
		{kindClock, "goes back, and the store's does not", 1, func() {
			s := choose.Number(h.c, "seconds", 1, 5000)
			h.situationsClockBack()
			h.w.Advance(-time.Duration(s) * time.Second)
			h.w.Skew += time.Duration(s) * time.Second
			h.line(LaneClock, "goes back by %d seconds, and the store's does not", s)
		}},
		{kindClock, "leaps", 1, func() {
			h.w.Advance(100 * time.Hour)
			h.line(LaneClock, "leaps by 100 hours")
		}},
		{kindClock, "leaps far", 1, func() {
			h.w.Advance(40 * 24 * time.Hour)
			h.line(LaneClock, "leaps by 40 days")
		}},
		{kindClock, "of the store goes astray, or back", 2, func() {
			skews := []time.Duration{0, -3 * time.Hour, 3 * time.Hour, 20 * time.Second}
			names := []string{"0", "3 hours behind", "3 hours ahead", "20 seconds ahead"}
			i := choose.Pick(h.c, "the store's clock", names, nil)
			h.w.Skew = skews[i]
			h.line(LaneClock, "the store's clock: %s", names[i])
		}},
		{kindClock, "is set by NTP", 1, func() {
			if h.w.Skew < 0 {
				h.situationsClockBack()
			}
			h.sets("is set by NTP")
		}},
	}
}

func (h *play) stopActs() []act {
	return []act{
		{kindStop, "now", 1, func() { h.crashed() }},
		{kindStop, "later", 2, h.stopsLater},
		{kindStop, "cleanly", 2, h.stopsCleanly},
		{kindStop, "in the next effect of a kind", 4, func() { h.inEffect(StopBefore) }},
		{kindStop, "at a moment", 6, func() {
			names := make([]string, len(moments))
			for i, m := range moments {
				names[i] = m.name
			}
			h.moment = choose.Pick(h.c, "moment", names, momentWeights)
		}},
		{kindStop, "in the recovery", 1, func() {
			h.inRecovery = h.stopsLater
			h.crashed()
		}},
	}
}

// stopsLater arms a stop at one of the next operations.
func (h *play) stopsLater() {
	h.disk = choose.Number(h.c, "operations before", 1, 40)
	h.fate = StopBefore
	if choose.Yes(h.c, "after the operation") {
		h.fate = StopAfter
	}
}

// inEffect arms what happens in the middle of the next effect of a kind.
func (h *play) inEffect(fate Fate) {
	h.stopIn = effectKinds[choose.Pick(h.c, "effect", effectKinds, effectWeights)]
	most := 50
	if h.stopIn == "ChangeTier" || h.stopIn == "OpenEpoch" {
		most = 1 // it is one commit
	}
	h.stopAfter, h.stopFate = choose.Number(h.c, "operations before", 1, most), fate
}

// effectKinds are those in the middle of which a process is stopped.
var effectKinds = []string{"Copy", "Delete", "Expire", "Remove", "ChangeTier", "MoveStart",
	"OpenEpoch", "Resolve", "RecordHole", "Clear"}

// effectWeights say how often chance takes each: those that are rare themselves, and short, often.
var effectWeights = []int{2, 5, 1, 1, 6, 1, 1, 1, 1, 1}

// overlapActs let something happen in the middle of an effect, while it asks the store: as workers
// do, and as callers do that wait no more.
func (h *play) overlapActs() []act {
	arm := func(meet func()) func() {
		return func() {
			h.inside = choose.Number(h.c, "calls of the store before", 1, 12)
			h.meet = meet
		}
	}
	owner := h.ownerBetween
	if h.broker != nil {
		owner = h.leaderBetween
	}
	// What ends the process in the middle is found when the effect around it has ended.
	acts := []act{
		{kindOverlap, "with its owner", 2, owner},
		{kindOverlap, "with a pause", 1, func() {
			h.brake = choose.Number(h.c, "operations on the audit log before", 1, 8)
		}},
		{kindOverlap, "with a segment that rots", 2, func() {
			h.deed = h.rots()
			if h.aside = 0; h.deed != nil {
				h.aside = choose.Number(h.c, "operations before", 1, 40)
			}
		}},
		{kindOverlap, "with a scan", 1, arm(func() { _ = h.scan() })},
		{kindOverlap, "with a run", 1, arm(func() { _ = h.w.Run() })},
		{kindOverlap, "and is given up", 1, arm(func() { h.w.GiveUp() })},
		{kindOverlap, "and is given up, and looked at", 1, arm(func() {
			h.w.GiveUp()
			h.w.Advance(time.Minute)
			_ = h.w.Run()
		})},
		{kindOverlap, "with another effect", 1, arm(func() {
			if len(h.w.Queued()) > 0 {
				_ = h.w.Perform(0)
			}
		})},
	}
	if h.p.Unsettled {
		acts = append(acts, act{kindOverlap, "with a reload that turns tiering off", 1, arm(func() {
			off := false
			h.tries(func() { h.over.tiering = &off })
			_ = h.w.Run()
		})})
	}
	return acts
}

func (h *play) ownerBetween() {
	id, i := h.log(), choose.Number(h.c, "segment", 0, 3)
	version := choose.Number(h.c, "version; 0 for one more segment", 0, 3)
	h.aside = choose.Number(h.c, "operations before", 1, 40)
	h.deed = func() {
		bases, err := h.w.Bases(id)
		must(err)
		h.w.Advance(time.Millisecond)
		if version == 0 {
			must(h.w.Append(id, 1))
		} else if i < len(bases)-1 {
			must(h.w.Write(id, bases[i], Content(id, bases[i], version)))
		}
		h.line(LaneDisk, "its owner comes in between: %s", id)
	}
}

func (h *play) factsActs() []act {
	var out []act
	if h.p.UserPolicies {
		out = append(out, act{kindFacts, "the disk fills, or empties", 2, func() {
			free := []int64{90, 50, 5}[choose.Number(h.c, "per cent free; 90, 50 or 5", 0, 2)]
			choose.Say(h.c, fmt.Sprint(free))
			h.setDisk(free)
			_ = h.reload()
			h.line(LanePolicy, "the disk has %d %% free", free)
		}})
	}
	names := h.p.factNames()
	if len(names) > 0 {
		out = append(out, act{kindFacts, "one is not known, or known again", 2, func() {
			name := names[choose.Pick(h.c, "fact", names, nil)]
			h.unknown[name] = !h.unknown[name]
			h.w.step(h.w.reconfigured())
			h.line(LanePolicy, "the fact %s is known: %t", name, !h.unknown[name])
		}})
	}
	return out
}

func (h *play) storeActs() []act {
	arm := func(faults []storeFault) func() {
		names := make([]string, len(faults))
		for i, f := range faults {
			names[i] = string(f.kind) + " " + f.name
		}
		return func() {
			f := faults[choose.Pick(h.c, "fault", names, nil)]
			f.key = choose.Among(h.c, "of", []string{"", ".log", "manifest"})
			h.store = append(h.store, f)
		}
	}
	return []act{
		{kindStore, "fails an upload", 3, arm(uploadFaults)},
		{kindStore, "fails a read", 3, arm(readFaults)},
		{kindStore, "fails a deletion", 1, arm(deleteFaults)},
		{kindStore, "fails a listing", 1, arm(listFaults)},
		{kindStore, "lags with its listings from now on", 1, func() { h.lag = true }},
		{kindStore, "lands what is late", 3, func() {
			h.lands(func(l fault.Late) bool { return !l.Again })
		}},
		{kindStore, "answers 429 and 503 from now on", 1, func() { h.storm = true }},
		{kindStore, "works again", 2, func() {
			h.storeWorks()
		}},
		{kindStore, "does something twice", 2, arm(twiceFaults)},
		{kindStore, "does everything twice from now on", 1, func() { h.twice = true }},
		{kindStore, "does again what it did", 3, h.landsAgain},
	}
}

func (a *storeFault) fits(op fault.Op) bool {
	return a.kind == op.Kind && strings.Contains(op.Key, a.key)
}
