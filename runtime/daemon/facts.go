package daemon

import (
	"context"
	"slices"

	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/facts"
	"github.com/tierd/tierd/runtime/tier"
)

// newFacts makes the user's facts of a configuration, with the files as they are now.
func newFacts(c *config.Config, now tier.Time) *facts.Set {
	var files []facts.File
	var groups []facts.Groups
	for _, f := range c.Facts {
		if f.Kafka != "" {
			groups = append(groups, facts.Groups{Name: f.Name, Source: f.Kafka, Groups: f.Groups,
				MaxAge: f.MaxAge})
		} else {
			files = append(files, facts.File{Name: f.Name, Path: f.Path, MaxAge: f.MaxAge})
		}
	}
	s := facts.New(files, groups, func(document any) (any, error) { return rego.NewFact(document) })
	s.Load(now, tier.Time(c.Limits.ClockTolerance))
	return s
}

// factsAt gives the facts of the generation about a log at a time.
func (g *generation) factsAt(now tier.Time, log tier.LogID) (map[string]any, []tier.UnknownFact) {
	return g.facts.At(now, tier.Time(g.config.Limits.ClockTolerance), log)
}

// FactsNow reads and asks for every fact of a configuration once, and gives those that are not
// known.
func FactsNow(ctx context.Context, c *config.Config, now func() tier.Time) []tier.UnknownFact {
	s := newFacts(c, now())
	askGroups(ctx, s, c, now)
	_, unknown := s.At(now(), tier.Time(c.Limits.ClockTolerance), tier.LogID{})
	return unknown
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
		if pause(ctx, g.config.Interval) != nil {
			return nil
		}
	}
}

// reportFacts writes what is not known, and was before or for another reason, to the log.
func (d *Daemon) reportFacts(before []tier.UnknownFact) []tier.UnknownFact {
	_, unknown := d.gen.Load().factsAt(d.now(), tier.LogID{})
	for _, f := range unknown {
		if !slices.Contains(before, f) && f.Why != facts.Unasked {
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
	_, unknown := d.gen.Load().factsAt(d.now(), tier.LogID{})
	for _, f := range unknown {
		out = append(out, tier.Reason{Code: tier.CodeFactUnknown,
			Text: "the fact " + f.Name + " is not known: " + f.Why})
	}
	return out
}
