package daemon

import (
	"testing"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/tier"
)

// TestALogThatNobodyOpened: a command that looks where no daemon ran since says that nothing of a
// new log is copied, and does not ask policies about facts that there are not.
func TestALogThatNobodyOpened(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.configure(siteConfig)
	s.segments("clicks/0", 1)
	if _, err := s.once(s.options()); err != nil {
		t.Fatalf("%v\n%s", err, s.log.String())
	}
	s.segments("orders/0", 2)
	b, done, err := Snapshot(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	x, err := b.Explain(t.Context(), tier.LogID{Table: "orders", Name: "0"}, 5)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Decisions) != 1 || x.Decisions[0].Verdict != api.Keep ||
		len(x.Decisions[0].Reasons) != 1 || x.Decisions[0].Reasons[0].Code != tier.CodeNotCopied {
		t.Errorf("decisions %+v; want that it is not copied", x.Decisions)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}
