package rego_test

import (
	"testing"
	"time"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/tier"
)

const (
	hour = tier.Time(time.Hour)
	now  = tier.Time(1_800_000_000_000_000_000) // 2027-01-15T08:00:00Z
)

// segmentOf gives the facts of a copied local segment of the given age; everything that the guard
// asks for is good, the local TTL is 24h, and nothing else is limited.
func segmentOf(age tier.Time) *gate.Facts {
	return &gate.Facts{
		Action: tier.DeleteLocal,
		Now:    now,
		Table: tier.Table{
			Name: "orders", Labels: map[string]string{"team": "payments"},
			TTL: 7 * 24 * time.Hour, LocalTTL: 24 * time.Hour, Tiering: true,
			DisablePolicy: tier.PolicyRetain,
		},
		Log: gate.LogFacts{
			ID: tier.LogID{Table: "orders", Name: "0"}, Layout: tier.LayoutPlain,
			State: tier.Enabled, Epoch: 1, Copied: 300, LocalEnd: 420, RemoteEnd: 300,
			LocalBytes: 5000, RemoteBytes: 3000,
		},
		Seg: gate.SegmentFacts{
			Range: tier.Range{Base: 0, Next: 100}, Bytes: 1000,
			File:    tier.Stat{Inode: 7, Size: 1000, ModTime: now - age},
			MaxTime: now - age, ModTime: now - age, CopiedAt: now - age + hour,
			Verified: true, OrdinalFromNewest: 4,
		},
		Node: gate.NodeFacts{Name: "node-1", DiskUsedBytes: 50_000, DiskFreeBytes: 50_000},
		Safety: gate.SafetyFacts{
			Closed: tier.Yes, FirstLocal: tier.Yes, EpochCurrent: tier.Yes, SourceWhole: tier.Yes,
			NotPaused: tier.Yes, OwnsSource: tier.Yes, DropWay: tier.LocalDeleteUnlink,
			ClockTolerance: tier.Time(5 * time.Minute),
			Brake:          tier.Brake{MaxSegments: 10, MaxBytes: 100_000, Per: time.Hour},
			Window:         tier.BrakeWindow{Since: now, Segments: 1, Bytes: 1000},
			Proof: gate.Proof{Recorded: tier.Yes, Identity: tier.Yes, Manifest: tier.Yes,
				Objects: tier.Yes, Lineage: tier.Yes, Sound: tier.Yes},
		},
	}
}

// load compiles policies given as path, source, path, source, ...
func load(t testing.TB, pathsAndSources ...string) *rego.Set {
	t.Helper()
	set, err := rego.Load(modules(pathsAndSources...), nil, rego.Options{Timeout: rego.NoTimeout})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func modules(pathsAndSources ...string) []rego.Module {
	var out []rego.Module
	for i := 0; i+1 < len(pathsAndSources); i += 2 {
		path, source := pathsAndSources[i], pathsAndSources[i+1]
		out = append(out, rego.Module{Path: path, Source: []byte(source)})
	}
	return out
}
