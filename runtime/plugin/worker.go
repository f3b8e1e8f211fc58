package plugin

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// Worker asks the plugins of a set. One goroutine uses it at a time; workers share nothing that
// they would have to wait for. Only Running may be called at any time.
type Worker struct {
	set     *Set
	slots   []slot
	running atomic.Int64 // index of the plugin that runs
	since   atomic.Int64 // when it began, by Options.Clock
}

const notRunning = -1

// slot is one plugin in one worker.
type slot struct {
	code     *code
	inst     *instance // nil if there is none
	log      *logger
	failures int       // in a row
	retryAt  tier.Time // not asked before, if failures is not 0
	cause    Fault     // of the last failure
}

// Select asks every plugin about the batch, and says in r what they answer. A plugin that does not
// answer as it should costs its own part of the answer and nothing else: it stands in r.Faults,
// its scores are 0, and it holds and keeps nothing. Its instance is discarded, and it is not asked
// again before a delay that doubles with each failure.
func (w *Worker) Select(b *Batch, r *Result) {
	n := b.Len()
	r.reset(w.set.names, n)
	if n == 0 {
		return
	}
	for k := range w.slots {
		if fault := w.ask(k, b, n, r); fault != nil {
			r.Faults = append(r.Faults, *fault)
		}
	}
}

// ask has plugin k answer, and puts the answer into r if it is whole and in time.
func (w *Worker) ask(k int, b *Batch, n int, r *Result) *Fault {
	s := &w.slots[k]
	if s.resting(b.Now) {
		return &Fault{Plugin: s.code.name, Kind: FaultBackoff, Until: s.retryAt,
			Text: s.cause.Error()}
	}
	began := w.begin(k)
	scores, actions, fault := s.run(b, n)
	if took := w.end() - began; fault == nil && took > s.code.limits.WallMax {
		fault = s.code.fault(FaultTime, fmt.Sprintf("its answer took %s, the limit is %s",
			took.Round(time.Millisecond), s.code.limits.WallMax))
	}
	if fault != nil {
		s.fail(fault, b.Now)
		return fault
	}
	s.failures = 0
	r.Fuel[k] = s.code.batchFuel(n) - int64(s.inst.fuel.Get())
	column := r.scores[k]
	for i := range column {
		column[i] = int64(binary.LittleEndian.Uint64(scores[8*i:]))
	}
	for i, a := range actions {
		r.holds[i] |= uint16(a&uint8(ActionHold)) << k
		r.keeps[i] |= uint16(a&uint8(ActionKeep)) >> 1 << k
	}
	return nil
}

func (w *Worker) begin(k int) time.Duration {
	began := w.now()
	w.since.Store(int64(began))
	w.running.Store(int64(k))
	return began
}

func (w *Worker) end() time.Duration {
	w.running.Store(notRunning)
	return w.now()
}

func (w *Worker) now() time.Duration {
	if w.set.options.Clock == nil {
		return 0
	}
	return w.set.options.Clock()
}

// Running tells a watchdog which plugin the worker runs now and since when, by Options.Clock. It
// may be called from any goroutine. Fuel ends every run; this is for telling people of one that
// is slow before it has ended.
func (w *Worker) Running() (plugin string, since time.Duration, ok bool) {
	k := w.running.Load()
	if k == notRunning {
		return "", 0, false
	}
	return w.set.names[k], time.Duration(w.since.Load()), true
}

// Close discards the worker's instances.
func (w *Worker) Close() {
	for k := range w.slots {
		w.slots[k].discard()
	}
}

// run answers with an instance that is configured with the batch's tables.
func (s *slot) run(b *Batch, n int) (scores, actions []byte, fault *Fault) {
	if s.inst != nil && s.inst.tables != b.Tables {
		s.discard()
	}
	if s.inst == nil {
		if s.inst, fault = s.code.newInstance(b.Tables, b.Now, s.log); fault != nil {
			return nil, nil, fault
		}
	}
	return s.inst.ask(b, n)
}

// resting is whether the plugin is not to be asked yet. A clock that was set back does not make
// it rest for longer than the longest delay.
func (s *slot) resting(now tier.Time) bool {
	return s.failures > 0 && now < s.retryAt &&
		s.retryAt.Sub(now) <= s.code.limits.BackoffMax
}

// fail discards the instance and puts the plugin to rest.
func (s *slot) fail(f *Fault, now tier.Time) {
	s.discard()
	delay := s.code.limits.BackoffMax
	if s.failures < 30 {
		delay = min(delay, s.code.limits.BackoffMin<<s.failures)
	}
	s.failures++
	s.retryAt = now + tier.Time(delay)
	f.Until = s.retryAt
	s.cause = *f
}

func (s *slot) discard() {
	if s.inst != nil {
		s.inst.close()
		s.inst = nil
	}
}
