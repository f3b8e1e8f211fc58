package daemon

import (
	"errors"
	"strings"
	"testing"
)

// TestADamagedOwnerIsNamed: the store was reached, and trying again is of no use. Its key and the
// remedy are told, by a start and by a check, and the remedy works.
func TestADamagedOwnerIsNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.segments("orders/0", 3)
	if _, err := s.once(s.options()); err != nil {
		t.Fatalf("%v\n%s", err, s.log.String())
	}
	check := func() error {
		t.Helper()
		k, err := NewChecker(t.Context(), s.options())
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(k.Bucket(t.Context(), s.bucket), k.Close())
	}
	if err := check(); err != nil {
		t.Errorf("a sound one: %v", err)
	}
	key := ""
	for _, k := range s.store.Keys() {
		if strings.HasSuffix(k, "/owner.json") {
			key = k
		}
	}
	s.store.Put(key, []byte("{"))
	told := func(err error) bool {
		return err != nil && strings.Contains(err.Error(), "damaged: "+key) &&
			strings.Contains(err.Error(), "tierd run --adopt") &&
			!strings.Contains(err.Error(), "reached")
	}
	if err := check(); !told(err) {
		t.Errorf("a check: %v", err)
	}
	if _, err := s.once(s.options()); !told(err) {
		t.Errorf("a start: %v", err)
	}
	opts := s.options()
	opts.Adopt = true
	if _, err := s.once(opts); err != nil {
		t.Errorf("adopting it: %v", err)
	}
	if err := check(); err != nil {
		t.Errorf("written anew: %v", err)
	}
}
