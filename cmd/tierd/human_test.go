package main

import (
	"testing"
	"time"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

func TestHumanBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0B", 1023: "1023B", 1024: "1.0KiB", 1536: "1.5KiB", 10 << 10: "10KiB",
		1<<20 - 1: "1.0MiB", 100 << 30: "100GiB", 1<<63 - 1: "8.0EiB",
	} {
		if got := humanBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestHumanAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 59*time.Second + 400*time.Millisecond: "59s", 90 * time.Second: "1m30s",
		time.Hour: "1h", 36*time.Hour + 29*time.Minute: "1d12h", 400 * 24 * time.Hour: "400d",
	} {
		if got := humanAge(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
	now := api.Time(tier.TimeOf(time.Unix(1000, 0)))
	if got := humanSince(now, 0); got != "-" {
		t.Errorf("since an absent time: %s", got)
	}
	if got := humanUntil(now, now); got != "now" {
		t.Errorf("until now: %s", got)
	}
	if got := humanSince(now, now+5e9); got != "0s" {
		t.Errorf("since the future: %s", got)
	}
}
