package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// humanBytes gives three digits at most, in powers of 1024.
func humanBytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%dB", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1023.5 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if value < 9.95 {
		return fmt.Sprintf("%.1f%ciB", value, units[unit])
	}
	return fmt.Sprintf("%.0f%ciB", value, units[unit])
}

// humanAge gives a span of time by its two largest units.
func humanAge(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return pair(d, time.Minute, "m", time.Second, "s")
	case d < 24*time.Hour:
		return pair(d, time.Hour, "h", time.Minute, "m")
	default:
		return pair(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

func pair(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	s := fmt.Sprintf("%d%s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		s += fmt.Sprintf("%d%s", rest, smallName)
	}
	return s
}

// humanSince gives how long before now t was, and humanUntil how long after.
func humanSince(now, t api.Time) string {
	if t == 0 {
		return "-"
	}
	return humanAge(max(tier.Time(now).Sub(tier.Time(t)), 0))
}

func humanUntil(now, t api.Time) string {
	d := tier.Time(t).Sub(tier.Time(now))
	if d <= 0 {
		return "now"
	}
	return "in " + humanAge(d)
}

// humanExtent gives start..end and the number of segments.
func humanExtent(x api.Extent) string {
	return fmt.Sprintf("%d..%d (%d)", x.Start, x.End, x.Segments)
}

// humanReason gives code, text, the rule with its title, and when it is looked at again, on one
// line: a text with more would look like several reasons.
func humanReason(now api.Time, r api.Reason) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.Code, r.Text)
	if by := humanRule(r); by != "" {
		fmt.Fprintf(&b, " (%s)", by)
	}
	if r.Until != 0 {
		fmt.Fprintf(&b, ", again %s", humanUntil(now, r.Until))
	}
	return screen.Line(b.String())
}

// humanRule names the rule that decided by its title and its place; "" where none did.
func humanRule(r api.Reason) string {
	switch {
	case r.Rule == nil:
		return ""
	case r.Title == nil:
		return *r.Rule
	}
	return *r.Title + ", " + *r.Rule
}

// orDash is the text, or a dash for one that is not there.
func orDash[T any](p *T) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprint(*p)
}

func tiers(list []api.Tier) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = string(t)
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, "+")
}
