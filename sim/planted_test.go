//go:build planted

package sim

import (
	"flag"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/planted"
)

// seedsMax bounds how many histories a planted fault is looked for in.
const seedsMax = 2000

var onlyFault = flag.String("fault", "", "plant only the faults whose name has this in it")

// search says how a fault is looked for, and by which properties it may be found.
type search struct {
	by []Property
	// often are the actions that bring the fault's own situation about: they are made so many times
	// as likely as they are.
	often map[string]int
	// leaders puts the fault into histories of a broker's directory.
	leaders bool
}

// The actions that let something happen in the middle of another.
const (
	passes   = "time: passes, and the process runs"
	meanTime = "overlap: with another effect"
	inDisk   = "disk: will fail in the next effect of a kind"
)

var searches = map[planted.Fault]search{
	planted.AdvanceBeforeVerify: {by: []Property{CopiedSound, NoUncopiedDelete, EligibleCopied},
		often: map[string]int{"store: fails an upload": 4}},
	planted.RecordAfterDrop: {by: []Property{PersistBeforeAct}},
	planted.NoDirectorySync: {by: []Property{PersistBeforeAct, NoUncopiedDelete, AuditTrue,
		CountedOnce, CleanStop}},
	planted.ListingIsProof: {by: []Property{StartFirst, OrphanNeverLive, CopiedSound},
		often: map[string]int{"store: lags with its listings from now on": 8, passes: 3}},
	planted.UnknownIsFailure: {by: []Property{AuditTrue, CountedOnce},
		often: map[string]int{inDisk: 6, passes: 3}},
	planted.UnknownIsSuccess: {by: []Property{AuditTrue}, often: map[string]int{inDisk: 6, passes: 3}},
	planted.NothingIsZero:    {by: []Property{Gated, MinimumAge}},
	planted.EpochUnchecked: {by: []Property{EpochFence},
		often: map[string]int{"settings: turn tiering off": 6, "settings: turn tiering on": 6,
			"owner: rolls": 3, "process: scans": 6, meanTime: 16, "process: runs": 3}},
	planted.LineageUnchecked: {by: []Property{CopiedSound, Gated}, leaders: true,
		often: map[string]int{"owner: has another leader": 4, "process: runs": 2}},
	planted.ErrorIsAllow: {by: []Property{Gated, MinimumAge},
		often: map[string]int{"settings: change the policies": 6, passes: 2}},
	planted.PrefixIgnored:    {by: []Property{ActiveUntouched}},
	planted.RemoveBeforeMove: {by: []Property{StartFirst}, often: map[string]int{passes: 3}},
	planted.AttemptUnchecked: {by: []Property{StartFirst, OrphanNeverLive, CopiedSound},
		often: map[string]int{passes: 3}},
	planted.WatermarkIgnored: {by: []Property{CopiedSound, Gated}, leaders: true,
		often: map[string]int{"owner: loses its replicas, or has them again": 4}},
	planted.TTLWithoutProof: {by: []Property{NoUncopiedDelete},
		often: map[string]int{"store: answers 429 and 503 from now on": 6, passes: 2}},
	planted.CopiedNotRestored: {by: []Property{CopiedMonotone, PersistBeforeAct}},
	planted.ClocksIgnored: {by: []Property{Gated},
		often: map[string]int{"clock: of the store goes astray, or back": 8, passes: 3}},
	planted.NotDrained: {by: []Property{Gated, NoUncopiedDelete},
		often: map[string]int{"overlap: with a reload that turns tiering off": 12, passes: 3,
			"settings: turn tiering on": 6, "process: runs": 3}},
	planted.HoleIsProof: {by: []Property{NoUncopiedDelete, Gated},
		often: map[string]int{"owner: removes a segment": 6, "owner: brings a segment back": 8,
			passes: 2}},
	planted.LostNotSaid: {by: []Property{CopiedSound, Settled, EligibleCopied, NoUncopiedDelete}},
	planted.LeftSaidAgain: {by: []Property{PersistBeforeAct},
		often: map[string]int{"store: loses a part of a manifest": 6, passes: 3}},
	planted.KeepIsLeave: {by: []Property{PluginContainment},
		often: map[string]int{"settings: change the plugins": 6}},
}

// What shrinking a planted fault may take, and how many steps may be left of it at the median.
const (
	shrinkMax      = 20 * time.Second
	shrunkStepsMax = 10
)

// TestPlanted plants each fault in turn, and makes histories until one finds it: by a property that
// is about it, and not by chance. What is found is shrunk to few steps, in little time.
func TestPlanted(t *testing.T) {
	t.Parallel()
	defer planted.Choose(planted.None)
	var steps []int
	var took []time.Duration
	for _, fault := range planted.All() {
		if !strings.Contains(string(fault), *onlyFault) {
			continue
		}
		s, ok := searches[fault]
		if !ok {
			t.Errorf("%s: nobody looks for it", fault)
			continue
		}
		p := s.project(t)
		planted.Choose(fault)
		switch seed, found := firstFound(p, seedsMax); {
		case found == nil:
			t.Errorf("%s: not found in %d histories", fault, seedsMax)
		case !slices.Contains(s.by, found.Property):
			t.Errorf("%s: found by seed %d, and not as it should be: %s", fault, seed, found)
		default:
			began := time.Now()
			_, f := p.Find(seed)
			small := p.Shrink(f, 5000, func() bool { return time.Since(began) < shrinkMax })
			steps, took = append(steps, small.Outcome.Steps), append(took, time.Since(began))
			planted.Choose(planted.None)
			if out, _ := p.Find(seed); out.Violation != nil {
				t.Errorf("%s: seed %d fails without it, too: %s", fault, seed, out.Violation)
			}
			t.Logf("%s: found by seed %d in %d steps, shrunk to %d in %s: %.200s", fault, seed,
				f.Outcome.Steps, small.Outcome.Steps, took[len(took)-1].Round(time.Millisecond), found)
		}
	}
	if n := len(steps) / 2; n > 0 { // one alone has no median
		slices.Sort(steps)
		slices.Sort(took)
		t.Logf("at the median shrunk to %d steps, in %s", steps[n], took[n].Round(time.Millisecond))
		if steps[n] > shrunkStepsMax {
			t.Errorf("shrunk to %d steps at the median, want at most %d", steps[n], shrunkStepsMax)
		}
	}
}

func (s *search) project(t *testing.T) *Project {
	t.Helper()
	project := Builtin
	if s.leaders {
		project = BuiltinKafka
	}
	p, err := project()
	if err != nil {
		t.Fatal(err)
	}
	p.Focus = s.often
	return p
}

// firstFound makes the histories of the seeds from 1 on, on two processors, until one breaks a
// promise. Of several it is the one of the lowest seed.
func firstFound(p *Project, seeds uint64) (seed uint64, found *Violation) {
	var next atomic.Uint64
	var mu sync.Mutex
	var stop atomic.Bool
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for at := next.Add(1); at <= seeds && !stop.Load(); at = next.Add(1) {
				out, _ := p.Find(at)
				if out.Violation == nil {
					continue
				}
				stop.Store(true)
				mu.Lock()
				if found == nil || at < seed {
					seed, found = at, out.Violation
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return seed, found
}
