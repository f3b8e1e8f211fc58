package rego_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	opa "github.com/open-policy-agent/opa/v1/rego"
	"pgregory.net/rapid"

	"github.com/tierd/tierd/policies"
	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
	"github.com/tierd/tierd/runtime/tier"
)

// greedy wants everything gone, always.
const greedy = `package tierd.greedy

expire contains "everything" if true

expire_remote contains "everything" if true
`

// flaws are the ways in which facts may not be what the guard asks for: each Truth unknown or no,
// and each of the other conditions.
var flaws = func() map[string]func(*gate.Facts) {
	out := map[string]func(*gate.Facts){
		"no time":          func(f *gate.Facts) { f.Now = 0 },
		"no inode":         func(f *gate.Facts) { f.Seg.File.Inode = 0 },
		"empty range":      func(f *gate.Facts) { f.Seg.Range.Base = f.Seg.Range.Next },
		"not copied":       func(f *gate.Facts) { f.Log.Copied = f.Seg.Range.Next - 1 },
		"not enabled":      func(f *gate.Facts) { f.Log.State = tier.Disabling },
		"tiering off":      func(f *gate.Facts) { f.Table.Tiering = false },
		"local_delete":     func(f *gate.Facts) { f.Safety.DropWay = tier.LocalDeleteNever },
		"no local_delete":  func(f *gate.Facts) { f.Safety.DropWay = "" },
		"brake, segments":  func(f *gate.Facts) { f.Safety.Brake.MaxSegments = 0 },
		"brake, bytes":     func(f *gate.Facts) { f.Safety.Brake.MaxBytes = 0 },
		"remote":           func(f *gate.Facts) { f.Action = tier.DeleteRemote },
		"orphan":           func(f *gate.Facts) { f.Action = tier.DeleteOrphan },
		"disable":          func(f *gate.Facts) { f.Action = tier.DisableDelete },
		"no action":        func(f *gate.Facts) { f.Action = "" },
		"no watermark yet": func(f *gate.Facts) { f.Log.HasHighWatermark = true },
	}
	truths := map[string]func(*gate.Facts) *tier.Truth{
		"closed":        func(f *gate.Facts) *tier.Truth { return &f.Safety.Closed },
		"first local":   func(f *gate.Facts) *tier.Truth { return &f.Safety.FirstLocal },
		"epoch current": func(f *gate.Facts) *tier.Truth { return &f.Safety.EpochCurrent },
		"source whole":  func(f *gate.Facts) *tier.Truth { return &f.Safety.SourceWhole },
		"not paused":    func(f *gate.Facts) *tier.Truth { return &f.Safety.NotPaused },
		"owns source":   func(f *gate.Facts) *tier.Truth { return &f.Safety.OwnsSource },
		"recorded":      func(f *gate.Facts) *tier.Truth { return &f.Safety.Proof.Recorded },
		"identity":      func(f *gate.Facts) *tier.Truth { return &f.Safety.Proof.Identity },
		"manifest":      func(f *gate.Facts) *tier.Truth { return &f.Safety.Proof.Manifest },
		"objects":       func(f *gate.Facts) *tier.Truth { return &f.Safety.Proof.Objects },
		"lineage":       func(f *gate.Facts) *tier.Truth { return &f.Safety.Proof.Lineage },
		"sound":         func(f *gate.Facts) *tier.Truth { return &f.Safety.Proof.Sound },
	}
	for name, truth := range truths {
		out[name+" unknown"] = func(f *gate.Facts) { *truth(f) = tier.Unknown }
		out[name+" no"] = func(f *gate.Facts) { *truth(f) = tier.No }
	}
	return out
}()

// TestGuardStandsBelowPolicies: a policy that wants everything gone gets a permit exactly where
// nothing is wrong with the facts.
func TestGuardStandsBelowPolicies(t *testing.T) {
	t.Parallel()
	g := gate.New(load(t, "greedy.rego", greedy))
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom(keys(flaws)), 0, 4).Draw(t, "flaws")
		f := drawFacts(t)
		makeGood(f)
		for _, name := range names {
			flaws[name](f)
		}
		permit, verdict := g.Ask(context.Background(), f)
		if want := len(names) == 0; verdict.Delete != want {
			t.Fatalf("delete is %t with %v: %v", verdict.Delete, names, verdict.Reasons)
		}
		err := permit.Spend(f.Target())
		if spent := err == nil; spent != verdict.Delete {
			t.Fatalf("the verdict is %t, the permit says %v", verdict.Delete, err)
		}
		if len(verdict.Reasons) == 0 {
			t.Fatal("no reason")
		}
	})
}

// TestExpireIsLocal: what a policy wants gone from the local disk changes no answer about the
// store, where the built-in limits alone count.
func TestExpireIsLocal(t *testing.T) {
	t.Parallel()
	set := load(t, "x.rego", "package tierd.x\n\nexpire contains \"x\" if true\n")
	builtin := load(t)
	local, kept := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		d, err := set.Decide(context.Background(), f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := builtin.Decide(context.Background(), f)
		if err != nil {
			t.Fatal(err)
		}
		if f.Action == tier.DeleteLocal {
			local++
		} else if !b.Delete {
			kept++
		}
		if want := f.Action == tier.DeleteLocal || b.Delete; d.Delete != want {
			t.Fatalf("%s: delete is %t, want %t: %+v", f.Action, d.Delete, want, d.Reasons)
		}
	})
	if local == 0 || kept == 0 {
		t.Errorf("%d local ones, %d kept in the store: nothing was shown", local, kept)
	}
}

// TestBuiltinAgreesWithModel compares the built-in policy with the same limits in Go.
func TestBuiltinAgreesWithModel(t *testing.T) {
	t.Parallel()
	set := load(t)
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		d, err := set.Decide(context.Background(), f)
		if err != nil {
			t.Fatal(err)
		}
		if want := model(f); d.Delete != want {
			t.Fatalf("delete is %t, want %t: %+v", d.Delete, want, d.Reasons)
		}
		if len(d.Reasons) == 0 || d.Delete && d.Due != 0 {
			t.Fatalf("%+v", d)
		}
		for _, r := range d.Reasons {
			if r.Rule == "" || r.Code == "" || r.Text == "" {
				t.Fatalf("%+v", r)
			}
		}
		if d.Due == 0 || f.Seg.MaxTime > f.Now+f.Safety.ClockTolerance {
			return // once that timestamp counts, the segment is younger than it is now
		}
		if d.Due <= f.Now {
			t.Fatalf("due %s is not after %s", d.Due, f.Now)
		}
		f.Now = d.Due
		if again, err := set.Decide(context.Background(), f); err != nil || !again.Delete {
			t.Fatalf("at its due time: %+v, %v", again, err)
		}
	})
}

// model is the built-in policy once more.
func model(f *gate.Facts) bool {
	age, _ := f.Seg.Age(f.Now, f.Safety.ClockTolerance)
	over := func(ttl time.Duration) bool { return ttl > 0 && age > tier.Time(ttl) }
	beyond := func(bytes int64, l tier.Limit) bool { return l.Set && bytes-l.Value >= f.Seg.Bytes }
	t := &f.Table
	switch f.Action {
	case tier.DeleteLocal:
		if f.Log.State != tier.Enabled {
			return over(t.TTL) || beyond(f.Log.LocalBytes, t.Bytes)
		}
		return f.Seg.Range.Next <= f.Log.Copied && (over(t.LocalTTL) ||
			beyond(f.Log.LocalBytes, t.LocalBytes) ||
			t.LocalSegments.Set && f.Seg.OrdinalFromNewest >= t.LocalSegments.Value)
	case tier.DeleteRemote:
		return over(t.TTL) || beyond(f.Log.RemoteBytes, t.Bytes)
	case tier.DeleteOrphan:
		return true
	}
	return f.Log.State != tier.Enabled && t.DisablePolicy == tier.PolicyDelete
}

// TestInputAgreesWithSchema: every input that is built is valid, and every property of the schema
// is built for some facts.
func TestInputAgreesWithSchema(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	query, err := opa.New(opa.Query("x = json.match_schema(input.document, input.schema)")).
		PrepareForEval(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(policies.InputSchema, &schema); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		document := inputOf(t, drawFacts(t))
		mark(seen, "", document)
		both := map[string]any{"document": document, "schema": schema}
		rs, err := query.Eval(ctx, opa.EvalInput(both))
		if err != nil {
			t.Fatal(err)
		}
		if result := rs[0].Bindings["x"].([]any); result[0] != true {
			t.Fatalf("%v\n%v", result[1], document)
		}
	})
	full := segmentOf(hour)
	full.Log.HasHighWatermark = true
	limit := tier.Limit{Set: true, Value: 5}
	full.Table.LocalSegments, full.Table.Bytes, full.Table.LocalBytes = limit, limit, limit
	mark(seen, "", inputOf(t, full))
	for _, path := range properties("", schema) {
		if !seen[path] {
			t.Errorf("no facts give input%s", path)
		}
	}
}

type failer interface{ Fatal(args ...any) }

func inputOf(t failer, f *gate.Facts) map[string]any {
	text, err := rego.InputJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	return document
}

func mark(seen map[string]bool, path string, v any) {
	seen[path] = true
	if object, ok := v.(map[string]any); ok {
		for name, sub := range object {
			mark(seen, path+"."+name, sub)
		}
	}
}

func properties(path string, schema map[string]any) []string {
	out := []string{path}
	of, _ := schema["properties"].(map[string]any)
	for name, sub := range of {
		out = append(out, properties(path+"."+name, sub.(map[string]any))...)
	}
	return out
}

// drawFacts draws facts whose words are valid and whose numbers lie close together, so that every
// limit is met from both sides. Nothing is known of their safety.
func drawFacts(t *rapid.T) *gate.Facts {
	small := rapid.Int64Range(0, 6)
	limit := func(name string) tier.Limit {
		return tier.Limit{Set: rapid.Bool().Draw(t, name+" set"), Value: small.Draw(t, name)}
	}
	span := func(name string) time.Duration {
		return time.Duration(small.Draw(t, name)) * time.Hour
	}
	past := func(name string) tier.Time {
		if rapid.Bool().Draw(t, name+" absent") {
			return 0
		}
		return now - tier.Time(rapid.Int64Range(-2, 8).Draw(t, name))*hour
	}
	f := segmentOf(hour)
	f.Action = rapid.SampledFrom([]tier.Action{tier.DeleteLocal, tier.DeleteLocal,
		tier.DeleteRemote, tier.DeleteOrphan, tier.DisableDelete}).Draw(t, "action")
	f.Table.TTL, f.Table.LocalTTL = span("ttl"), span("local ttl")
	f.Table.LocalSegments = limit("local segments")
	f.Table.Bytes, f.Table.LocalBytes = limit("bytes"), limit("local bytes")
	f.Table.DisablePolicy = rapid.SampledFrom([]tier.DisablePolicy{tier.PolicyRetain,
		tier.PolicyDelete}).Draw(t, "policy")
	f.Table.Labels = rapid.MapOfN(rapid.String(), rapid.String(), 0, 2).Draw(t, "labels")
	f.Log.State = rapid.SampledFrom([]tier.TierState{tier.Enabled, tier.Enabled, tier.Disabling,
		tier.Disabled}).Draw(t, "state")
	f.Log.Copied = tier.Offset(rapid.Int64Range(98, 102).Draw(t, "copied"))
	f.Log.LocalBytes, f.Log.RemoteBytes = small.Draw(t, "local"), small.Draw(t, "remote")
	f.Seg.Bytes = small.Draw(t, "segment bytes")
	f.Seg.OrdinalFromNewest = small.Draw(t, "ordinal")
	f.Seg.MaxTime, f.Seg.ModTime, f.Seg.CopiedAt = past("max"), past("mtime"), past("copied at")
	f.Extern = map[string]any{"n": small.Draw(t, "fact")}
	return f
}

// makeGood mends what drawFacts may have drawn that the guard objects to.
func makeGood(f *gate.Facts) {
	f.Action, f.Log.State, f.Log.Copied = tier.DeleteLocal, tier.Enabled, f.Seg.Range.Next
}

func keys(m map[string]func(*gate.Facts)) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
