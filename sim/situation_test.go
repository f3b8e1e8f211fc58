package sim

import (
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

// TestWhereNothingTiersNothingOfCopiesIsAskedFor: such a project is right, and no seeds could meet
// what is of copies.
func TestWhereNothingTiersNothingOfCopiesIsAskedFor(t *testing.T) {
	t.Parallel()
	p := kafkaProject(t)
	tables := p.Config.Tables
	for _, tiers := range []string{"orders", "none"} {
		p.Config.Tables = func(name string) (tier.Table, bool) {
			table, ok := tables(name)
			table.Tiering = name == tiers
			return table, ok
		}
		for _, unsettled := range []bool{true, false} {
			p.Unsettled = unsettled
			for _, s := range ofCopies {
				if got := p.NotApplicable(s); (got != "") != (tiers == "none" && !unsettled) {
					t.Errorf("%s, where %s tiers, unsettled %t: %q", s, tiers, unsettled, got)
				}
			}
			if got := p.NotApplicable(LocalDeletion); got != "" {
				t.Errorf("%s: %q", LocalDeletion, got)
			}
		}
	}
}
