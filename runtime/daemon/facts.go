package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/facts"
	"github.com/tierd/tierd/runtime/tier"
)

// newFacts makes the user's facts of a configuration, with the files as they are now.
func newFacts(c *config.Config, now tier.Time) *facts.Set {
	files := make([]facts.File, len(c.Facts))
	for i, f := range c.Facts {
		files[i] = facts.File{Name: f.Name, Path: f.Path, MaxAge: f.MaxAge}
	}
	s := facts.New(files, func(document any) (any, error) { return rego.NewFact(document) })
	s.Load(now, tier.Time(c.Limits.ClockTolerance))
	return s
}

// factsAt gives the facts of the generation at a time.
func (g *generation) factsAt(now tier.Time) (map[string]any, []tier.UnknownFact) {
	return g.facts.At(now, tier.Time(g.config.Limits.ClockTolerance))
}

// tendFacts reads the facts at each interval. They come from a disk that may hang, so they have a
// goroutine of their own: what is not read grows old, and old facts keep.
func (d *Daemon) tendFacts(ctx context.Context) error {
	var before []tier.UnknownFact
	for {
		g := d.gen.Load()
		changed := g.facts.Load(d.now(), tier.Time(g.config.Limits.ClockTolerance))
		before = d.reportFacts(before)
		if changed && d.gen.Load() == g {
			// What was kept may go now, and is asked about again.
			d.step(engine.Reconfigured{Settings: g.settings()})
		}
		timer := time.NewTimer(g.config.Interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// reportFacts writes what is not known, and was before or for another reason, to the log.
func (d *Daemon) reportFacts(before []tier.UnknownFact) []tier.UnknownFact {
	_, unknown := d.gen.Load().factsAt(d.now())
	for _, f := range unknown {
		if !slices.Contains(before, f) {
			d.log.Error("a fact is not known; what depends on it is kept", "fact", f.Name,
				"why", f.Why)
		}
	}
	for _, f := range before {
		same := func(x tier.UnknownFact) bool { return x.Name == f.Name }
		if !slices.ContainsFunc(unknown, same) {
			d.log.Info("the fact is known again", "fact", f.Name)
		}
	}
	d.metrics.factsUnknown.Set(float64(len(unknown)))
	return unknown
}

// factReasons are the facts that are not known now.
func (d *Daemon) factReasons() (out []tier.Reason) {
	_, unknown := d.gen.Load().factsAt(d.now())
	for _, f := range unknown {
		out = append(out, tier.Reason{Code: tier.CodeFactUnknown,
			Text: "the fact " + f.Name + " is not known: " + f.Why})
	}
	return out
}
