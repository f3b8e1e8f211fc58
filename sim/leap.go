package sim

import (
	"fmt"

	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/tier"
)

// vouched is what the oracle knows of the wall clock: how it went on before the eyes of a process,
// up to where an operator accepted it, and not what a ledger says of that.
type vouched struct {
	// most is the highest time that any process may have taken for right, absent where nobody looked
	// yet; least the highest one of which it is sure that the ledger has it, absent where it may have
	// none: then nothing tells a process that the clock leapt.
	most, least tier.Time
}

// looked notes that a process looks at the clock now. What it then finds to be a step it must not
// take for right.
func (v *vouched) looked(now tier.Time, most tier.Time) {
	if off := now - v.most; v.most == 0 || -most <= off && off <= most {
		v.most = max(v.most, now)
	}
}

// noted notes that the ledger has a time that is at most so much older than now.
func (v *vouched) noted(now tier.Time) {
	if v.most >= now {
		v.least = max(v.least, now-tier.Time(config.ClockEvery))
	}
}

// accepted notes that an operator took the clock for right, if that is durable: whatever the
// process was told became of its record.
func (o *Oracle) accepted(at tier.Time) {
	if ledger, err := o.w.ledgerNow(); err == nil && ledger.clock == at {
		o.vouched = vouched{at, at}
	}
}

// leapt (S5) says by how much the wall clock is further from what it was before than
// max_clock_step, if nobody accepted that: then nothing may happen that leaves no copy. "" if it is
// not.
func (o *Oracle) leapt() string {
	v, now, most := o.vouched, o.w.Now, tier.Time(o.w.Config.MaxClockStep)
	switch {
	case most == 0 || v.least == 0 || o.w.zombie():
	case now > v.most+most:
		return fmt.Sprintf("the clock had leapt by %s, and nobody accepted that", now.Sub(v.most))
	case now < v.least-most:
		return fmt.Sprintf("the clock had gone back by %s, and nobody accepted that", v.least.Sub(now))
	}
	return ""
}
