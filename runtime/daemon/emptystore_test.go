package daemon

import (
	"strings"
	"testing"
	"time"

	"github.com/tierd/tierd/objstore/fault"
)

// TestAnEmptyStoreIsNotBegunOn: one that has nothing of a ledger that has copied is another one, or
// is not mounted. Nothing is copied there, and nothing passes for removed.
func TestAnEmptyStoreIsNotBegunOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 3)
	if _, err := s.once(s.options()); err != nil {
		t.Fatalf("%v\n%s", err, s.log.String())
	}
	right, bucket := s.store, s.bucket
	s.store = fault.NewMem(time.Now)
	s.bucket = fault.Wrap(s.store, nil)
	if _, err := s.once(s.options()); err == nil || !strings.Contains(err.Error(), "mounted?") {
		t.Errorf("an empty store: %v", err)
	}
	if keys := s.store.Keys(); len(keys) > 0 {
		t.Errorf("in it are %v", keys)
	}
	opts := s.options()
	opts.Adopt = true
	if _, err := s.once(opts); err != nil || len(s.store.Keys()) == 0 {
		t.Errorf("adopting it: %v", err)
	}
	if _, err := s.once(s.options()); err != nil {
		t.Errorf("adopted: %v", err)
	}
	s.store, s.bucket = right, bucket
	if _, err := s.once(s.options()); err != nil {
		t.Errorf("the right one: %v", err)
	}
}
