package sim

import (
	"time"

	"github.com/tierd/tierd/internal/rewind"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// moment is all that can make a difference from here on: two histories that come to moments that
// are alike go on alike. It is everything that is reachable, so that what somebody adds to engine,
// executor, oracle or disk is part of it without a word; unlike names the exceptions.
type moment struct {
	lasting lasting
	process *process
}

// lasting is what a process that begins now would find, and what the oracle remembers.
type lasting struct {
	disk     *vfs.Mem
	objects  *fault.Mem
	bucket   *fault.Bucket
	medium   *offsets.Memory
	oracle   *Oracle
	now      tier.Time
	passed   time.Duration // by a clock that nobody sets
	attempts uint64
	probes   uint64
	settings uint64 // their generation
	paused   bool
	bad      []badCopy // what scrubs found
	// An fsync was the last operation that was stopped at: a machine that has to go, goes.
	fsync bool
	// What is armed, and waits.
	store     []storeFault
	points    int
	fate      Fate
	disturbed int
	twice     int
	// part is how far the step is that is being made: what follows a stop in it depends on that.
	part int
}

// opaque are the types that are not gone into: what is loaded once and never changes, and what only
// says how a search goes on.
var opaque = []string{"*rego.Set", "*rego.Promises", "*plugin.Set", "*regexp.Regexp",
	"*sim.Project", "*sim.searcher", "*sim.course", "*sim.remembered", "advice.Asker"}

// unlike are the fields in which moments may differ that are alike, each for a reason.
var unlike = map[string][]string{
	// Counters that number what happens, and on which nothing depends.
	"vfs.memFS": {"calls", "changes", "below", "atRoot", "moved"},
	"fault.Mem": {"changes"}, "fault.Bucket": {"calls"},
	"offsets.Memory": {"commits"}, "engine.Engine": {"lastID", "out"},
	// What the oracle counts for a report, and that it looks again at what it has seen, which says
	// the same.
	"sim.Oracle": {"judged", "changed"},
	// What was reckoned once, and says what the rest says.
	"sim.ledgerLog": {"of", "covers"},
	// What is told to people alone.
	"tier.Reason": {"Text"},
	// A reader that nobody uses between two steps.
	"sim.process": {"reader"},
}

// newDigester does not go into the world either, but for what is lasting: the rest is what was read
// of it last, counters, and whom it tells.
func newDigester() *rewind.Digester {
	return rewind.NewDigester(rewind.Without{Types: append([]string{"*sim.World"}, opaque...),
		Fields: unlike})
}

// lasting is what the world would leave now.
func (h *play) lasting() lasting {
	w := h.w
	out := lasting{disk: w.Disk, objects: w.Objects, bucket: w.Bucket, medium: w.Medium,
		oracle: h.o, now: w.Now, passed: w.passed, attempts: w.attempts, probes: w.probes,
		settings: w.generation, paused: w.Paused, bad: w.bad,
		fsync: h.hit.Kind == string(vfs.OpSync), store: h.store, points: h.disk, fate: h.fate,
		disturbed: h.disturbed, part: h.part}
	if b := h.opts.Bounds; b != nil && h.disturbed < b.Disturbances {
		out.twice = h.out.Crashes % twiceEvery
	}
	return out
}

// state identifies the moment that the history has come to.
func (h *play) state(d *rewind.Digester) uint64 {
	return d.Of(&moment{h.lasting(), h.w.process})
}

// remnants identifies what the process has left that was stopped now.
func (h *play) remnants(d *rewind.Digester) uint64 {
	left := h.lasting()
	left.twice = h.out.Crashes % twiceEvery // a new process is about to start, or two
	return d.Of(&left)
}
