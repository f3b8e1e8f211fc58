package interop_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// remotes are the stores that are reached over the network.
func remotes() map[string]func(*testing.T) *store {
	all := stores()
	delete(all, "FILESYSTEM")
	return all
}

// TestBadNetwork copies through a proxy that delays, cuts, and answers 429 and 503, at every third
// request: everything arrives, byte for byte, and only then goes from the disk.
func TestBadNetwork(t *testing.T) {
	t.Parallel()
	for name, begin := range remotes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			p := newProxy(t, s)
			r := newRig(t)
			r.env = s.env(p.address)
			wal(t, r.path("wal/a"), 9, 300_000)
			before := segments(t, r.path("wal"))
			r.configure(s.config(p.address, credentials{},
				"defaults: {table.log.ttl: 0, table.log.local-ttl: 1d}"))
			p.set(3, delay, refuse(http.StatusTooManyRequests), cut, refuse(503), cutAnswer)
			d := r.daemon()
			eventually(t, "one segment is left on disk", func() error {
				if n := len(segments(t, r.path("wal"))); n != 1 {
					return fmt.Errorf("%d segments", n)
				}
				return d.ended()
			})
			if p.faults.Load() < 10 || p.passed.Load() < 10 {
				t.Errorf("%d faults, %d requests passed", p.faults.Load(), p.passed.Load())
			}
			closed := slices.Compact(stored(t, s, before))
			if len(closed) != 8 {
				t.Errorf("%d segments are in the store, want 8", len(closed))
			}
			onlyOpen(t, r, before, closed)
			p.set(0)
			d.stop()
		})
	}
}

// TestOutage: while the store cannot be reached, status says so and nothing goes, not even what was
// copied before; once it is back, all goes on.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]struct {
		begin func(*testing.T) *store
		fault fault
		says  string
	}{
		"refuses":    {s3, refuse(503), "503"},
		"cuts":       {s3, cut, "closed"},
		"expired":    {s3, expired, "token has expired"},
		"expired-az": {azure, expiredAzure, "AuthenticationFailed"},
		"expired-gs": {gcs, expiredGoogle, "Invalid Credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := f.begin(t)
			p := newProxy(t, s)
			r := newRig(t)
			r.env = s.env(p.address)
			wal(t, r.path("wal/a"), 4, 1000)
			config := func(timeout, localTTL string) string {
				return s.config(p.address, credentials{}, "copy: {timeout: "+timeout+"}",
					"defaults: {table.log.ttl: 0, table.log.local-ttl: "+localTTL+"}")
			}
			r.configure(config("1m", "30d"))
			r.must("run", "--once")
			r.configure(config("2s", "1d"))
			wal(t, r.path("wal/b"), 3, 1000)
			before, stored := segments(t, r.path("wal")), len(s.keys(t))
			p.set(1, f.fault)
			stdout, stderr, code := r.tierd("run", "--once", "--retry-for", "3s")
			if code != 3 || !strings.Contains(stderr, f.says) {
				t.Errorf("exit code %d, want 3 and %q:\n%s\n%s", code, f.says, stdout, stderr)
			}
			if got := segments(t, r.path("wal")); !maps.Equal(got, before) {
				t.Errorf("left are %v", slices.Sorted(maps.Keys(got)))
			}
			if got := len(s.keys(t)); got != stored {
				t.Errorf("%d objects, and %d before", got, stored)
			}
			p.set(0)
			r.configure(config("1m", "1d"))
			d := r.daemon()
			eventually(t, "only the open segments are left", func() error {
				if n := len(segments(t, r.path("wal"))); n != 2 {
					return fmt.Errorf("%d segments", n)
				}
				return d.ended()
			})
			d.stop()
		})
	}
}

// TestWrongCredentials: check and run say which request was denied, and nothing is deleted.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	for name, begin := range remotes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			r := newRig(t)
			r.env = s.env(s.address)
			wal(t, r.path("wal/a"), 4, 1000)
			before := segments(t, r.path("wal"))
			r.configure(s.config(s.address, credentials{wrong: true}, "copy: {timeout: 20s}",
				"defaults: {table.log.ttl: 0, table.log.local-ttl: 1d}"))
			for _, c := range []struct {
				args []string
				code int
			}{{[]string{"check"}, 1}, {[]string{"run", "--once", "--retry-for", "1s"}, 3}} {
				stdout, stderr, code := r.tierd(c.args...)
				said := stdout + stderr
				if err := denied(said); code != c.code || err != nil {
					t.Errorf("tierd %v: exit code %d, want %d: %v\n%s", c.args, code, c.code, err, said)
				}
			}
			if got := segments(t, r.path("wal")); !maps.Equal(got, before) {
				t.Errorf("left are %v", slices.Sorted(maps.Keys(got)))
			}
			if n := len(s.keys(t)); n > 0 {
				t.Errorf("%d objects", n)
			}
		})
	}
}

// denied is an error unless the text says, in the store's own words, that the caller was refused.
func denied(text string) error {
	for _, word := range []string{"signature", "Signature", "AuthorizationFailure",
		"AuthenticationFailed", "invalid_grant"} {
		if strings.Contains(text, word) {
			return nil
		}
	}
	return errors.New("it does not say that it was denied")
}
