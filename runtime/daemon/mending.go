package daemon

import (
	"context"
	"errors"

	"github.com/tierd/tierd/runtime/exec"
	"github.com/tierd/tierd/runtime/tier"
)

// manifestObjectBytes is for how many bytes an object of a manifest counts at least in
// scrub.bytes_per_second: an entry of three files has some 1.1 kB. Checkpoints have megabytes.
const manifestObjectBytes = 2 << 10

// errUnwanted ends a look at a manifest when scrubbing is turned off, or the daemon stops;
// errEnough when the object was looked at that is asked for.
var (
	errUnwanted = errors.New("the pass is not wanted any more")
	errEnough   = errors.New("no more is wanted")
)

// mend looks at the manifest of the log, and has written again what of it the store lost or
// altered. Where the store cannot be asked it tries again; an object that it does not give or take
// while it gives others is passed over. False is for a pass that is not wanted.
func (s *scrubber) mend(ctx context.Context, id tier.LogID) bool {
	tell := func(m exec.Mended) error {
		s.mended(id, m)
		s.mendingAt(id, m.At)
		s.between(ctx)
		if !s.wanted(ctx) {
			return errUnwanted
		}
		return s.spend(ctx, max(m.Bytes, manifestObjectBytes))
	}
	at := s.mendFrom(id)
	t := s.tries(scrubbed{log: id, at: at})
	for {
		reached, err := s.d.exec.MendManifest(ctx, id, at, tell)
		if reached != at {
			at, t = reached, s.tries(scrubbed{log: id, at: reached})
		}
		if s.mendingAt(id, at); err == nil {
			return true
		}
		if errors.Is(err, errUnwanted) {
			return false
		}
		if errors.Is(err, tier.ErrRefused) {
			s.refused(id, err)
			return true
		}
		again, goesOn := t.failed(ctx, err, s.wanted)
		switch {
		case again:
		case goesOn:
			at = at.Behind()
			t = s.tries(scrubbed{log: id, at: at})
		default:
			return false
		}
	}
}

// mendOpen looks once more at an object of a manifest that is open. It is false where ctx ended.
func (s *scrubber) mendOpen(ctx context.Context, k scrubbed) bool {
	tell := func(m exec.Mended) error {
		s.mended(k.log, m)
		return errors.Join(s.spend(ctx, max(m.Bytes, manifestObjectBytes)), errEnough)
	}
	for t := s.tries(k); ; {
		reached, err := s.d.exec.MendManifest(ctx, k.log, k.at, tell)
		if reached != k.at || err == nil {
			s.close(k) // it is no part of the manifest any more
			return true
		}
		if errors.Is(err, errEnough) {
			return ctx.Err() == nil
		}
		if errors.Is(err, tier.ErrRefused) {
			s.refused(k.log, err)
			return ctx.Err() == nil
		}
		if again, goesOn := t.failed(ctx, err, whileRunning); !again {
			return goesOn
		}
	}
}

// mended tells of an object of a manifest that was looked at.
func (s *scrubber) mended(id tier.LogID, m exec.Mended) {
	s.objectsInRow = 0
	s.d.metrics.manifests.WithLabelValues(string(m.Mending)).Inc()
	log, k := s.d.log.With("log", id.String()), scrubbed{log: id, at: m.At}
	switch m.Mending {
	case exec.MendStrays:
		s.leave(k, m.Why.Error(), true)
		log.Error("the manifest is not what the ledger says, and stays: tierd verify names the object; "+
			"a scrub writes it again where it is removed", "why", m.Why)
		return
	case exec.MendAgain:
		log.Warn("the store lost a part of the manifest, and has it again", "why", m.Why)
	}
	s.close(k)
}

// refused is for a manifest of which nothing may be written: what is open of it stays so.
func (s *scrubber) refused(id tier.LogID, err error) {
	s.d.metrics.manifests.WithLabelValues("error").Inc()
	s.lookedAt(id)
	s.d.log.Error("scrub: nothing of the manifest is written again", "log", id.String(), "err", err)
}

// mendFrom is where the pass is in the manifest of the log.
func (s *scrubber) mendFrom(id tier.LogID) exec.MendAt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.state.Mending; m != nil && m.Log == id.String() {
		return m.MendAt
	}
	return exec.MendAt{}
}

// mendingAt notes it, for a restart to go on there.
func (s *scrubber) mendingAt(id tier.LogID, at exec.MendAt) {
	s.mu.Lock()
	s.state.Mending = &scrubMending{id.String(), at}
	s.mu.Unlock()
	s.keep(false)
}

// spend takes its time over so many bytes that were read.
func (s *scrubber) spend(ctx context.Context, n int64) error {
	for n > 0 {
		part := min(n, scrubBurst)
		if err := s.limit.WaitN(ctx, int(part)); err != nil {
			return err
		}
		n -= part
	}
	return nil
}
