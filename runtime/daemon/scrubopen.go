package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

const (
	// scrubTries is how often the store is asked for an object that it does not give while it gives
	// others, before that is passed over: with the pauses between them, for 15 s.
	scrubTries = 5
	// scrubRow is how many may be passed over one after the other before the next ones are asked for
	// but once each: as where everything of some age was moved to an archive.
	scrubRow = 3
	// scrubOpenFails is how many of those that are open may fail in one look at them, so that it comes
	// to an end; the others wait for the next one.
	scrubOpenFails = 256
	// scrubOpenMax is how many may be open: the file has them all, and is written whole. Beyond that
	// nothing more is passed over, and the store is waited for.
	scrubOpenMax = 10_000
	scrubTextMax = 300 // bytes of why one is open; the key comes first
)

// scrubbed is what a scrub looks at: a copy, or an object of a manifest.
type scrubbed struct {
	log  tier.LogID
	copy bool
	at   exec.MendAt // of a copy, its position
}

func copyOf(x suspicion) scrubbed {
	return scrubbed{log: x.log, copy: true, at: exec.MendAt{Position: x.position}}
}

func compareScrubbed(a, b scrubbed) int {
	kind := func(k scrubbed) int {
		if k.copy {
			return 1
		}
		return 0
	}
	return cmp.Or(a.log.Compare(b.log), cmp.Compare(kind(a), kind(b)),
		cmp.Compare(a.at.Level, b.at.Level), cmp.Compare(a.at.Position, b.at.Position),
		cmp.Compare(a.at.Block, b.at.Block))
}

// unsettled is why something is open after a look: the store does not give or take it. Of a copy
// nothing is known then, neither that it is sound nor that it is lost.
type unsettled struct {
	text   string
	looked int64 // which look it was; scrubber.looks then
	// bad: it is an object of a manifest that is sound, and not what the ledger says.
	bad bool
}

// What is open, in the order in which status tells of it; the label of the metric.
const (
	openCopy   = "copy"
	openObject = "object" // of a manifest
	openBad    = "bad"    // likewise, and there
)

func (k scrubbed) what(u unsettled) string {
	switch {
	case k.copy:
		return openCopy
	case u.bad:
		return openBad
	}
	return openObject
}

// leave remembers what is open, durably where that is news; news is false where it was before, or
// where there is no room.
func (s *scrubber) leave(k scrubbed, why string, bad bool) (news bool) {
	if len(why) > scrubTextMax {
		why = strings.ToValidUTF8(why[:scrubTextMax], "") + "..."
	}
	s.mu.Lock()
	old, there := s.open[k]
	if !there && len(s.open) >= scrubOpenMax {
		s.mu.Unlock()
		return false
	}
	s.looks++
	u := unsettled{text: why, looked: s.looks, bad: bad}
	if there {
		s.d.metrics.scrubOpen.WithLabelValues(k.what(old)).Dec()
	}
	s.d.metrics.scrubOpen.WithLabelValues(k.what(u)).Inc()
	s.open[k] = u
	news = !there || old.bad != bad
	soon := news && len(s.open) <= scrubSoon
	s.mu.Unlock()
	s.keep(soon)
	return news
}

// full reports whether there is no room for it among what is open.
func (s *scrubber) full(k scrubbed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.open[k]
	return !there && len(s.open) >= scrubOpenMax
}

// close forgets what is not open any more.
func (s *scrubber) close(k scrubbed) {
	s.mu.Lock()
	u, there := s.open[k]
	if there {
		s.d.metrics.scrubOpen.WithLabelValues(k.what(u)).Dec()
		delete(s.open, k)
	}
	soon := len(s.open) <= scrubSoon
	s.mu.Unlock()
	if there {
		s.keep(soon)
	}
}

// passedOver reports whether the last look left it open.
func (s *scrubber) passedOver(k scrubbed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, there := s.open[k]
	return there && !u.bad
}

// lookedAt takes all that is open of the manifest of the log for looked at now.
func (s *scrubber) lookedAt(id tier.LogID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	for k, u := range s.open {
		if k.log == id && !k.copy {
			u.looked = s.looks
			s.open[k] = u
		}
	}
}

// longestOpen are those that are open, those first whose last look is the longest ago.
func (s *scrubber) longestOpen() []scrubbed {
	type aged struct {
		k      scrubbed
		looked int64
	}
	var list []aged
	s.mu.Lock()
	for k, u := range s.open {
		list = append(list, aged{k, u.looked})
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b aged) int {
		return cmp.Or(cmp.Compare(a.looked, b.looked), compareScrubbed(a.k, b.k))
	})
	out := make([]scrubbed, len(list))
	for i := range list {
		out[i] = list[i].k
	}
	return out
}

// lookOpen looks at what is open, as long as the store gives or only some of it fails.
func (s *scrubber) lookOpen(ctx context.Context, list []scrubbed) {
	failed := 0
	for _, k := range list {
		if k.copy && !s.look(ctx, k.log, k.at.Position) || !k.copy && !s.mendOpen(ctx, k) {
			return
		}
		if s.passedOver(k) {
			failed++
		}
		if failed == scrubOpenFails {
			return
		}
	}
}

// lookOnce looks at some of what is open, for a run with an end, in which nothing else would: what
// a daemon passed over would prove nothing for ever.
func (s *scrubber) lookOnce(ctx context.Context) {
	list := s.longestOpen()
	if len(list) == 0 {
		return
	}
	s.once = true
	s.pace()
	s.lookOpen(ctx, list[:min(scrubOpenFails, len(list))])
	s.keep(true)
}

// closeGone closes, at the end of a pass, what is none of the ledger's any more: copies, and
// objects of manifests that the pass has not met. It returns how many were passed over and are open
// still.
func (s *scrubber) closeGone() (left int) {
	s.mu.Lock()
	open, before := maps.Clone(s.open), s.state.Looks
	s.mu.Unlock()
	for k, u := range open {
		gone := !k.copy && u.looked <= before
		if k.copy {
			_, err := s.d.ledger.Copy(k.log, k.at.Position)
			gone = errors.Is(err, tier.ErrVanished)
		}
		switch {
		case gone:
			s.close(k)
		case !u.bad:
			left++
		}
	}
	return left
}

// tries are those of one thing that the store does not give.
type tries struct {
	s     *scrubber
	k     scrubbed
	wait  time.Duration
	alone int // that failed while the store gave something else
}

func (s *scrubber) tries(k scrubbed) *tries { return &tries{s: s, k: k, wait: backoffMin} }

// failed is told of a try that failed. Where it is not to be tried again, it is passed over, and
// goesOn false where no more is wanted.
func (t *tries) failed(ctx context.Context, err error, wanted func(context.Context) bool) (
	again, goesOn bool) {
	if !wanted(ctx) {
		return false, false
	}
	t.counter().WithLabelValues("error").Inc()
	if t.over(ctx, err) {
		return false, t.passOver(ctx, err, wanted)
	}
	t.log().Warn("scrub: the store is waited for", "err", err, "again_in", t.wait)
	return t.pause(ctx, err, wanted), false
}

func (t *tries) counter() *prometheus.CounterVec {
	if t.k.copy {
		return t.s.d.metrics.scrubbed
	}
	return t.s.d.metrics.manifests
}

// log is the log, with what is tried.
func (t *tries) log() *slog.Logger {
	log := t.s.d.log.With("log", t.k.log.String())
	if t.k.at.Level > 0 {
		return log.With("level", t.k.at.Level, "block", t.k.at.Block)
	}
	return log.With("position", t.k.at.Position)
}

// over reports whether to try no more after the error. That is where the store does not give this
// one object and gives others: where it gives nothing, it is waited for.
func (t *tries) over(ctx context.Context, err error) bool {
	if !errors.As(err, new(*exec.WithheldError)) {
		return false
	}
	if !t.s.answers(ctx) {
		t.alone = 0
		return false
	}
	t.alone++
	if t.s.full(t.k) {
		t.log().Error("scrub: so much is passed over already that no more is", "open", scrubOpenMax)
		return false
	}
	return t.s.once || t.alone >= scrubTries || *t.s.row(t.k) >= scrubRow || t.s.passedOver(t.k)
}

// pause waits for the next try; it is false where that is not wanted any more.
func (t *tries) pause(ctx context.Context, err error, wanted func(context.Context) bool) bool {
	if t.s.once {
		return false
	}
	wait := t.wait
	t.wait = min(2*wait, backoffMax)
	if wait == backoffMax {
		t.s.waitsFor(err.Error())
		defer t.s.waitsFor("")
	}
	return t.s.pause(ctx, wait) == nil && wanted(ctx)
}

func (s *scrubber) waitsFor(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = why
}

// reasons say why nothing is scrubbed now.
func (s *scrubber) reasons() []tier.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits == "" {
		return nil
	}
	return []tier.Reason{{Code: tier.CodeStoreError,
		Text: "the scrub waits for the store: " + s.waits}}
}

// passOver leaves it open, until it is looked at again. It is false where no more is wanted.
func (t *tries) passOver(ctx context.Context, err error, wanted func(context.Context) bool) bool {
	level := slog.LevelDebug
	if t.s.leave(t.k, err.Error(), false) {
		level = slog.LevelWarn
	}
	t.counter().WithLabelValues("passed").Inc()
	t.log().Log(ctx, level, "scrub: the store gives others and not this one: it is passed over, "+
		"and nothing is known of it until it is looked at again", "err", err)
	row := t.s.row(t.k)
	*row++
	if *row > scrubRow && !t.s.once {
		// There may be a hundred thousand of them, and the store not be well.
		return t.s.pause(ctx, backoffMin) == nil && wanted(ctx)
	}
	return true
}

// row counts what was passed over since the store gave one of its kind.
func (s *scrubber) row(k scrubbed) *int {
	if k.copy {
		return &s.copiesInRow
	}
	return &s.objectsInRow
}

// answers reports whether the store gives the one object that is sure to be there.
func (s *scrubber) answers(ctx context.Context) bool {
	_, err := s.d.store.Owner(ctx)
	return err == nil || errors.Is(err, tier.ErrDamaged) || errors.Is(err, tier.ErrNewer)
}

// pause waits; it is an error where ctx ends before.
func (s *scrubber) pause(ctx context.Context, d time.Duration) error {
	if wait := s.d.opts.Pause; wait != nil {
		return wait(ctx, d)
	}
	return pause(ctx, d)
}

// openReasons says of each log what is open of it, each kind of thing in a line.
func (s *scrubber) openReasons() map[tier.LogID][]tier.Reason {
	type kind struct {
		log  tier.LogID
		what string
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	counts, first := map[kind]int64{}, map[kind]scrubbed{}
	for k, u := range s.open {
		x := kind{k.log, k.what(u)}
		if old, there := first[x]; !there || compareScrubbed(k, old) < 0 {
			first[x] = k
		}
		counts[x]++
	}
	out := map[tier.LogID][]tier.Reason{}
	for _, x := range slices.SortedFunc(maps.Keys(counts), func(a, b kind) int {
		return cmp.Compare(a.what, b.what)
	}) {
		r, format := tier.Reason{Code: tier.CodeStoreError}, ""
		noun := "object"
		switch x.what {
		case openCopy:
			format, noun = "the store gives others and not %s, of which nothing is known until it does: %s",
				"copy"
		case openObject:
			format = "the store gives or takes others and not %s of the manifest: %s"
		case openBad:
			r.Code, format = tier.CodeManifest, "left alone, since sound and not what the ledger says: %s "+
				"of the manifest, which tierd verify names; what is removed a scrub writes again: %s"
		}
		r.Text = fmt.Sprintf(format, tier.Count(counts[x], noun), s.open[first[x]].text)
		out[x.log] = append(out[x.log], r)
	}
	return out
}
