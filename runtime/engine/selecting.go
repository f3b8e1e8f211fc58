package engine

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// selectMax bounds the segments of one Select, but where one log alone has more; selectLogMax
// bounds those of one log.
const (
	selectMax    = 10_000
	selectLogMax = 4_096
)

// selectPause is how many times as long as plugins took for a round is waited before the next one,
// so that they take a tenth of one processor at most.
const selectPause = 9

// Select asks the plugins which segments should be copied first, and which be held back from
// copying or kept on local disk. Nothing is done. It has no durable sub-steps.
type Select struct {
	ID         EffectID
	Generation uint64
	Logs       []SelectLog
}

// SelectLog is one log that has something to copy or to delete locally.
type SelectLog struct {
	Log        tier.LogID
	Source     string
	State      tier.TierState // of its table
	LocalBytes int64
	// Segments are the closed local ones, ascending: also those with which nothing is to be done
	// now, since a plugin that keeps the newest ones has to see them. Of a very long log those in
	// the middle are left out.
	Segments []SelectSegment
}

// SelectSegment is one closed local segment.
type SelectSegment struct {
	tier.Range
	Bytes    int64
	MaxTime  tier.Time // largest record timestamp; absent if none is usable
	Birth    tier.Time // from which its age counts
	Remote   bool      // a copy of it is in the store
	Copied   bool      // every offset lies below the copied offset
	Verified bool      // that copy was verified
}

// EffectID implements Effect.
func (f Select) EffectID() EffectID { return f.ID }

// rows is the number of segments.
func (f Select) rows() int {
	n := 0
	for i := range f.Logs {
		n += len(f.Logs[i].Segments)
	}
	return n
}

// Selected completes Select. Row r is the r-th segment, counted over all logs. There is no way to
// say in it that something may be copied or deleted that might not be without it.
type Selected struct {
	Plugins []string // in configured order, at most 16
	// Scores of row r are those from r*len(Plugins) on, one of each plugin: the highest goes first.
	Scores []int64
	Holds  []uint16 // by row: bit k is set where plugin k asks not to copy it yet
	Keeps  []uint16 // by row: bit k is set where plugin k asks not to delete it locally
}

func (Selected) result() {}

// fits reports whether the answer has the shape of the question.
func (s *Selected) fits(f Select) bool {
	n := f.rows()
	return len(s.Plugins) <= 16 && len(s.Scores) == n*len(s.Plugins) && len(s.Holds) == n &&
		len(s.Keeps) == n
}

// advice is what the plugins said of the segments of one log. It is forgotten when the log has
// nothing to be copied or deleted any more.
type advice struct {
	plugins []string
	below   tier.Offset // every segment that ends at or below it was asked about
	rows    []adviceRow // ascending by base; of segments that are not copied, held or kept
}

type adviceRow struct {
	base       tier.Offset
	hold, keep uint16
	scores     []int64
}

// of is what was said of the segment with the base; nil if nothing was.
func (a *advice) of(base tier.Offset) *adviceRow {
	if a == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(a.rows, base, func(r adviceRow, b tier.Offset) int {
		return cmp.Compare(r.base, b)
	})
	if !found {
		return nil
	}
	return &a.rows[i]
}

// names lists the plugins of a set.
func (a *advice) names(set uint16) string {
	var who []string
	for ; set != 0; set &= set - 1 {
		if k := bits.TrailingZeros16(set); k < len(a.plugins) {
			who = append(who, a.plugins[k])
		}
	}
	noun := "plugin "
	if len(who) > 1 {
		noun = "plugins "
	}
	return noun + strings.Join(who, ", ")
}

// compareScores puts what should be copied first before the rest: the first plugin's higher score
// goes first, the next one breaks ties. No answer is a score of 0.
func compareScores(a, b []int64) int {
	at := func(s []int64, k int) int64 {
		if k < len(s) {
			return s[k]
		}
		return 0
	}
	for k := range max(len(a), len(b)) {
		if c := cmp.Compare(at(b, k), at(a, k)); c != 0 {
			return c
		}
	}
	return 0
}

// consulting reports whether it is worth waiting for the plugins: they are, unless the last
// question was not answered and it is too early for another one.
func (e *Engine) consulting() bool {
	return e.settings.Plugins && (e.selectFailures == 0 || e.now >= e.selectAt)
}

// asked reports whether plugins were asked about local segment i, or shall not be waited for.
func (e *Engine) asked(l *logIndex, i int) bool {
	return !e.consulting() || l.advice != nil && l.local[i].Next <= l.advice.below
}

// consult makes the log a candidate for the plugins, for local segment i, and reports whether they
// were asked about it. What waits for an answer is decided anew with it.
func (e *Engine) consult(l *logIndex, i int) bool {
	l.candidate = l.candidate || e.settings.Plugins
	asked := e.asked(l, i)
	l.unasked = l.unasked || !asked
	return asked
}

// heldUntil is until when plugins hold local segment i back from copying; 0 if none does. It counts
// from when the file was last written, which no restart of tierd changes.
func (e *Engine) heldUntil(l *logIndex, i int) tier.Time {
	s := &l.local[i]
	r := l.advice.of(s.Base)
	written := s.Log.ModTime
	if r == nil || r.hold == 0 || written > e.now+e.settings.Tolerance ||
		e.now-written >= e.settings.HoldMax {
		return 0
	}
	return written + e.settings.HoldMax
}

// keeps reports whether a plugin keeps local segment i on disk.
func (l *logIndex) keeps(i int) bool {
	r := l.advice.of(l.local[i].Base)
	return r != nil && r.keep != 0
}

// scores are those of local segment i; nil where there are none.
func (l *logIndex) scores(i int) []int64 {
	if r := l.advice.of(l.local[i].Base); r != nil {
		return r.scores
	}
	return nil
}

// heldReason and keptReason say that plugins hold or keep local segment i; nil if none does.
func (e *Engine) heldReason(l *logIndex, i int) *tier.Reason {
	until := e.heldUntil(l, i)
	if until == 0 {
		return nil
	}
	s := &l.local[i]
	return &tier.Reason{Code: tier.CodeHeld, Until: until, Text: fmt.Sprintf(
		"segment %s is held back from copying by the %s, until %s at most (copy.hold_max)", s.Range,
		l.advice.names(l.advice.of(s.Base).hold), until)}
}

func (e *Engine) keptReason(l *logIndex, i int) *tier.Reason {
	if !l.keeps(i) {
		return nil
	}
	s := &l.local[i]
	return &tier.Reason{Code: tier.CodeKept, Text: fmt.Sprintf(
		"segment %s is kept on local disk by the %s", s.Range,
		l.advice.names(l.advice.of(s.Base).keep))}
}

// nominate keeps the list of candidates, after the log was decided anew. wasUnasked says whether it
// waited for an answer before.
func (e *Engine) nominate(l *logIndex, wasUnasked bool) {
	if l.unasked != wasUnasked {
		if e.unasked--; l.unasked {
			e.unasked += 2
		}
	}
	i, found := find(e.candidates, l.id)
	switch {
	case l.candidate && !found:
		e.candidates = slices.Insert(e.candidates, i, l)
	case !l.candidate && found:
		e.candidates = slices.Delete(e.candidates, i, i+1)
		l.advice = nil
	}
}

// selectDue is when the next Select is due; ok is false if none is.
func (e *Engine) selectDue() (at tier.Time, ok bool) {
	switch {
	case !e.settings.Plugins || e.selecting || len(e.candidates) == 0:
		return 0, false
	case len(e.round) > 0:
		return e.now, true
	case e.unasked > 0 && e.opens > 0:
		return 0, false // more will be there at once
	case e.unasked > 0:
		return e.selectAt, true
	}
	return max(e.selectAt, e.roundAt+e.settings.SelectEvery), true
}

// considerSelect asks the plugins about all candidates, some at a time, where there are new ones or
// the last time was long ago. A plugin that compares tables has to see all of them.
func (e *Engine) considerSelect() {
	// A clock that was set back lets nobody wait for longer.
	e.roundAt = min(e.roundAt, e.now)
	e.selectAt = min(e.selectAt, e.now+e.settings.SelectEvery)
	if at, ok := e.selectDue(); !ok || at > e.now {
		return
	}
	if len(e.round) == 0 {
		e.round, e.roundAt = slices.Clone(e.candidates), e.now
	}
	f, rows := Select{Generation: e.settings.Generation}, 0
	for len(e.round) > 0 {
		l := e.round[0]
		if l.candidate {
			log := e.selectLog(l)
			if rows += len(log.Segments); rows > selectMax && len(f.Logs) > 0 {
				break
			}
			f.Logs = append(f.Logs, log)
		}
		e.round = e.round[1:]
	}
	if len(f.Logs) == 0 {
		return
	}
	f.ID = e.id()
	e.selecting = true
	e.emit(f)
}

// selectLog describes a candidate.
func (e *Engine) selectLog(l *logIndex) SelectLog {
	closed := len(l.local)
	for closed > 0 && !l.local[closed-1].Closed() {
		closed--
	}
	out := SelectLog{Log: l.id, Source: l.source, State: l.table.state.State,
		LocalBytes: l.localBytes, Segments: make([]SelectSegment, 0, min(closed, selectLogMax))}
	for i := range closed {
		if closed > selectLogMax && i >= selectLogMax/2 && i < closed-selectLogMax/2 {
			continue
		}
		s := l.local[i]
		r, identical, _ := l.copyOf(&s)
		x := SelectSegment{Range: s.Range, Bytes: s.Bytes, Birth: e.birth(l, i),
			Remote: identical, Verified: identical && r.Verified, Copied: s.Next <= l.state.Copied}
		if identical {
			s.MaxTime = r.MaxTime
		}
		if s.MaxTime > 0 && s.MaxTime <= e.now+e.settings.Tolerance {
			x.MaxTime = s.MaxTime
		}
		out.Segments = append(out.Segments, x)
	}
	return out
}

// selectFinished takes over what the plugins said. An answer of another generation than the one in
// force is dropped: whoever waits for one is asked about anew.
func (e *Engine) selectFinished(f Select, res Result) {
	e.selecting = false
	answer, ok := res.(Selected)
	if !ok || !answer.fits(f) {
		e.selectFailed()
		return
	}
	e.selectFailures = 0
	if f.Generation == e.settings.Generation {
		e.advise(f, &answer)
	}
	if len(e.round) == 0 {
		took := max(e.now-e.roundAt, 0)
		e.selectAt = e.now + min(selectPause*took, e.settings.SelectEvery)
	}
}

// selectFailed lets the built-in order serve: nothing is held, kept or waited for until the plugins
// are asked again.
func (e *Engine) selectFailed() {
	e.selectFailures++
	e.selectAt = e.now + min(e.settings.Backoff.delay(tier.LogID{}, e.selectFailures),
		e.settings.SelectEvery)
	e.forgetAdvice()
	for _, l := range slices.Clone(e.candidates) {
		e.evaluate(l)
	}
}

// forgetAdvice drops everything that plugins said.
func (e *Engine) forgetAdvice() {
	e.round = nil
	for _, l := range e.candidates {
		l.advice = nil
	}
}

// advise hands each log what was said of it.
func (e *Engine) advise(f Select, answer *Selected) {
	row, width := 0, len(answer.Plugins)
	for i := range f.Logs {
		asked := &f.Logs[i]
		a := &advice{plugins: answer.Plugins}
		for _, s := range asked.Segments {
			r := adviceRow{base: s.Base, hold: answer.Holds[row], keep: answer.Keeps[row],
				scores: answer.Scores[row*width : (row+1)*width : (row+1)*width]}
			if !s.Remote || r.hold|r.keep != 0 {
				a.rows = append(a.rows, r)
			}
			a.below = max(a.below, s.Next)
			row++
		}
		if l := e.logs[asked.Log]; l != nil && l.candidate {
			l.advice = a
			e.evaluate(l)
		}
	}
}

// Advised gives the engine an answer before it has started, for a look that starts nothing.
type Advised struct {
	Asked  Select
	Answer Selected
}

func (Advised) event() {}

// advised takes over an answer that nobody waits for.
func (e *Engine) advised(ev Advised) {
	if e.started || !ev.Answer.fits(ev.Asked) {
		return
	}
	for i := range ev.Asked.Logs {
		if l := e.logs[ev.Asked.Logs[i].Log]; l != nil {
			l.candidate = true
		}
	}
	e.advise(ev.Asked, &ev.Answer)
}

// Candidates gives questions about all logs that have something to copy or to delete locally, for a
// look before Started. They have no ids.
func (e *Engine) Candidates() []Select {
	var out []Select
	rows := 0
	for _, l := range e.order {
		t := l.table
		if l.block != nil || len(l.local) == 0 {
			continue
		}
		due := l.opened && l.mayAsk(t, 0) && e.worthAsking(l, t, 0, l.localBytes) <= e.now
		if !due && (!e.copying(t) || l.nextCopy() < 0) {
			continue
		}
		log := e.selectLog(l)
		if rows += len(log.Segments); len(out) == 0 || rows > selectMax {
			out, rows = append(out, Select{Generation: e.settings.Generation}), len(log.Segments)
		}
		last := &out[len(out)-1]
		last.Logs = append(last.Logs, log)
	}
	return out
}

// copying reports whether the logs of the table are copied, or will be once they are opened.
func (e *Engine) copying(t *tableIndex) bool {
	cfg, governed := e.config(t)
	return governed && cfg.Tiering && t.state.State == tier.Enabled
}
