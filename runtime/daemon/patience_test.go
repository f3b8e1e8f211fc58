package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatiently: what ends is waited for, also beyond its deadline; what does not is left alone.
func TestPatiently(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		takes     time.Duration
		ended     bool
		waitedFor time.Duration
	}{
		{"in time", time.Second / 2, true, time.Second / 2},
		{"late", 5 * time.Second, true, 5 * time.Second},
		{"for ever", time.Hour, false, time.Second + patience},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			ended := patiently(ctx, func() { <-time.After(c.takes) })
			if took := time.Since(began); ended != c.ended || took != c.waitedFor {
				t.Errorf("%s: ended %t after %s", c.name, ended, took)
			}
			<-time.After(c.takes)
		})
	}
}
