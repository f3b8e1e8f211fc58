package rego_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
)

const (
	holdOrders = `package tierd.hold

deny contains "held" if input.table.name == "orders"
`
	holdOthers = `package tierd.hold

deny contains "held" if input.table.name == "others"
`
	diskFull = `package tierd.disk

expire contains "full" if input.node.disk_free_bytes < 9
`
	dropped = `package tierd.drop

expire_remote contains "x" if input.table.name == "tmp"
`
	endless = `package tierd.x

deny contains "x" if {
	some i in numbers.range(1, 9999)
	i > 9999
}
`
	manyReasons = `package tierd.x

deny contains sprintf("%d", [i]) if some i in numbers.range(1, 500)
`
	// An array comprehension keeps its equal members.
	longReason = `package tierd.x

deny contains concat("", ["x" | some i in numbers.range(1, N)]) if true
`
)

// TestDigest: it depends on contents alone, and on all of them.
func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(data map[string]any, pathsAndSources ...string) string {
		set, err := rego.Load(modules(pathsAndSources...), data, rego.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return set.Digest()
	}
	data := map[string]any{"a": 1, "b": map[string]any{"x": 1, "y": 2}}
	same := digest(data, "a.rego", holdOrders, "b.rego", diskFull)
	if len(same) != 64 {
		t.Errorf("digest %q", same)
	}
	reordered := map[string]any{"b": map[string]any{"y": 2, "x": 1}, "a": 1}
	if digest(reordered, "elsewhere/z.rego", diskFull, "y.rego", holdOrders,
		"t_test.rego", "no policy") != same {
		t.Error("the digest depends on names, order or tests")
	}
	all := map[string]string{
		"same":         same,
		"no policies":  digest(data),
		"one less":     digest(data, "a.rego", holdOrders),
		"other source": digest(data, "a.rego", holdOthers, "b.rego", diskFull),
		"no data":      digest(nil, "a.rego", holdOrders, "b.rego", diskFull),
		"other data":   digest(map[string]any{"a": 2}, "a.rego", holdOrders, "b.rego", diskFull),
	}
	seen := map[string]string{}
	for name, d := range all {
		if before := seen[d]; before != "" {
			t.Errorf("%s and %s have the same digest", name, before)
		}
		seen[d] = name
	}
}

// TestDataDigest: each decision has the digest of the data too, whatever the policies are.
func TestDataDigest(t *testing.T) {
	t.Parallel()
	digests := func(data map[string]any, source string) gate.Decision {
		set, err := rego.Load(modules("a.rego", source), data, rego.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d, err := set.Decide(t.Context(), segmentOf(25*hour))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	one := digests(map[string]any{"a": 1, "b": 2}, holdOrders)
	policies := digests(map[string]any{"b": 2, "a": 1}, diskFull)
	data := digests(map[string]any{"a": 1, "b": 3}, holdOrders)
	if len(one.Data) != 64 || one.Data != policies.Data || one.Digest == policies.Digest ||
		one.Data == data.Data || one.Digest == data.Digest {
		t.Errorf("%+v\n%+v\n%+v", one, policies, data)
	}
}

func TestExpires(t *testing.T) {
	t.Parallel()
	for source, want := range map[string][2]bool{
		"": {false, false}, holdOrders: {false, false}, dropped: {false, true}, diskFull: {true, false},
	} {
		set := load(t)
		if source != "" {
			set = load(t, "x.rego", source)
		}
		if got := [2]bool{set.Expires(), set.ExpiresRemote()}; got != want {
			t.Errorf("expires local and remote: %v, want %v, for\n%s", got, want, source)
		}
	}
}

// TestStepsBound: the step at which a decision ends is the same each time, and names the bound.
func TestStepsBound(t *testing.T) {
	t.Parallel()
	policies := modules("x.rego", holdOrders)
	enough := int64(0)
	for steps := int64(1); enough == 0 && steps < 2000; steps++ {
		set, err := rego.Load(policies, nil, rego.Options{Steps: steps, Timeout: rego.NoTimeout})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			d, err := set.Decide(context.Background(), segmentOf(25*hour))
			if err == nil && enough == 0 {
				enough = steps
			}
			if (err == nil) != (enough > 0) {
				t.Fatalf("%d steps: %+v, %v, and not the same again", steps, d, err)
			}
			if err != nil && (d.Delete || !strings.Contains(err.Error(), "too many")) {
				t.Fatalf("%d steps: %+v, %v", steps, d, err)
			}
		}
	}
	if enough < 10 {
		t.Errorf("%d steps are enough", enough)
	}
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	set := load(t, "x.rego", endless)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	midway := &endsAfter{Context: context.Background(), looks: 3}
	for _, ctx := range []context.Context{over, midway} {
		d, err := set.Decide(ctx, segmentOf(25*hour))
		if !errors.Is(err, context.Canceled) || d.Delete {
			t.Errorf("%+v, %v", d, err)
		}
	}
	late, err := rego.Load(modules("x.rego", endless), nil, rego.Options{Timeout: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	d, err := late.Decide(context.Background(), segmentOf(25*hour))
	if !errors.Is(err, context.DeadlineExceeded) || d.Delete {
		t.Errorf("%+v, %v", d, err)
	}
}

// endsAfter is a context that is over after a number of looks at it.
type endsAfter struct {
	context.Context
	looks int
}

func (c *endsAfter) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestConcurrent: one Set decides for many at once, each as if alone.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	set := load(t, "hold.rego", holdOrders, "disk.rego", diskFull)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for age := range 30 {
				f := segmentOf(hour * 24)
				f.Seg.MaxTime = f.Seg.MaxTime.Add(-time.Duration(age-15) * time.Hour)
				if i%2 == 0 {
					f.Table.Name = "free"
				}
				d, err := set.Decide(context.Background(), f)
				if want := i%2 == 0 && age > 15; err != nil || d.Delete != want {
					t.Errorf("%s, age %d: %+v, %v", f.Table.Name, age, d, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestSameFactsSameDecision(t *testing.T) {
	t.Parallel()
	set := load(t, "hold.rego", holdOrders, "disk.rego", diskFull)
	first, err := set.Decide(context.Background(), segmentOf(3*hour))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		again, err := set.Decide(context.Background(), segmentOf(3*hour))
		if diff := cmp.Diff(first, again); err != nil || diff != "" {
			t.Fatalf("%v\n%s", err, diff)
		}
	}
}

// TestReasonsAreBounded: the longest text, and more reasons than are kept.
func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	d, err := load(t, "x.rego", manyReasons).Decide(context.Background(), segmentOf(25*hour))
	if err != nil || len(d.Reasons) != 64 || d.Reasons[63].Text != "and 437 more reasons" {
		t.Errorf("%d reasons, %v: %+v", len(d.Reasons), err, d.Reasons)
	}
	for n, fits := range map[string]bool{"1": true, "1024": true, "1025": false} {
		set := load(t, "x.rego", strings.ReplaceAll(longReason, "N", n))
		if _, err := set.Decide(context.Background(), segmentOf(25*hour)); (err == nil) != fits {
			t.Errorf("%s bytes: %v", n, err)
		}
	}
}

// FuzzLoad: no source makes Load panic, and what it loads decides or errs.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{greedy, holdOrders, diskFull, "package tierd.x\n", "package x", "",
		"package tierd.x\ndeny contains {\"msg\": \"x\"} if object.get(input, [\"a\"], 1) == 1",
		"package tierd.x\ndeny contains x if { s := input.segment; x := s.base in {1, \"a\"} }"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		set, err := rego.Load(modules("x.rego", source), nil, rego.Options{Steps: 1000})
		if err != nil {
			return
		}
		d, err := set.Decide(context.Background(), segmentOf(3*hour))
		if err == nil && len(d.Reasons) == 0 {
			t.Fatalf("no reason from\n%s", source)
		}
	})
}
