package daemon

import (
	"context"
	"errors"

	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// manifestObjectBytes is for how many bytes an object of a manifest counts in
// scrub.bytes_per_second: an entry of three files has some 1.1 kB.
const manifestObjectBytes = 2 << 10

// errUnwanted ends a look at a manifest when scrubbing is turned off, or the daemon stops.
var errUnwanted = errors.New("the pass is not wanted any more")

// mend looks at the manifest of the log, and has written again what of it the store lost or
// altered. Where the store cannot be asked it tries again; false is for a pass that is not wanted.
func (s *scrubber) mend(ctx context.Context, id tier.LogID) bool {
	log, count := s.d.log.With("log", id.String()), s.d.metrics.manifests
	tell := func(m exec.Mending, why error) error {
		count.WithLabelValues(string(m)).Inc()
		switch m {
		case exec.MendAgain:
			log.Warn("the store lost a part of the manifest, and has it again", "why", why)
		case exec.MendStrays:
			log.Error("the manifest is not what the ledger says, and stays: tierd verify names the object; "+
				"a scrub writes it again where it is removed", "why", why)
		}
		s.suspected(ctx)
		if !s.wanted(ctx) {
			return errUnwanted
		}
		return s.limit.WaitN(ctx, manifestObjectBytes)
	}
	from, wait := tier.Position(0), backoffMin
	for {
		reached, err := s.d.exec.MendManifest(ctx, id, from, tell)
		switch {
		case err == nil:
			return true
		case errors.Is(err, tier.ErrRefused):
			count.WithLabelValues("error").Inc()
			log.Error("scrub: nothing of the manifest is written again", "err", err)
			return true
		case errors.Is(err, errUnwanted) || !s.wanted(ctx):
			return false
		}
		if reached > from {
			from, wait = reached, backoffMin
		}
		count.WithLabelValues("error").Inc()
		log.Warn("scrub: the manifest cannot be looked at", "position", from, "err", err, "again_in",
			wait)
		if pause(ctx, wait) != nil || !s.wanted(ctx) {
			return false
		}
		wait = min(2*wait, backoffMax)
	}
}
