package tier_test

import (
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

func TestFlussBuckets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ id, incarnation, dir string }{
		{"shop.orders/0", "7", "shop/orders-7/log-0"},
		{"shop.orders-2024/12", "0", "shop/orders-2024-0/log-12"},
		{"shop.visits/2024-01-01-0", "7/3", "shop/visits-7/2024-01-01-p3/log-0"},
		{"shop.sales/2024-01-01$us-1", "7/0", "shop/sales-7/2024-01-01$us-p0/log-1"},
	} {
		id, err := tier.ParseLogID(c.id)
		if err != nil {
			t.Fatal(err)
		}
		b, ok := tier.FlussBucketOf(id)
		ids, known := tier.ParseFlussIDs(c.incarnation)
		if !ok || !known || b.LogID() != id || ids.Incarnation() != c.incarnation ||
			b.Dir(ids) != c.dir {
			t.Errorf("%s of %s: %v %v, %+v as %s in %s; want %s", c.id, c.incarnation, ok, known, b,
				b.LogID(), b.Dir(ids), c.dir)
		}
	}
	for _, s := range []string{"orders/0", "shop.orders/a", "shop.orders/-0", "shop.orders/01",
		"shop.a.b/0", ".orders/0", "shop./0", "shop.orders/2147483648", "shop.visits/2024-"} {
		id, err := tier.ParseLogID(s)
		if b, ok := tier.FlussBucketOf(id); ok || err != nil {
			t.Errorf("%s is taken for the bucket %+v; %v", s, b, err)
		}
	}
	for _, s := range []string{"", "a", "-1", "7/", "/7", "7/-1", "07", "7/3/1",
		"t50CW9GGSAO8FjqW_zdKWA", "9223372036854775808"} {
		if ids, ok := tier.ParseFlussIDs(s); ok {
			t.Errorf("the incarnation %q is taken for %+v", s, ids)
		}
	}
}

func TestFlussNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dir, mark, name string
		number          int64
		ok              bool
	}{
		{"orders-7", "-", "orders", 7, true},
		{"rows-1-12", "-", "rows-1", 12, true},
		{"2024-01-01-p3", "-p", "2024-01-01", 3, true},
		{"a-p1-p3", "-p", "a-p1", 3, true},
		{"log-0", "log-", "", 0, true},
		{"orders", "-", "", 0, false},
		{"orders-7a", "-", "orders", 0, false},
		{"orders-07", "-", "orders", 7, false},
		{"kv-0", "log-", "", 0, false},
		{"log-", "log-", "", 0, false},
	} {
		name, number, ok := tier.FlussNamed(c.dir, c.mark)
		if ok != c.ok || ok && (name != c.name || number != c.number) {
			t.Errorf("%s at %s: %q %d %v", c.dir, c.mark, name, number, ok)
		}
	}
}
