package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tierd/tierd/runtime/broker"
	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/facts"
	"github.com/tierd/tierd/runtime/tier"
)

// groupsTimeout bounds one question about consumer groups.
const groupsTimeout = 10 * time.Second

// askGroups asks the brokers once about the facts that they know, and tells what changed.
func askGroups(ctx context.Context, s *facts.Set, c *config.Config, now func() tier.Time,
) facts.Change {
	return s.Ask(ctx, now, func(ctx context.Context, source string, groups []string) (
		facts.Committed, error) {
		i := slices.IndexFunc(c.Sources, func(s config.Source) bool { return s.Name == source })
		if i < 0 {
			return nil, fmt.Errorf("there is no source %q", source)
		}
		ctx, cancel := context.WithTimeout(ctx, groupsTimeout)
		defer cancel()
		answer, err := broker.GroupOffsets(ctx, brokerConfig(c.Sources[i].Kafka), groups)
		if err != nil {
			return nil, err
		}
		out := make(facts.Committed, len(answer))
		for group, offsets := range answer {
			out[group] = offsets
		}
		return out, nil
	})
}

// tendGroups asks the brokers at each interval. They may hang for the time of a question each, so
// they have a goroutine of their own.
func (d *Daemon) tendGroups(ctx context.Context) error {
	for {
		g := d.gen.Load()
		d.groupsChanged(g, askGroups(ctx, g.facts, g.config, d.now))
		if pauseUntil(ctx, g.config.Interval, d.askFacts) != nil {
			return nil
		}
	}
}

// groupsChanged has what was kept asked about again: all of it where a fact became known, else what
// groups have read more of.
func (d *Daemon) groupsChanged(g *generation, c facts.Change) {
	switch {
	case d.gen.Load() != g:
	case c.All:
		d.step(engine.Reconfigured{Settings: g.settings()})
	case len(c.Logs) > 0:
		d.step(engine.Reconsidered{Logs: c.Logs})
	}
}
