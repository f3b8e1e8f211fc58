package plugin

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/tierd/tierd/runtime/tier"
)

// logger bounds how often a plugin's lines are handed on.
type logger struct {
	limiter *rate.Limiter
	dropped int
}

func newLogger(l Limits) *logger {
	return &logger{limiter: rate.NewLimiter(rate.Limit(float64(l.LogLinesPerMin)/60),
		l.LogLinesBurst)}
}

// line hands a line on, if the rate at the batch's time allows.
func (l *logger) line(c *code, now tier.Time, text string) {
	if c.log == nil {
		return
	}
	if !l.limiter.AllowN(time.Unix(0, int64(now)), 1) {
		l.dropped++
		return
	}
	c.log(Line{Plugin: c.name, Text: text, Dropped: l.dropped})
	l.dropped = 0
}
