package objstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var ticks tier.Time
	p, err := b.Probe(t.Context(), "n1", func() tier.Time { ticks++; return ticks })
	if err != nil {
		t.Fatal(err)
	}
	if p.Before != 1 || p.After != 2 || p.LastModified != 1700000000000000000 {
		t.Errorf("%+v", p)
	}
	if keys := b.mem.Keys(); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
	if _, err := b.Probe(t.Context(), "a/b", func() tier.Time { return 1 }); err == nil {
		t.Error("a nonce with a slash: no error")
	}
}

func TestProbeNamesTheStep(t *testing.T) {
	t.Parallel()
	denied := fault.Effect{Err: fault.ErrDenied}
	tests := map[string]struct {
		kind   fault.OpKind
		effect fault.Effect
		want   string
	}{
		"put":           {fault.OpUpload, denied, "probe: put " + ledger + "/probe/n: access denied"},
		"stat":          {fault.OpAttributes, denied, "probe: stat"},
		"get":           {fault.OpGet, denied, "probe: get"},
		"range":         {fault.OpGetRange, denied, "probe: range: get"},
		"list":          {fault.OpIter, denied, "probe: list"},
		"delete":        {fault.OpDelete, denied, "probe: delete"},
		"exists":        {fault.OpExists, denied, "probe: stat"},
		"cut upload":    {fault.OpUpload, fault.Effect{Mangle: fault.Cut(3)}, "3 bytes, want 36"},
		"rotten upload": {fault.OpUpload, fault.Effect{Mangle: fault.Flip(3)}, "gives 36 other bytes"},
		"wrong range": {fault.OpGetRange, fault.Effect{Mangle: fault.Flip(0)},
			"other bytes at [6, 12)"},
		"range ignored": {fault.OpGetRange, fault.Effect{Mangle: fault.Pad(9)},
			"more than the 6 bytes"},
		"list lags": {fault.OpIter, fault.Effect{Hide: func(string) bool { return true }},
			"is not in the list"},
	}
	for name, test := range tests {
		b := newBench(t)
		b.faults.SetHook(fault.On(test.kind, test.effect))
		_, err := b.Probe(t.Context(), "n", func() tier.Time { return 1 })
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if keys := b.mem.Keys(); len(keys) != 0 && test.kind != fault.OpDelete {
			t.Errorf("%s: left behind %v", name, keys)
		}
	}
}

func TestProbeCleansUpAfterItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t)
	b.faults.SetHook(func(op fault.Op) fault.Effect {
		if op.Kind == fault.OpGet {
			cancel()
		}
		return fault.Effect{}
	})
	if _, err := b.Probe(ctx, "n", func() tier.Time { return 1 }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want Canceled", err)
	}
	if keys := b.mem.Keys(); len(keys) != 0 {
		t.Errorf("left behind %v", keys)
	}
}

// TestForgetProbes: only objects of probes, and only old ones.
func TestForgetProbes(t *testing.T) {
	t.Parallel()
	const modified = tier.Time(1700000000000000000)
	b := newBench(t)
	for _, key := range []string{"/probe/n1", "/probe/n2", "/probe/no nonce", "/probe/n3/deeper",
		"/owner.json"} {
		b.mem.Put(ledger+key, []byte("x"))
	}
	if n, err := b.ForgetProbes(t.Context(), modified); n != 0 || err != nil {
		t.Errorf("young ones: %d removed, %v", n, err)
	}
	if n, err := b.ForgetProbes(t.Context(), modified+1); n != 2 || err != nil {
		t.Errorf("old ones: %d removed, %v; want 2", n, err)
	}
	if keys := b.mem.Keys(); len(keys) != 3 {
		t.Errorf("left: %v", keys)
	}
	for _, kind := range []fault.OpKind{fault.OpIter, fault.OpDelete} {
		b.mem.Put(ledger+"/probe/n1", []byte("x"))
		b.faults.SetHook(fault.On(kind, fault.Effect{Err: fault.ErrDenied}))
		if _, err := b.ForgetProbes(t.Context(), modified+1); err == nil {
			t.Errorf("%s is denied: no error", kind)
		}
	}
}
