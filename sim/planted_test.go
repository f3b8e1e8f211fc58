//go:build planted

package sim

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tierd/tierd/runtime/planted"
)

// seedsMax bounds how many histories a planted fault is looked for in.
const seedsMax = 4000

// finds are the properties by which each fault may be found.
var finds = map[planted.Fault][]Property{
	planted.AdvanceBeforeVerify: {CopiedSound, NoUncopiedDelete, EligibleCopied},
	planted.RecordAfterDrop:     {PersistBeforeAct},
	planted.NoDirectorySync:     {PersistBeforeAct, NoUncopiedDelete, AuditTrue, CountedOnce},
	planted.ListingIsProof:      {StartFirst, OrphanNeverLive, CopiedSound},
	planted.UnknownIsFailure:    {AuditTrue, CountedOnce},
	planted.UnknownIsSuccess:    {AuditTrue},
	planted.NothingIsZero:       {Gated, MinimumAge},
	planted.EpochUnchecked:      {NoUncopiedDelete, EligibleCopied, NoLivelock, Recovered},
	planted.ErrorIsAllow:        {Gated, MinimumAge},
	planted.PrefixIgnored:       {ActiveUntouched},
	planted.RemoveBeforeMove:    {StartFirst},
	planted.AttemptUnchecked:    {StartFirst, OrphanNeverLive, CopiedSound},
	planted.TTLWithoutProof:     {NoUncopiedDelete},
	planted.CopiedNotRestored:   {CopiedMonotone, PersistBeforeAct},
	planted.ClocksIgnored:       {Gated},
	planted.NotDrained:          {Gated, NoUncopiedDelete},
	planted.HoleIsProof:         {NoUncopiedDelete, Gated},
}

// TestPlanted plants each fault in turn, and makes histories until one finds it.
func TestPlanted(t *testing.T) {
	t.Parallel()
	p, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	defer planted.Choose(planted.None)
	for _, fault := range planted.All() {
		planted.Choose(fault)
		var next atomic.Uint64
		var found sync.Map
		var stop atomic.Bool
		var wait sync.WaitGroup
		for range 2 {
			wait.Go(func() {
				for seed := next.Add(1); seed <= seedsMax && !stop.Load(); seed = next.Add(1) {
					out, _ := p.Find(seed)
					if out.Violation != nil {
						found.Store(seed, out.Violation)
						stop.Store(true)
					}
				}
			})
		}
		wait.Wait()
		if !stop.Load() {
			t.Errorf("%s: not found in %d histories", fault, seedsMax)
			continue
		}
		found.Range(func(seed, v any) bool {
			violation := v.(*Violation)
			t.Logf("%s: found by seed %d: %s", fault, seed, violation)
			if !slices.Contains(finds[fault], violation.Property) {
				t.Errorf("%s: %s is not how it should be found", fault, violation.Property)
			}
			return true
		})
	}
}
