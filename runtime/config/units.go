package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// day is a fixed span of time; no calendar is involved.
const day = 24 * time.Hour

// timeUnits are the units of a duration: what Go's own parser calls them, and how many of those
// they are.
var timeUnits = map[string]struct {
	base  string
	times time.Duration
}{
	"ns": {"ns", 1}, "us": {"us", 1}, "ms": {"ms", 1}, "s": {"s", 1}, "m": {"m", 1}, "h": {"h", 1},
	"d": {"h", 24}, "w": {"h", 7 * 24},
}

// durationMax is the longest duration. Times are nanoseconds in 64 bits, which end in 2262: what is
// reckoned from now by a longer one would lie past that, and be over at once.
const durationMax = 100 * 366 * day

// ErrTooLong is what is wrong with a duration that is longer than durationMax.
var ErrTooLong = errors.New("is longer than 100 years")

var errTimeUnit = errors.New("the units are ns, us, ms, s, m, h, d and w")

// ParseDuration reads a duration as the file has it, such as 36h or 7d.
func ParseDuration(s string) (time.Duration, error) { return parseDuration(s) }

// parseDuration reads a sum of numbers with units, such as 36h, 1.5h or 1w2d. "0" needs no unit.
// The result is never negative and at most durationMax.
func parseDuration(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	if s == "" || strings.HasPrefix(s, "-") {
		return 0, errors.New("must not be empty or negative")
	}
	var sum time.Duration
	for rest := s; rest != ""; {
		n := span(rest, "0123456789.")
		number, tail := rest[:n], rest[n:]
		u := span(tail, "nusmhdw")
		if number != "" && tail == "" {
			return 0, fmt.Errorf("the number %s has no unit", number)
		}
		unit, ok := timeUnits[tail[:u]]
		if number == "" || !ok {
			return 0, errTimeUnit
		}
		if strings.Count(number, ".") > 1 || number == "." {
			return 0, fmt.Errorf("%q is not a number", number)
		}
		part, err := time.ParseDuration(number + unit.base)
		if err != nil || part > math.MaxInt64/unit.times {
			return 0, ErrTooLong
		}
		part *= unit.times
		if sum > math.MaxInt64-part {
			return 0, ErrTooLong
		}
		sum += part
		rest = tail[u:]
	}
	if sum > durationMax {
		return 0, ErrTooLong
	}
	return sum, nil
}

// span is the length of the longest prefix of s that is made of the given characters.
func span(s, of string) int {
	return len(s) - len(strings.TrimLeft(s, of))
}

// FormatDuration gives the shortest form that parses back to d: whole weeks are not used, so that
// seven days read 7d. d must not be negative.
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	var b strings.Builder
	if days := d / day; days > 0 {
		fmt.Fprintf(&b, "%dd", days)
		d %= day
	}
	if d == 0 {
		return b.String()
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	b.WriteString(strings.ReplaceAll(s, "µs", "us"))
	return b.String()
}

// byteUnits are the units of a size, largest first so that the first that divides is printed.
var byteUnits = []struct {
	name string
	size int64
}{
	{"PiB", 1 << 50}, {"PB", 1e15}, {"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9},
	{"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1},
}

// parseBytes reads a whole number of bytes, with or without a unit, such as 100GiB, 1MB or 4096.
func parseBytes(s string) (int64, error) {
	n := span(s, "0123456789")
	if n == 0 {
		return 0, errors.New("it must start with a whole number that is not negative")
	}
	value, err := strconv.ParseInt(s[:n], 10, 64)
	if err != nil {
		return 0, errors.New("is too large")
	}
	name := strings.TrimSpace(s[n:])
	if name == "" {
		return value, nil
	}
	if strings.HasPrefix(name, ".") {
		return 0, errors.New("fractions are not read: use a smaller unit")
	}
	for _, u := range byteUnits {
		if !strings.EqualFold(u.name, name) {
			continue
		}
		if value > math.MaxInt64/u.size {
			return 0, errors.New("is too large")
		}
		return value * u.size, nil
	}
	return 0, errors.New("the units are B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB and PiB")
}

// FormatBytes gives the exact size with the largest unit that divides it; sizes parse back.
func FormatBytes(n int64) string {
	if n == 0 {
		return "0"
	}
	for _, u := range byteUnits {
		if n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
